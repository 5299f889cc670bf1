//! [`Tree`]: a stack of layers, looked at one directory at a time.
//!
//! This is the rule by which overlay merges directories, and the only place in the crate that knows
//! it: viewing, editing, digesting and merging all stand on [`Tree::lookup`] and [`Tree::scan`].
//! The newest layer that has a name decides what it is. If that is a directory, the directories of
//! the same name in older layers add to it, until one of them is opaque or something else than a
//! directory is met, which hides all that is older.

use crate::metadata::Metadata;
use crate::snapshot::{LayerId, LayerRef};
use crate::state::{self, StateDir};
use rustix::fs::{AtFlags, Dir, Mode, OFlags, openat, statat};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::collections::btree_map;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Where one layer lies.
#[derive(Clone)]
pub(crate) struct Place {
    /// Path below the state folder.
    pub(crate) path: Vec<u8>,
    /// Which layer it is; none for one that is still being written.
    pub(crate) layer: Option<LayerRef>,
}

/// Layers on top of each other.
#[derive(Clone)]
pub(crate) struct Tree {
    pub(crate) state: Arc<StateDir>,
    /// Newest first.
    pub(crate) places: Vec<Place>,
    /// A layer that is missing or damaged: what the others show is not the tree.
    pub(crate) lost: Option<LayerId>,
}

/// One entry of the merged tree.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Path in the tree without a leading slash; empty for the root. No part of it is a link.
    pub(crate) path: Vec<u8>,
    /// Taken from the newest layer that has it.
    pub(crate) metadata: Metadata,
    /// Places that have it, newest first: all that add to a directory, the one of anything else.
    pub(crate) parts: Vec<usize>,
    /// Whether it hides what layers below these places have under its name.
    pub(crate) covers: bool,
}

impl Tree {
    pub(crate) fn new(state: Arc<StateDir>, oldest_first: &[LayerRef]) -> Self {
        let place =
            |layer: &LayerRef| Place { path: state::layer_root(layer), layer: Some(layer.clone()) };
        Self { state, places: oldest_first.iter().rev().map(place).collect(), lost: None }
    }

    /// The root directory, to which every layer adds.
    pub(crate) fn root(&self) -> Result<Node, Errno> {
        let metadata = match self.places.first() {
            Some(newest) => self.state.stat(&newest.path)?,
            None => Metadata::empty_root(),
        };
        let parts = (0..self.places.len()).collect();
        Ok(Node { path: vec![], metadata, parts, covers: false })
    }

    /// The entry of this name in a directory.
    pub(crate) fn lookup(&self, directory: &Node, name: &[u8]) -> Result<Option<Node>, Errno> {
        let path = join(&directory.path, name);
        let mut found: Option<Node> = None;
        for &part in &directory.parts {
            let place = self.path_in(part, &path);
            let metadata = match self.state.stat(&place) {
                Ok(metadata) => metadata,
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(errno),
            };
            if !metadata.is_directory() {
                let Some(node) = &mut found else {
                    let node = Node { path, metadata, parts: vec![part], covers: true };
                    return Ok(Some(node).filter(|node| !node.metadata.is_whiteout()));
                };
                node.covers = true;
                break;
            }
            let covers = self.state.is_opaque(&place)?;
            let fresh = || Node { path: path.clone(), metadata, parts: vec![], covers };
            let node = found.get_or_insert_with(fresh);
            node.parts.push(part);
            node.covers = covers;
            if covers {
                break;
            }
        }
        Ok(found)
    }

    /// Metadata of an entry and whether it hides what is older.
    fn examine(&self, directory: &OwnedFd, name: &[u8]) -> Result<(Metadata, bool), Errno> {
        let metadata = Metadata::from(&statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?);
        if !metadata.is_directory() {
            return Ok((metadata, true));
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = openat(directory, name, flags, Mode::empty())?;
        Ok((metadata, self.state.hides(&open)?))
    }

    /// Everything in a directory, sorted by name, whiteouts included.
    pub(crate) fn scan(&self, directory: &Node) -> Result<Vec<Node>, Errno> {
        let mut entries: BTreeMap<Vec<u8>, Node> = BTreeMap::new();
        for &part in &directory.parts {
            let open = self.open_in(part, &directory.path)?;
            for entry in Dir::read_from(&open)? {
                let name = entry?.file_name().to_owned();
                if matches!(name.as_bytes(), b"." | b"..") {
                    continue;
                }
                match entries.entry(name.as_bytes().to_vec()) {
                    btree_map::Entry::Vacant(slot) => {
                        let path = join(&directory.path, name.as_bytes());
                        let (metadata, covers) = self.examine(&open, slot.key())?;
                        slot.insert(Node { path, metadata, parts: vec![part], covers });
                    }
                    btree_map::Entry::Occupied(slot) if slot.get().covers => {}
                    btree_map::Entry::Occupied(mut slot) => {
                        let (metadata, covers) = self.examine(&open, name.as_bytes())?;
                        slot.get_mut().covers = covers;
                        if metadata.is_directory() {
                            slot.get_mut().parts.push(part);
                        }
                    }
                }
            }
        }
        Ok(entries.into_values().collect())
    }

    /// What is visible in a directory, sorted by name.
    pub(crate) fn children(&self, directory: &Node) -> Result<Vec<Node>, Errno> {
        let mut entries = self.scan(directory)?;
        entries.retain(|entry| !entry.metadata.is_whiteout());
        Ok(entries)
    }

    /// Opens a directory in one of the layers that have it.
    pub(crate) fn open_in(&self, part: usize, directory: &[u8]) -> Result<OwnedFd, Errno> {
        self.state.open_directory(&self.path_in(part, directory))
    }

    /// Opens the newest form of an entry.
    pub(crate) fn open(&self, node: &Node, flags: OFlags) -> Result<OwnedFd, Errno> {
        let part = *node.parts.first().ok_or(Errno::NOENT)?;
        self.state.open_at(&self.path_in(part, &node.path), flags)
    }

    /// Target of a link.
    pub(crate) fn read_link(&self, node: &Node) -> Result<Vec<u8>, Errno> {
        let link = self.open(node, OFlags::PATH)?;
        Ok(rustix::fs::readlinkat(link, "", vec![])?.into_bytes())
    }

    /// Path below the state folder of a path in one layer.
    fn path_in(&self, part: usize, path: &[u8]) -> Vec<u8> {
        join(&self.places[part].path, path)
    }
}

impl Node {
    /// The last name of the path; empty for the root.
    pub(crate) fn name(&self) -> &[u8] {
        self.path.rsplit(|byte| *byte == b'/').next().unwrap_or(&self.path)
    }
}

/// Joins two relative paths, of which either may be empty.
pub(crate) fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() || name.is_empty() {
        return [directory, name].concat();
    }
    [directory, b"/", name].concat()
}

/// The path without its last name.
pub(crate) fn parent(path: &[u8]) -> &[u8] {
    path.iter().rposition(|byte| *byte == b'/').map_or(b"", |slash| &path[..slash])
}
