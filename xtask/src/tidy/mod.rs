//! `cargo xtask tidy`: the conventions that a program can check.
//!
//! Each rule is a function from text to findings, so that its tests need no file. A rule says what
//! is wrong and where; what to do about it is in `CONTRIBUTING.md`.

mod arrows;
mod hosts;
mod reach;
mod source;

use crate::project::Project;
use anyhow::{Context as _, Result, bail};
use std::fmt;
use std::path::Path;

/// Something against a rule.
#[derive(Debug, PartialEq)]
pub(crate) struct Finding {
    /// File, relative to the project.
    path: String,
    /// Line, counted from one; none when it concerns the whole file.
    line: Option<usize>,
    /// What is wrong.
    message: String,
}

impl Finding {
    fn of_file(path: &str, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: None, message: message.into() }
    }

    fn of_line(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: Some(line), message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.message),
            None => write!(f, "{}: {}", self.path, self.message),
        }
    }
}

/// A text file of the project.
#[derive(Debug)]
pub(crate) struct TextFile {
    /// Path relative to the project, `/` between parts.
    pub(crate) path: String,
    /// Its content.
    pub(crate) text: String,
}

/// Checks the whole project; findings are an error.
pub(crate) fn run(project: &Project) -> Result<()> {
    let mut files = Vec::new();
    collect(&project.root, &project.root, &mut files)?;
    files.sort_by(|a: &TextFile, b| a.path.cmp(&b.path));
    let mut findings = Vec::new();
    for file in &files {
        findings.extend(source::check(file));
    }
    findings.extend(arrows::check(&files));
    findings.extend(reach::check(&files));
    findings.extend(hosts::check(&files, &hosts::forbidden(project)));
    for finding in &findings {
        println!("{finding}");
    }
    if !findings.is_empty() {
        bail!("tidy: {} finding(s)", findings.len());
    }
    println!("tidy: {} files", files.len());
    Ok(())
}

/// Reads every text file below a folder, leaving out what git and cargo keep.
fn collect(root: &Path, folder: &Path, files: &mut Vec<TextFile>) -> Result<()> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        let name = entry.file_name();
        if kind.is_dir() {
            if name != ".git" && name != "target" {
                collect(root, &path, files)?;
            }
        } else if kind.is_file()
            && let Ok(text) = std::fs::read_to_string(&path)
        {
            let relative = path.strip_prefix(root).context("an entry lies below its folder")?;
            files.push(TextFile { path: relative.to_string_lossy().into_owned(), text });
        }
    }
    Ok(())
}
