//! [`Ignores`]: what `.gitignore` files say, the nearest first.
//!
//! Only the files in the tree and above it in the same repository count: a user's global ignore file
//! would make a tree depend on whose machine it was read on. A file that is itself left out still
//! has its effect.

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// The rules that hold in one directory. Cheap to clone: directories share the rules above them.
#[derive(Clone, Debug, Default)]
pub struct Ignores(Option<Arc<Link>>);

#[derive(Debug)]
struct Link {
    rules: Gitignore,
    base: Base,
    above: Ignores,
}

/// Where a file with rules is.
#[derive(Debug)]
enum Base {
    /// In a directory of the tree: paths lose this many bytes to be relative to it.
    Within(usize),
    /// Above the tree: paths gain these bytes to be relative to it.
    Above(Vec<u8>),
}

impl Ignores {
    /// Adds the text of a file above the tree, the nearest last. `below` is the path from the
    /// directory of the file down to the root of the tree.
    #[must_use]
    pub fn with_above(&self, below: &str, text: &str) -> Self {
        let mut prefix = below.as_bytes().to_vec();
        prefix.push(b'/');
        self.with(Base::Above(prefix), text)
    }

    /// What holds in a directory of the tree whose own file has this text.
    #[must_use]
    pub fn with_file_in(&self, directory: &[u8], text: &str) -> Self {
        let skipped = if directory.is_empty() { 0 } else { directory.len() + 1 };
        self.with(Base::Within(skipped), text)
    }

    /// Whether an entry is ignored. A directory that is must not be entered.
    pub fn ignores(&self, path: &[u8], directory: bool) -> bool {
        self.says(path, directory) == Some(true)
    }

    /// Whether an entry is ignored, if any rule says something about it.
    pub fn says(&self, path: &[u8], directory: bool) -> Option<bool> {
        let mut next = &self.0;
        while let Some(link) = next {
            match link.matched(path, directory) {
                Match::Ignore(()) => return Some(true),
                Match::Whitelist(()) => return Some(false),
                Match::None => next = &link.above.0,
            }
        }
        None
    }

    fn with(&self, base: Base, text: &str) -> Self {
        let mut builder = GitignoreBuilder::new("");
        for line in text.lines() {
            // Git passes over a line it cannot read, and so do we.
            let _ = builder.add_line(None, line);
        }
        // Lines that cannot be read are gone already; too many of them at once cannot be held.
        match builder.build() {
            Ok(rules) if !rules.is_empty() => {
                Self(Some(Arc::new(Link { rules, base, above: self.clone() })))
            }
            _ => self.clone(),
        }
    }
}

impl Link {
    fn matched(&self, path: &[u8], directory: bool) -> Match<()> {
        let matched = match &self.base {
            Base::Within(skipped) => {
                let inner = path.get(*skipped..).unwrap_or_default();
                self.rules.matched(OsStr::from_bytes(inner), directory)
            }
            Base::Above(prefix) => {
                let whole = [prefix, path].concat();
                self.rules.matched(OsStr::from_bytes(&whole), directory)
            }
        };
        matched.map(|_| ())
    }
}
