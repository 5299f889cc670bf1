//! The programs of the guide "your first pipeline", taken from its page as they stand there.

use anyhow::{Context as _, Result};
use std::fs;
use std::path::Path;

/// What the executables of these programs are called, after the language.
pub(super) const NAME: &str = "guide";
/// The program of the Rust package.
pub(super) const RUST_PROGRAM: &str = "first-pipeline";

const PAGE: &str = "docs/guide/first-pipeline.md";

/// The page.
pub(super) struct Page(String);

impl Page {
    pub(super) fn read(root: &Path) -> Result<Self> {
        let path = root.join(PAGE);
        let text = fs::read_to_string(&path);
        Ok(Self(text.with_context(|| format!("cannot read {}", path.display()))?))
    }

    /// The program in a language.
    pub(super) fn program(&self, language: &str) -> Result<&str> {
        let (_, rest) = self
            .0
            .split_once(&format!("\n```{language}\n"))
            .with_context(|| format!("{PAGE} has no program in {language}"))?;
        let (program, _) = rest.split_once("```").context("a program on the page has an end")?;
        Ok(program)
    }
}

/// Makes a package of a program with the libraries of another package.
pub(super) fn rust_package(folder: &Path, from: &Path, program: &str) -> Result<()> {
    fs::create_dir_all(folder)?;
    fs::copy(from.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    let manifest = fs::read_to_string(from.join("Cargo.toml"))?;
    let (before, program_of_cases) =
        manifest.split_once("[[bin]]\n").context("the package names its program")?;
    let (_, after) =
        program_of_cases.split_once("\n\n").context("a part ends with a blank line")?;
    let own = format!("[[bin]]\nname = \"{RUST_PROGRAM}\"\npath = \"main.rs\"\n\n");
    fs::write(folder.join("Cargo.toml"), format!("{before}{own}{after}"))?;
    fs::write(folder.join("main.rs"), program)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_language() {
        let page = Page("# A\n\n```python\nprint(1)\n```\n\n```go\nx\n```\n".to_owned());
        assert_eq!(page.program("python").unwrap(), "print(1)\n");
        assert_eq!(page.program("go").unwrap(), "x\n");
        assert!(page.program("rust").is_err());
    }
}
