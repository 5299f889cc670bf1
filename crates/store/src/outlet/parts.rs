//! A tree as a list of entries, for who passes it on to another machine.

use super::{FirstNames, Outlet, OutletFile, meta, refused};
use crate::Error;
use crate::metadata::Kind;
use crate::view::Node;
use rustix::fs::OFlags;

/// One entry of a tree. Paths are relative to the directory that goes out.
pub enum Part {
    /// A directory; the first one, with an empty path, is the one that goes out.
    Directory {
        /// Where.
        path: Vec<u8>,
        /// Mode and time.
        meta: landing::Meta,
    },
    /// A regular file.
    File {
        /// Where.
        path: Vec<u8>,
        /// All else.
        file: OutletFile,
    },
    /// A symbolic link.
    Symlink {
        /// Where.
        path: Vec<u8>,
        /// Time.
        meta: landing::Meta,
        /// Where it leads.
        target: Vec<u8>,
    },
    /// One more name of a file.
    HardLink {
        /// Where.
        path: Vec<u8>,
        /// Its first name, which came before.
        first: Vec<u8>,
    },
}

impl Outlet {
    /// Visits all entries, each directory before what is in it, names in byte order, until `visit`
    /// says that it is enough.
    pub fn parts(&self, visit: &mut dyn FnMut(Part) -> bool) -> Result<(), Error> {
        let mut names = FirstNames::default();
        // Nesting has no bound that a stack would be safe with.
        let mut ahead = vec![self.top.clone()];
        while let Some(node) = ahead.pop() {
            if node.metadata.is_directory() {
                let children = self.tree.children(&node);
                let children = children.map_err(|errno| self.unread(&node.path, errno))?;
                ahead.extend(children.into_iter().rev());
            }
            if !visit(self.part(&node, &mut names)?) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn part(&self, node: &Node, names: &mut FirstNames) -> Result<Part, Error> {
        let (path, meta) = (self.below(node).to_vec(), meta(&node.metadata));
        match node.metadata.kind {
            Kind::Directory => Ok(Part::Directory { path, meta }),
            Kind::Symlink => {
                let target = self.tree.read_link(node);
                let target = target.map_err(|errno| self.unread(&node.path, errno))?;
                Ok(Part::Symlink { path, meta, target })
            }
            Kind::File => {
                if let Some(first) = names.of(node, &path) {
                    return Ok(Part::HardLink { path, first: first.to_vec() });
                }
                let file = self.tree.open(node, OFlags::RDONLY | OFlags::NONBLOCK);
                let file = file.map_err(|errno| self.unread(&node.path, errno))?;
                Ok(Part::File { path, file: self.file(node, file.into()) })
            }
            kind => Err(refused(&path, kind)),
        }
    }
}
