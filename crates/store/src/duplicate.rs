//! Bringing one entry of a tree into a draft: by hard link where that is possible, else by copy.
//!
//! Two names are one file of the tree if they share an inode in one layer, and only then: layers share
//! inodes with each other to save room, which says nothing about the tree. So no draft gets two names of
//! an inode that were not two names of one file where they come from; the second one is a copy.

use crate::draft::{Draft, failed, finish_file};
use crate::metadata::{Kind, Meta};
use crate::view::{Node, Tree, parent};
use crate::{Error, attributes};
use rustix::fs::{FileType, OFlags};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::fd::OwnedFd;

/// Brings entries of one tree into a draft. Directories are the caller's.
pub(crate) struct Duplicator<'a> {
    tree: &'a Tree,
    /// The source directory used last, open in the place used last.
    last: Option<(usize, Vec<u8>, OwnedFd)>,
    /// Inodes that got a name in the draft, with the place of their first one.
    linked: HashMap<u64, usize>,
    /// Where a file with several names was copied to, by its place and inode.
    copied: HashMap<(usize, u64), Vec<u8>>,
}

impl<'a> Duplicator<'a> {
    pub(crate) fn new(tree: &'a Tree) -> Self {
        Self { tree, last: None, linked: HashMap::new(), copied: HashMap::new() }
    }

    /// Links an entry, which shares bytes and metadata. Falls back to a copy where that would make one
    /// file of two, and where the file system refuses, for instance because the inode has all the names
    /// it can have.
    pub(crate) fn link(
        &mut self,
        draft: &mut Draft,
        node: &Node,
        path: &[u8],
    ) -> Result<(), Error> {
        let is_same_file = match self.linked.get(&node.metadata.inode) {
            Some(first) => *first == place_of(node),
            None => draft.claim(node.metadata.inode),
        };
        if is_same_file && self.try_link(draft, node, path)? {
            return Ok(());
        }
        self.copy(draft, node, path, &node.metadata.meta())
    }

    /// Gives an entry one more name, because whoever made the layer says that it is the same file.
    pub(crate) fn name_again(
        &mut self,
        draft: &mut Draft,
        node: &Node,
        path: &[u8],
    ) -> Result<(), Error> {
        draft.claim(node.metadata.inode);
        if self.try_link(draft, node, path)? {
            return Ok(());
        }
        self.copy(draft, node, path, &node.metadata.meta())
    }

    fn try_link(&mut self, draft: &mut Draft, node: &Node, path: &[u8]) -> Result<bool, Error> {
        let from = self.source(node)?;
        let linked = draft.link(from, node.name(), path)?.is_ok();
        if linked {
            self.linked.insert(node.metadata.inode, place_of(node));
        }
        Ok(linked)
    }

    /// Copies an entry and gives the copy this metadata. Names of one file are names of one copy.
    pub(crate) fn copy(
        &mut self,
        draft: &mut Draft,
        node: &Node,
        path: &[u8],
        meta: &Meta,
    ) -> Result<(), Error> {
        if self.link_to_copy(draft, node, path)? {
            return Ok(());
        }
        self.copy_one(draft, node, path, meta)
    }

    /// Puts a changed copy of an entry in its own place. The draft must have the directory.
    pub(crate) fn replace(
        &mut self,
        draft: &mut Draft,
        node: &Node,
        meta: &Meta,
    ) -> Result<(), Error> {
        let source = self.open_file(node)?;
        // What is read from may be the draft's own: it is open, so its name can go.
        draft.clear(&node.path)?;
        if self.link_to_copy(draft, node, &node.path)? {
            return Ok(());
        }
        match source {
            Source::File(file) => self.write_file(draft, (file, node), &node.path, meta),
            Source::Link(target) => draft.make_symlink(&node.path, &target, meta),
            Source::Other => self.copy_one(draft, node, &node.path, meta),
        }
    }

    /// Gives the copy of a file one more name, if this is one more name of that file.
    fn link_to_copy(&mut self, draft: &mut Draft, node: &Node, path: &[u8]) -> Result<bool, Error> {
        if node.metadata.links < 2 {
            return Ok(false);
        }
        let key = (place_of(node), node.metadata.inode);
        if let Some(first) = self.copied.get(&key)
            && draft.link_own(first, path)?.is_ok()
        {
            return Ok(true);
        }
        self.copied.insert(key, path.to_vec());
        Ok(false)
    }

    fn copy_one(
        &mut self,
        draft: &mut Draft,
        node: &Node,
        path: &[u8],
        meta: &Meta,
    ) -> Result<(), Error> {
        let device = node.metadata.rdev;
        match node.metadata.kind {
            Kind::File | Kind::Symlink => match self.open_file(node)? {
                Source::File(file) => self.write_file(draft, (file, node), path, meta),
                Source::Link(target) => draft.make_symlink(path, &target, meta),
                Source::Other => Ok(()),
            },
            Kind::CharacterDevice => {
                draft.make_special(path, FileType::CharacterDevice, device, meta)
            }
            Kind::BlockDevice => draft.make_special(path, FileType::BlockDevice, device, meta),
            Kind::Fifo => draft.make_special(path, FileType::Fifo, 0, meta),
            Kind::Socket => draft.make_special(path, FileType::Socket, 0, meta),
            Kind::Directory => draft.make_directory(path, meta),
        }
    }

    /// What a copy is made from.
    fn open_file(&self, node: &Node) -> Result<Source, Error> {
        let unread = |errno| failed("read", &node.path, errno);
        Ok(match node.metadata.kind {
            Kind::File => {
                let flags = OFlags::RDONLY | OFlags::NONBLOCK;
                Source::File(self.tree.open(node, flags).map_err(unread)?.into())
            }
            Kind::Symlink => Source::Link(self.tree.read_link(node).map_err(unread)?),
            _ => Source::Other,
        })
    }

    fn write_file(
        &self,
        draft: &mut Draft,
        (mut source, node): (File, &Node),
        path: &[u8],
        meta: &Meta,
    ) -> Result<(), Error> {
        self.tree.state.room().admit(node.metadata.size)?;
        let mut target = draft.make_file(path)?;
        let shown = String::from_utf8_lossy(path).into_owned();
        std::io::copy(&mut source, &mut target).map_err(Error::io("copy", shown))?;
        let target = OwnedFd::from(target);
        let finished = attributes::copy(&OwnedFd::from(source), &target)
            .and_then(|()| finish_file(&File::from(target), meta));
        finished.map_err(|errno| failed("write", path, errno))
    }

    /// The open directory that holds the entry.
    fn source(&mut self, node: &Node) -> Result<&OwnedFd, Error> {
        let part = place_of(node);
        let above = parent(&node.path);
        let kept = self.last.as_ref().is_some_and(|(p, path, _)| *p == part && path == above);
        if !kept {
            let open = self.tree.open_in(part, above);
            let open = open.map_err(|errno| failed("read", &node.path, errno))?;
            self.last = Some((part, above.to_vec(), open));
        }
        match &self.last {
            Some((_, _, open)) => Ok(open),
            None => Err(failed("read", &node.path, rustix::io::Errno::NOENT)),
        }
    }
}

/// What a copy is made from, open where it can be.
enum Source {
    File(File),
    Link(Vec<u8>),
    Other,
}

/// The place that an entry which is no directory is in.
fn place_of(node: &Node) -> usize {
    node.parts.first().copied().unwrap_or_default()
}

impl Drop for Duplicator<'_> {
    /// What the layers take alone is another now.
    fn drop(&mut self) {
        let places: HashSet<usize> = self.linked.values().copied().collect();
        let places = places.into_iter().map(|part| &self.tree.places[part]);
        for layer in places.filter_map(|place| place.layer.as_ref()) {
            self.tree.state.unmeasured().note_layer(layer.id);
        }
    }
}
