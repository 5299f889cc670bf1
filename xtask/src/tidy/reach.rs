//! Every file of the end to end tests is part of their one program.
//!
//! A test file that no `mod` line names is not compiled, and nobody would notice.

use super::source::code_only;
use super::{Finding, TextFile};
use std::collections::HashSet;

const FOLDER: &str = "tests/cli/";
const START: &str = "tests/cli/main.rs";

/// Findings about test files that are not reached.
pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    let mut reached = HashSet::new();
    let mut pending = vec![START.to_owned()];
    while let Some(path) = pending.pop() {
        let Some(file) = files.iter().find(|file| file.path == path) else { continue };
        if reached.insert(path.clone()) {
            pending.extend(module_files(&path, &file.text));
        }
    }
    files
        .iter()
        .filter(|file| file.path.starts_with(FOLDER) && file.path.ends_with(".rs"))
        .filter(|file| !reached.contains(&file.path))
        .map(|file| Finding::of_file(&file.path, format!("no `mod` line leads here from {START}")))
        .collect()
}

/// Where the modules that a file names may lie.
fn module_files(path: &str, text: &str) -> Vec<String> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let code = code_only(text);
    let names = code.lines().filter_map(|line| {
        let (_, rest) = line.split_once("mod ")?;
        rest.trim().strip_suffix(';')
    });
    names
        .flat_map(|name| [format!("{folder}/{name}.rs"), format!("{folder}/{name}/mod.rs")])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_forgotten_file_is_found() {
        let files = [
            file(START, "//! All.\nmod query;\nmod core;\n// mod lost;\n"),
            file("tests/cli/query.rs", ""),
            file("tests/cli/core/mod.rs", "pub(crate) mod help;\n"),
            file("tests/cli/core/help.rs", ""),
            file("tests/cli/lost.rs", ""),
        ];
        let found: Vec<String> = check(&files).iter().map(|f| f.path.clone()).collect();
        assert_eq!(found, ["tests/cli/lost.rs"]);
    }
}
