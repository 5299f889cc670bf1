//! [`Filter`]: which entries of a tree a copy takes.

use super::CopyOptions;
use super::pattern::Patterns;
use crate::Error;
use crate::draft::failed;
use crate::view::{Node, Tree};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::OFlags;
use std::fs::File;
use std::io::Read;

/// Bytes of a `.gitignore` that are read; more is not meant to be read by anybody.
const LONGEST_GITIGNORE: u64 = 1024 * 1024;

/// Include and exclude patterns and the `.gitignore` files on the way to where a walk stands.
pub(super) struct Filter {
    include: Patterns,
    exclude: Patterns,
    gitignore: bool,
    /// One for each directory from the top to where the walk stands.
    ignores: Vec<Option<Gitignore>>,
}

/// What to do with an entry.
pub(super) struct Verdict {
    /// Whether it is copied.
    pub(super) take: bool,
    /// Whether something in it may be copied though it is not.
    pub(super) descend: bool,
}

impl Filter {
    pub(super) fn new(options: &CopyOptions) -> Result<Self, Error> {
        Ok(Self {
            include: Patterns::new(&options.include)?,
            exclude: Patterns::new(&options.exclude)?,
            gitignore: options.gitignore,
            ignores: vec![],
        })
    }

    /// The walk goes into a directory with these entries.
    pub(super) fn enter(&mut self, tree: &Tree, entries: &[Node]) -> Result<(), Error> {
        let rules = entries.iter().find(|entry| entry.name() == b".gitignore");
        let rules = rules.filter(|entry| self.gitignore && entry.metadata.is_file());
        self.ignores.push(rules.map(|file| read_rules(tree, file)).transpose()?);
        Ok(())
    }

    /// The walk leaves the directory that it entered last.
    pub(super) fn leave(&mut self) {
        self.ignores.pop();
    }

    /// Judges an entry of the directory that was entered last.
    pub(super) fn judge(&self, path: &str, directory: bool) -> Verdict {
        if self.is_ignored(path, directory) {
            return Verdict { take: false, descend: false };
        }
        let excluded = self.exclude.matches(path);
        let included = self.include.is_empty() || self.include.matches(path);
        let descend = (!excluded || self.exclude.takes_back())
            && (included || self.include.may_match_below(path));
        Verdict { take: included && !excluded, descend }
    }

    /// The nearest file that says anything about the entry decides. A directory that is ignored is
    /// never entered, so what is in it needs no look.
    fn is_ignored(&self, path: &str, directory: bool) -> bool {
        let starts = [0].into_iter().chain(path.match_indices('/').map(|(slash, _)| slash + 1));
        let starts: Vec<usize> = starts.collect();
        for (rules, start) in self.ignores.iter().zip(starts).rev() {
            let Some(rules) = rules else { continue };
            match rules.matched(&path[start..], directory) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

fn read_rules(tree: &Tree, file: &Node) -> Result<Gitignore, Error> {
    let open = tree.open(file, OFlags::RDONLY | OFlags::NONBLOCK);
    let open = open.map_err(|errno| failed("read", &file.path, errno))?;
    let mut bytes = vec![];
    let shown = || String::from_utf8_lossy(&file.path).into_owned();
    let read = File::from(open).take(LONGEST_GITIGNORE).read_to_end(&mut bytes);
    read.map_err(Error::io("read", shown()))?;
    let mut rules = GitignoreBuilder::new("");
    for line in String::from_utf8_lossy(&bytes).lines() {
        // As git does, a line that is no pattern is passed over.
        if let Err(error) = rules.add_line(None, line) {
            tracing::debug!("`{}` has a line that is no pattern: {error}", shown());
        }
    }
    rules.build().map_err(|error| Error::Pattern { pattern: shown(), reason: error.to_string() })
}
