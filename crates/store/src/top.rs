//! [`Top`]: a tree whose newest layer is being written.
//!
//! A layer that is written directly must look as if overlay had made it: each directory on the way
//! to a change carries mode, owner, time and attributes of the merged tree, because the newest layer
//! that has a directory decides them; what is removed below needs a whiteout; a directory made where
//! something was removed hides what is older.

use crate::Error;
use crate::draft::{Draft, failed};
use crate::metadata::{Meta, Owner, Timestamp};
use crate::state::StateDir;
use crate::view::{Node, Place, Tree, join, parent};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::collections::HashSet;
use std::sync::Arc;

/// Place of the draft in the tree: it is the newest layer.
const DRAFT: usize = 0;

/// A tree and the layer that is being written on top of it.
pub(crate) struct Top {
    /// The tree with the draft as its newest layer.
    pub(crate) tree: Tree,
    pub(crate) draft: Draft,
    /// Directories the draft is known to have.
    known: HashSet<Vec<u8>>,
}

impl Top {
    /// Puts an empty draft on top of a tree. Its root takes the metadata of the tree's.
    pub(crate) fn new(mut tree: Tree, mut draft: Draft) -> Result<Self, Error> {
        if !tree.places.is_empty() {
            let root = tree.root().map_err(|errno| failed("read", b"", errno))?;
            draft.set_directory(b"", &root.metadata.meta())?;
            dress(&tree, &mut draft, &root)?;
        }
        tree.places.insert(DRAFT, Place { path: draft.root().to_vec(), layer: None });
        Ok(Self { tree, draft, known: HashSet::from([vec![]]) })
    }

    pub(crate) fn state(&self) -> &Arc<StateDir> {
        &self.tree.state
    }

    /// The entry at a path that passes through no link.
    pub(crate) fn node(&self, path: &[u8]) -> Result<Option<Node>, Error> {
        self.tree.at(path).map_err(|errno| failed("read", path, errno))
    }

    /// Sees to it that the draft has a directory which the tree has.
    pub(crate) fn materialise(&mut self, path: &[u8]) -> Result<(), Error> {
        if self.known.contains(path) {
            return Ok(());
        }
        let unread = |errno| failed("read", path, errno);
        let mut node = self.tree.root().map_err(unread)?;
        for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            let child = self.tree.lookup(&node, name).map_err(unread)?;
            node = child.ok_or_else(|| unread(Errno::NOENT))?;
            if node.parts.first() != Some(&DRAFT) {
                self.draft.make_directory(&node.path, &node.metadata.meta())?;
                dress(&self.tree, &mut self.draft, &node)?;
                node.parts.insert(0, DRAFT);
            }
            self.known.insert(node.path.clone());
        }
        Ok(())
    }

    /// Makes a directory that the tree does not have, in one that the draft has.
    pub(crate) fn make_directory(&mut self, path: &[u8], meta: &Meta) -> Result<(), Error> {
        let was_removed = self.draft.clear(path)?;
        self.draft.make_directory(path, meta)?;
        if was_removed {
            self.draft.set_opaque(path)?;
        }
        self.known.insert(path.to_vec());
        Ok(())
    }

    /// Makes directories below one that the tree has, and gives the path of the last.
    pub(crate) fn make_directories(
        &mut self,
        below: &Node,
        names: &[Vec<u8>],
        mode: u32,
        owner: Owner,
    ) -> Result<Vec<u8>, Error> {
        self.materialise(&below.path)?;
        let meta = Meta { mode, uid: owner.uid, gid: owner.gid, mtime: Timestamp::now() };
        let mut path = below.path.clone();
        for name in names {
            path = join(&path, name);
            self.make_directory(&path, &meta)?;
        }
        Ok(path)
    }

    /// Makes room for an entry that is not a directory, in a directory that the tree has.
    pub(crate) fn make_room(&mut self, path: &[u8]) -> Result<(), Error> {
        self.materialise(parent(path))?;
        self.draft.clear(path)?;
        Ok(())
    }

    /// Takes an entry out of the tree, whatever it is.
    pub(crate) fn remove(&mut self, node: &Node) -> Result<(), Error> {
        let above = parent(&node.path);
        if node.parts.first() == Some(&DRAFT) {
            self.draft.clear(&node.path)?;
            let inside = |path: &Vec<u8>| {
                path.starts_with(&node.path)
                    && matches!(path.get(node.path.len()), None | Some(&b'/'))
            };
            self.known.retain(|path| !inside(path));
        }
        if self.is_below(above, node.name())? {
            self.materialise(above)?;
            self.draft.make_whiteout(&node.path)?;
        }
        Ok(())
    }

    /// Whether layers below the draft show an entry.
    fn is_below(&self, directory: &[u8], name: &[u8]) -> Result<bool, Error> {
        let Some(mut above) = self.node(directory)? else { return Ok(false) };
        above.parts.retain(|part| *part != DRAFT);
        let found = self.tree.lookup(&above, name);
        Ok(found.map_err(|errno| failed("read", directory, errno))?.is_some())
    }
}

/// Gives a directory of the draft the attributes it has in the tree.
fn dress(tree: &Tree, draft: &mut Draft, node: &Node) -> Result<(), Error> {
    let unread = |errno| failed("read", &node.path, errno);
    let from = tree.open(node, OFlags::RDONLY | OFlags::DIRECTORY).map_err(unread)?;
    draft.copy_attributes(&from, &node.path)
}
