//! `.gitignore` files, from the top of the repository down to the directory that is walked.
//!
//! They apply only inside a repository. Only the files in the tree count: a user's global ignore
//! file would make an import depend on whose machine it ran on. A file that is itself left out of
//! the import still has its effect.

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use protocol::Error;
use std::io;
use std::path::Path;

/// The rules that hold in one directory; deeper files win.
#[derive(Debug, Default)]
pub(super) struct Rules(Vec<Gitignore>);

/// What `.gitignore` files say about a directory as a whole.
#[derive(Debug)]
pub(super) enum Scope {
    /// It is in no repository.
    NoRepository,
    /// It is ignored.
    Ignored,
    /// These rules hold in it, its own file not counted in.
    Rules(Rules),
}

impl Rules {
    /// What holds in `root`, which must be a path without links.
    pub(super) fn above(root: &Path) -> Result<Scope, Error> {
        let is_top = |dir: &&Path| dir.join(".git").symlink_metadata().is_ok();
        let Some(top) = root.ancestors().find(is_top) else { return Ok(Scope::NoRepository) };
        let mut chain: Vec<&Path> = root.ancestors().take_while(|dir| *dir != top).collect();
        chain.push(top);
        chain.reverse();
        let mut rules = Self::default();
        for pair in chain.windows(2) {
            rules.enter(pair[0])?;
            if rules.ignores(pair[1], true) {
                return Ok(Scope::Ignored);
            }
        }
        Ok(Scope::Rules(rules))
    }

    /// Adds the rules of a directory's own file.
    pub(super) fn enter(&mut self, directory: &Path) -> Result<(), Error> {
        let mut builder = GitignoreBuilder::new(directory);
        let path = directory.join(".gitignore");
        match std::fs::read(&path) {
            Ok(text) => {
                for line in String::from_utf8_lossy(&text).lines() {
                    // Git passes over a line it cannot read, and so do we.
                    let _ = builder.add_line(None, line);
                }
            }
            Err(error) if is_none(&error) => {}
            Err(error) => return Err(super::named(&path.display().to_string(), &error)),
        }
        let rules = builder.build();
        let refused = |error| Error::user(format!("`{}`: {error}", path.display()));
        self.0.push(rules.map_err(refused)?);
        Ok(())
    }

    /// Takes back the rules of the directory that was entered last.
    pub(super) fn leave(&mut self) {
        self.0.pop();
    }

    /// Whether an entry of the directory that was entered last is ignored.
    pub(super) fn ignores(&self, path: &Path, directory: bool) -> bool {
        for rules in self.0.iter().rev() {
            match rules.matched(path, directory) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

fn is_none(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::IsADirectory)
}
