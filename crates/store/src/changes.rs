//! [`Changes`]: one layer as a list of what it changes, for who writes it down as an image's layer.
//!
//! A layer of the store says by devices and attributes what it hides. Here that becomes plain data,
//! and only where it means something: a mark that hides nothing of what lies below is left out, so
//! that equal changes give equal lists however they came about.

use crate::Error;
use crate::attributes::{self, Attribute};
use crate::durable::{Content, Inspector, Verified};
use crate::metadata::{Kind, Metadata};
use crate::snapshot::{LayerRef, Snapshot};
use crate::store::Store;
use crate::view::{Node, Tree, failure};
use rustix::fs::{OFlags, major, minor};
use rustix::io::Errno;
use std::collections::HashMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// One change of a layer.
pub struct Change {
    /// Where, relative to the root; empty for the root itself.
    pub path: Vec<u8>,
    /// Of the entry; of a whiteout it says nothing.
    pub metadata: Metadata,
    /// Extended attributes by name.
    pub attributes: Vec<(Vec<u8>, Vec<u8>)>,
    /// What is done there.
    pub what: What,
}

/// What a layer does at a path.
pub enum What {
    /// A regular file with these contents.
    File(Verified),
    /// A directory.
    Directory {
        /// Whether it hides what is below in it.
        opaque: bool,
    },
    /// A symbolic link with this target.
    Symlink(Vec<u8>),
    /// Another name of the file at this path of the layer, which came before.
    HardLink(Vec<u8>),
    /// A named pipe.
    Fifo,
    /// A character device.
    Character {
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
    },
    /// A block device.
    Block {
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
    },
    /// What is below at this path is gone.
    Whiteout,
}

/// The changes of one layer: each directory before what is in it, sorted by name.
pub struct Changes {
    layer: Tree,
    /// The same by name, with what is known of its contents.
    known: (LayerRef, Arc<Inspector>),
    below: Tree,
    ahead: Vec<Ahead>,
    /// Where an inode that has several names was met first.
    first_names: HashMap<u64, Vec<u8>>,
}

/// An entry whose turn has not come.
struct Ahead {
    node: Node,
    /// What lies below at its path.
    below: Option<Node>,
}

impl Store {
    /// What a layer changes in the tree below it.
    pub fn changes(&self, layer: &LayerRef, below: &Snapshot) -> Result<Changes, Error> {
        let known = (layer.clone(), Arc::clone(&self.0.inspector));
        let layer = self.view(&Snapshot::empty().push(layer.clone())).tree;
        let below = self.view(below).tree;
        let root = |tree: &Tree| tree.root().map_err(|errno| failure("/", errno));
        let ahead = vec![Ahead { node: root(&layer)?, below: Some(root(&below)?) }];
        Ok(Changes { layer, known, below, ahead, first_names: HashMap::new() })
    }
}

impl Changes {
    /// The next change; none at the end.
    pub fn next_change(&mut self) -> Result<Option<Change>, Error> {
        while let Some(Ahead { node, below }) = self.ahead.pop() {
            let shown = String::from_utf8_lossy(&node.path).into_owned();
            let change = self.change(&node, below).map_err(|errno| failure(&shown, errno))?;
            if change.is_some() {
                return Ok(change);
            }
        }
        Ok(None)
    }

    fn change(&mut self, node: &Node, below: Option<Node>) -> Result<Option<Change>, Errno> {
        let metadata = node.metadata;
        if metadata.is_whiteout() {
            return Ok(below.map(|_| change(node, vec![], What::Whiteout)));
        }
        if let Some(first) = self.first_name(node) {
            return Ok(Some(change(node, vec![], What::HardLink(first))));
        }
        Ok(Some(match metadata.kind {
            Kind::Directory => return self.directory(node, below),
            Kind::File => {
                let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
                let file = self.layer.open(node, flags)?;
                let attributes = attributes::read(&file)?;
                let (layer, inspector) = &self.known;
                let (content, sum) = (Content::Layer(layer.id), inspector.sum(layer, &node.path));
                let file = Verified::new(File::from(file), content, sum, inspector);
                change(node, attributes, What::File(file))
            }
            Kind::Symlink => change(node, vec![], What::Symlink(self.layer.read_link(node)?)),
            Kind::Fifo => change(node, vec![], What::Fifo),
            Kind::CharacterDevice => {
                let (major, minor) = (major(metadata.rdev), minor(metadata.rdev));
                change(node, vec![], What::Character { major, minor })
            }
            Kind::BlockDevice => {
                let (major, minor) = (major(metadata.rdev), minor(metadata.rdev));
                change(node, vec![], What::Block { major, minor })
            }
            // It means nothing without the process that made it.
            Kind::Socket => return Ok(None),
        }))
    }

    fn directory(&mut self, node: &Node, below: Option<Node>) -> Result<Option<Change>, Errno> {
        let below = below.filter(|below| below.metadata.is_directory());
        let open = self.layer.open(node, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let attributes = attributes::read(&open)?;
        let opaque = node.covers && !node.path.is_empty();
        let inside = below.as_ref().filter(|_| !opaque);
        for child in self.layer.scan(node)?.into_iter().rev() {
            let below = match inside {
                Some(inside) => self.below.lookup(inside, child.name())?,
                None => None,
            };
            self.ahead.push(Ahead { node: child, below });
        }
        if node.path.is_empty() && self.is_root_unchanged(node, below.as_ref(), &attributes)? {
            return Ok(None);
        }
        let hides = opaque && below.is_some();
        Ok(Some(change(node, attributes, What::Directory { opaque: hides })))
    }

    /// Whether the layer says nothing new of the root. Its time does not count.
    fn is_root_unchanged(
        &self,
        node: &Node,
        below: Option<&Node>,
        attributes: &[Attribute],
    ) -> Result<bool, Errno> {
        let looks = |metadata: &Metadata| (metadata.mode, metadata.uid, metadata.gid);
        let before = below.map_or_else(Metadata::empty_root, |below| below.metadata);
        if looks(&before) != looks(&node.metadata) {
            return Ok(false);
        }
        let attributes_before = match below.filter(|below| !below.parts.is_empty()) {
            Some(below) => {
                let open: OwnedFd = self.below.open(below, OFlags::RDONLY | OFlags::DIRECTORY)?;
                attributes::read(&open)?
            }
            None => vec![],
        };
        Ok(attributes_before == attributes)
    }

    /// The first name of an entry that has several and was met before.
    fn first_name(&mut self, node: &Node) -> Option<Vec<u8>> {
        if node.metadata.is_directory() || node.metadata.links < 2 {
            return None;
        }
        let first = self.first_names.get(&node.metadata.inode).cloned();
        if first.is_none() {
            self.first_names.insert(node.metadata.inode, node.path.clone());
        }
        first
    }
}

fn change(node: &Node, attributes: Vec<Attribute>, what: What) -> Change {
    Change { path: node.path.clone(), metadata: node.metadata, attributes, what }
}

impl Change {
    /// Why the contents of this entry could not be read.
    pub fn unread(&self, source: std::io::Error) -> Error {
        let path = crate::view::shorten(&String::from_utf8_lossy(&self.path));
        Error::from_read(path)(source)
    }
}
