//! [`Filter`]: which entries of a tree a copy takes, kept in step with a walk.

use super::CopyOptions;
use crate::Error;
use crate::draft::failed;
use crate::view::{Node, Tree};
use rustix::fs::OFlags;
use selection::{Ignores, Matched, Selection, Verdict};
use std::fs::File;
use std::io::Read;

/// Bytes of a `.gitignore` that are read; more is not meant to be read by anybody.
const LONGEST_GITIGNORE: u64 = 1024 * 1024;

/// Include and exclude patterns and the `.gitignore` files on the way to where a walk stands.
pub(super) struct Filter {
    selection: Selection,
    gitignore: bool,
    /// What holds in each directory from the top to where the walk stands.
    levels: Vec<(Matched, Ignores)>,
    /// What matches the entry that was judged last.
    judged: Matched,
}

impl Filter {
    pub(super) fn new(options: &CopyOptions) -> Result<Self, Error> {
        let selection = Selection::new(&options.include, &options.exclude)?;
        let judged = selection.root();
        Ok(Self { selection, gitignore: options.gitignore, levels: vec![], judged })
    }

    /// The walk goes into the directory that was judged last, or first of all into the root.
    pub(super) fn enter(
        &mut self,
        tree: &Tree,
        directory: &[u8],
        entries: &[Node],
    ) -> Result<(), Error> {
        let rules = entries.iter().find(|entry| entry.name() == b".gitignore");
        let rules = rules.filter(|entry| self.gitignore && entry.metadata.is_file());
        let mut ignores = self.levels.last().map(|(_, above)| above.clone()).unwrap_or_default();
        if let Some(file) = rules {
            ignores = ignores.with_file_in(directory, &read_rules(tree, file)?);
        }
        self.levels.push((std::mem::take(&mut self.judged), ignores));
        Ok(())
    }

    /// The walk leaves the directory that it entered last.
    pub(super) fn leave(&mut self) {
        self.levels.pop();
    }

    /// Judges an entry of the directory that was entered last. A directory that is ignored is never
    /// entered, so what is in it needs no look.
    pub(super) fn judge(&mut self, path: &[u8], directory: bool) -> Verdict {
        let Some((above, ignores)) = self.levels.last() else { return Verdict::Take };
        if ignores.ignores(path, directory) {
            return Verdict::Skip;
        }
        let (verdict, judged) = self.selection.check(path, directory, above);
        self.judged = judged;
        verdict
    }
}

fn read_rules(tree: &Tree, file: &Node) -> Result<String, Error> {
    let open = tree.open(file, OFlags::RDONLY | OFlags::NONBLOCK);
    let open = open.map_err(|errno| failed("read", &file.path, errno))?;
    let mut bytes = vec![];
    let read = File::from(open).take(LONGEST_GITIGNORE).read_to_end(&mut bytes);
    read.map_err(Error::io("read", String::from_utf8_lossy(&file.path).into_owned()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
