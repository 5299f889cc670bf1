//! [`View`]: the merged tree of a snapshot, read without mounting it.
//!
//! Reading a file out of a tree takes a few system calls instead of a mount. Paths are resolved
//! inside the tree whatever its links say, only regular files are ever opened, and nothing is
//! cached, so a view is as cheap to make as to drop. It never writes.

mod error;
mod exact;
mod glob;
mod resolve;
mod tree;

pub use error::ViewError;
pub(crate) use error::shorten;
pub(crate) use resolve::{Last, Located, failure};
pub(crate) use tree::{Node, Place, Tree, join, parent};

use crate::Error;
use crate::durable::{Content, Inspector, Verified};
use crate::metadata::{Kind, Metadata};
use crate::snapshot::{LayerRef, Snapshot};
use rustix::fs::OFlags;
use std::fs::File;
use std::sync::Arc;

/// The merged tree of a snapshot, read without mounting it.
#[derive(Clone)]
pub struct View {
    pub(crate) tree: Tree,
    inspector: Option<Arc<Inspector>>,
}

/// What a path leads to.
#[derive(Clone, Debug)]
pub struct Found {
    /// The path without links, `.` and `..`, absolute inside the tree (`/` for the root).
    pub path: String,
    /// What is there.
    pub metadata: Metadata,
}

/// One entry of a directory.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Name; bytes that are not UTF-8 are replaced.
    pub name: String,
    /// What it is.
    pub metadata: Metadata,
}

/// What a walk does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// Goes on, into the entry if it is a directory.
    Continue,
    /// Goes on, but not into this directory.
    Skip,
    /// Ends.
    Stop,
}

impl View {
    /// A view of a tree whose layers are looked over first. One that has lost a layer answers every
    /// question with that.
    pub(crate) fn new(mut tree: Tree, inspector: &Arc<Inspector>) -> Self {
        let layers: Vec<LayerRef> =
            tree.places.iter().filter_map(|place| place.layer.clone()).collect();
        if let Err(Error::MissingLayer(id)) = inspector.require(&layers) {
            tree.lost = Some(id);
        }
        Self { tree, inspector: Some(Arc::clone(inspector)) }
    }

    /// A view of a tree that has no layers.
    pub(crate) fn of_nothing(tree: Tree) -> Self {
        Self { tree, inspector: None }
    }

    /// Who knows what the layers of the tree are to be.
    pub(crate) fn inspector(&self) -> Option<&Arc<Inspector>> {
        self.inspector.as_ref()
    }

    /// Finds what a path leads to. Links are followed inside the tree; the last name only if asked.
    pub fn resolve(&self, path: &str, follow_last: bool) -> Result<Found, ViewError> {
        let last = if follow_last { Last::Follow } else { Last::Keep };
        let node = self.tree.find(path, last)?;
        let path = format!("/{}", String::from_utf8_lossy(&node.path));
        Ok(Found { path, metadata: node.metadata })
    }

    /// Metadata of what the path leads to, links followed.
    pub fn stat(&self, path: &str) -> Result<Metadata, ViewError> {
        Ok(self.tree.find(path, Last::Follow)?.metadata)
    }

    /// Metadata of the entry itself, a link not followed.
    pub fn stat_link(&self, path: &str) -> Result<Metadata, ViewError> {
        Ok(self.tree.find(path, Last::Keep)?.metadata)
    }

    /// Entries of a directory, sorted by bytes.
    pub fn read_dir(&self, path: &str) -> Result<Vec<Entry>, ViewError> {
        let directory = self.tree.find_directory(path)?;
        let children = self.tree.children(&directory).map_err(|errno| failure(path, errno))?;
        let entry = |node: &Node| Entry {
            name: String::from_utf8_lossy(node.name()).into_owned(),
            metadata: node.metadata,
        };
        Ok(children.iter().map(entry).collect())
    }

    /// The bytes of a regular file, links followed, compared with what they were as they are read.
    pub fn read(&self, path: &str) -> Result<Verified, ViewError> {
        let node = self.tree.find_file(path)?;
        self.verified(&node).map_err(|errno| failure(path, errno))
    }

    /// The bytes of a file of the tree.
    fn verified(&self, node: &Node) -> Result<Verified, rustix::io::Errno> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = File::from(self.tree.open(node, flags)?);
        let layer = node.parts.first().and_then(|part| self.tree.places[*part].layer.as_ref());
        let (Some(layer), Some(inspector)) = (layer, &self.inspector) else {
            return Ok(Verified::unchecked(file));
        };
        let sum = inspector.sum(layer, &node.path);
        Ok(Verified::new(file, Content::Layer(layer.id), sum, inspector))
    }

    /// Opens a regular file for reading, links followed.
    pub fn open(&self, path: &str) -> Result<File, ViewError> {
        let node = self.tree.find_file(path)?;
        // The kind was checked first: opening a pipe or a device could block or act.
        let file = self.tree.open(&node, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY);
        file.map(File::from).map_err(|errno| failure(path, errno))
    }

    /// Target of a link.
    pub fn read_link(&self, path: &str) -> Result<String, ViewError> {
        let node = self.tree.find(path, Last::Keep)?;
        if node.metadata.kind != Kind::Symlink {
            return Err(ViewError::NotALink(shorten(path)));
        }
        let target = self.tree.read_link(&node).map_err(|errno| failure(path, errno))?;
        Ok(String::from_utf8_lossy(&target).into_owned())
    }

    /// Visits everything below a directory, each directory before its entries, sorted by bytes.
    /// Paths are relative to that directory; links are not followed.
    pub fn walk(
        &self,
        path: &str,
        visit: &mut dyn FnMut(&str, &Metadata) -> Walk,
    ) -> Result<(), ViewError> {
        let top = self.tree.find_directory(path)?;
        let skipped = if top.path.is_empty() { 0 } else { top.path.len() + 1 };
        // Nesting has no bound that a stack would be safe with.
        let mut ahead = vec![];
        self.push_children(&top, &mut ahead).map_err(|errno| failure(path, errno))?;
        while let Some(node) = ahead.pop() {
            match visit(&String::from_utf8_lossy(&node.path[skipped..]), &node.metadata) {
                Walk::Stop => return Ok(()),
                Walk::Continue if node.metadata.is_directory() => {
                    let shown = String::from_utf8_lossy(&node.path);
                    let pushed = self.push_children(&node, &mut ahead);
                    pushed.map_err(|errno| failure(&shown, errno))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The directory as a tree of its own.
    pub fn subtree(&self, path: &str) -> Result<Snapshot, ViewError> {
        let node = self.tree.find_directory(path)?;
        let below =
            std::str::from_utf8(&node.path).map_err(|_| ViewError::NotText(shorten(path)))?;
        let layer = |part: &usize| {
            let layer = self.tree.places[*part].layer.as_ref()?;
            let root = join(layer.root.as_bytes(), below.as_bytes());
            Some(layer.rooted(String::from_utf8(root).ok()?.into()))
        };
        Ok(node.parts.iter().rev().filter_map(layer).collect())
    }

    fn push_children(&self, node: &Node, ahead: &mut Vec<Node>) -> Result<(), rustix::io::Errno> {
        ahead.extend(self.tree.children(node)?.into_iter().rev());
        Ok(())
    }
}
