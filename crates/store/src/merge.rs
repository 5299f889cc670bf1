//! Several layers as one.
//!
//! The merged layer stands for its inputs over *any* older layers: whiteouts and opaque directories
//! are kept, and a directory that in some input took the place of something else becomes opaque.
//! Files are hard links, so a merge moves no bytes. Nothing recurses: nesting has no safe bound.

use crate::draft::{Draft, failed};
use crate::duplicate::Duplicator;
use crate::view::{Node, Tree};
use crate::{Error, LayerRef};
use rustix::fs::OFlags;

/// A merged layer.
pub(crate) struct Merged {
    pub(crate) layer: LayerRef,
    /// How many entries it has.
    pub(crate) entries: u64,
}

/// Merges all layers of a tree.
pub(crate) fn merge(tree: &Tree) -> Result<Merged, Error> {
    let mut merge = Merge {
        tree,
        draft: Draft::new(&tree.state)?,
        links: Duplicator::new(tree),
        ahead: vec![],
    };
    merge.run()?;
    let entries = merge.draft.entries();
    Ok(Merged { layer: merge.draft.finish()?, entries })
}

struct Merge<'a> {
    tree: &'a Tree,
    draft: Draft,
    links: Duplicator<'a>,
    ahead: Vec<Ahead>,
}

/// A directory of the result whose entries are not there yet.
struct Ahead {
    node: Node,
    /// Whether nothing older can shine through, so that marks in it would mean nothing.
    covered: bool,
}

impl Merge<'_> {
    fn run(&mut self) -> Result<(), Error> {
        let root = self.tree.root().map_err(|errno| failed("read", b"", errno))?;
        self.dress(&root)?;
        self.draft.set_directory(b"", &root.metadata.meta())?;
        self.ahead.push(Ahead { node: root, covered: false });
        while let Some(Ahead { node, covered }) = self.ahead.pop() {
            let entries =
                self.tree.scan(&node).map_err(|errno| failed("read", &node.path, errno))?;
            let mut whiteouts = false;
            for entry in entries {
                whiteouts |= entry.metadata.is_whiteout();
                self.add(entry, covered)?;
            }
            if whiteouts && !covered {
                self.draft.note_whiteout(&node.path)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, entry: Node, covered: bool) -> Result<(), Error> {
        if !entry.metadata.is_directory() {
            // Where nothing shines through the kernel would show a whiteout as a device.
            if covered && entry.metadata.is_whiteout() {
                return Ok(());
            }
            return self.links.link(&mut self.draft, &entry, &entry.path);
        }
        self.draft.make_directory(&entry.path, &entry.metadata.meta())?;
        self.dress(&entry)?;
        if entry.covers && !covered {
            self.draft.set_opaque(&entry.path)?;
        }
        let covered = covered || entry.covers;
        self.ahead.push(Ahead { node: entry, covered });
        Ok(())
    }

    /// Gives a directory of the draft the attributes of the newest layer's.
    fn dress(&mut self, directory: &Node) -> Result<(), Error> {
        if directory.parts.is_empty() {
            return Ok(());
        }
        let from = self.tree.open(directory, OFlags::RDONLY | OFlags::DIRECTORY);
        let from = from.map_err(|errno| failed("read", &directory.path, errno))?;
        self.draft.copy_attributes(&from, &directory.path)
    }
}
