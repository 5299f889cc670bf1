//! Bringing one entry of a tree into a draft: by hard link where that is possible, else by copy.

use crate::draft::{Draft, failed, finish_file};
use crate::metadata::{Kind, Meta};
use crate::view::{Node, Tree, parent};
use crate::{Error, attributes};
use rustix::fs::{FileType, OFlags};
use std::collections::HashSet;
use std::fs::File;
use std::os::fd::OwnedFd;

/// Brings entries of one tree into a draft. Directories are the caller's.
pub(crate) struct Duplicator<'a> {
    tree: &'a Tree,
    /// The source directory used last, open in the place used last.
    last: Option<(usize, Vec<u8>, OwnedFd)>,
    /// Places whose files got names in the draft.
    linked: HashSet<usize>,
}

impl<'a> Duplicator<'a> {
    pub(crate) fn new(tree: &'a Tree) -> Self {
        Self { tree, last: None, linked: HashSet::new() }
    }

    /// Links an entry, which shares bytes and metadata. Falls back to a copy where the file system
    /// refuses, for instance because the inode has all the names it can have.
    pub(crate) fn link(
        &mut self,
        draft: &mut Draft,
        node: &Node,
        path: &[u8],
    ) -> Result<(), Error> {
        let from = self.source(node)?;
        if draft.link(from, node.name(), path)?.is_ok() {
            self.linked.extend(node.parts.first());
            return Ok(());
        }
        self.copy(draft, node, path, &node.metadata.meta())
    }

    /// Copies an entry and gives the copy this metadata.
    pub(crate) fn copy(
        &mut self,
        draft: &mut Draft,
        node: &Node,
        path: &[u8],
        meta: &Meta,
    ) -> Result<(), Error> {
        let device = node.metadata.rdev;
        match node.metadata.kind {
            Kind::File => self.copy_file(draft, node, path, meta),
            Kind::Symlink => {
                let target = self.tree.read_link(node);
                let target = target.map_err(|errno| failed("read", &node.path, errno))?;
                draft.make_symlink(path, &target, meta)
            }
            Kind::CharacterDevice => {
                draft.make_special(path, FileType::CharacterDevice, device, meta)
            }
            Kind::BlockDevice => draft.make_special(path, FileType::BlockDevice, device, meta),
            Kind::Fifo => draft.make_special(path, FileType::Fifo, 0, meta),
            Kind::Socket => draft.make_special(path, FileType::Socket, 0, meta),
            Kind::Directory => draft.make_directory(path, meta),
        }
    }

    fn copy_file(
        &self,
        draft: &mut Draft,
        node: &Node,
        path: &[u8],
        meta: &Meta,
    ) -> Result<(), Error> {
        let unread = |errno| failed("read", &node.path, errno);
        let source = self.tree.open(node, OFlags::RDONLY | OFlags::NONBLOCK).map_err(unread)?;
        let mut source = File::from(source);
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
        let part = node.parts.first().copied().unwrap_or_default();
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

impl Drop for Duplicator<'_> {
    /// What the layers take alone is another now.
    fn drop(&mut self) {
        let places = self.linked.iter().map(|part| &self.tree.places[*part]);
        for layer in places.filter_map(|place| place.layer.as_ref()) {
            self.tree.state.unmeasured().note_layer(layer.id);
        }
    }
}
