//! Which entries of a tree are wanted: include and exclude patterns, and `.gitignore` files.
//!
//! The same words mean the same for files of the host and for trees in the store, so both ask here.
//! Paths are bytes, because names of files are, relative to the root of the tree with `/` between
//! names. Nothing here opens a file: whoever walks a tree reads its `.gitignore` files and passes
//! their text.

mod globs;
mod ignores;
mod pattern;

pub use globs::Globs;
pub use ignores::Ignores;
pub use pattern::{BadPattern, Glob, clean, is_glob};

use pattern::Patterns;

/// What to take and what to leave out. Excludes win over includes; no include takes all.
#[derive(Debug, Default)]
pub struct Selection {
    include: Patterns,
    exclude: Patterns,
}

/// What is to become of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is taken.
    Take,
    /// It is not, but something below it may be.
    Descend,
    /// Neither it nor anything below it.
    Skip,
}

/// Which patterns match a directory, or one above it. A walk hands it down from a directory to its
/// entries, so that a pattern is tried once for each entry and never again for its parents.
#[derive(Clone, Debug, Default)]
pub struct Matched {
    include: Vec<bool>,
    exclude: Vec<bool>,
}

impl Selection {
    /// Reads both lists.
    pub fn new(include: &[String], exclude: &[String]) -> Result<Self, BadPattern> {
        Ok(Self { include: Patterns::new(include)?, exclude: Patterns::new(exclude)? })
    }

    /// Whether every entry is taken.
    pub fn takes_all(&self) -> bool {
        self.include.is_empty() && self.exclude.is_empty()
    }

    /// What matches the root of the tree.
    pub fn root(&self) -> Matched {
        Matched { include: self.include.none(), exclude: self.exclude.none() }
    }

    /// The verdict on an entry of a directory, given what matches that, and what matches the entry.
    pub fn check(&self, path: &[u8], directory: bool, above: &Matched) -> (Verdict, Matched) {
        let (included, include) = self.include.matches(path, &above.include);
        let (excluded, exclude) = self.exclude.matches(path, &above.exclude);
        let wanted = included || self.include.is_empty();
        let may_hold_wanted = directory
            && (!excluded || self.exclude.takes_back())
            && (wanted || self.include.may_match_below(path));
        let verdict = match (wanted && !excluded, may_hold_wanted) {
            (true, _) => Verdict::Take,
            (false, true) => Verdict::Descend,
            (false, false) => Verdict::Skip,
        };
        (verdict, Matched { include, exclude })
    }
}

#[cfg(test)]
mod tests;
