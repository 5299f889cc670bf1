//! Entries by their exact path: as bytes, with no link followed. For who has the path from a walk.

use super::{Node, Tree, View, ViewError, failure, shorten};
use crate::Error;
use crate::durable::Verified;
use crate::metadata::{Kind, Metadata};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::File;
use std::io::Read;

impl Tree {
    /// The entry at a path of which no part is a link; none if it is not there.
    pub(crate) fn at(&self, path: &[u8]) -> Result<Option<Node>, Errno> {
        let mut node = self.root()?;
        for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            if !node.metadata.is_directory() {
                return Ok(None);
            }
            match self.lookup(&node, name)? {
                Some(child) => node = child,
                None => return Ok(None),
            }
        }
        Ok(Some(node))
    }

    /// The bytes of a file, or where a link leads. What is longer than `longest` is cut there.
    pub(crate) fn contents_of(&self, node: &Node, longest: u64) -> Result<Vec<u8>, Errno> {
        if node.metadata.kind == Kind::Symlink {
            return self.read_link(node);
        }
        if node.metadata.kind != Kind::File {
            return Ok(vec![]);
        }
        let file = self.open(node, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        let mut bytes = vec![];
        let read = File::from(file).take(longest).read_to_end(&mut bytes);
        read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        Ok(bytes)
    }
}

impl View {
    /// What is at an exact path; none if nothing is.
    pub fn entry_at(&self, path: &[u8]) -> Result<Option<Metadata>, Error> {
        Ok(self.node_at(path)?.map(|node| node.metadata))
    }

    /// The bytes of the file at an exact path, or where the link there leads; none if it is something
    /// else or nothing. What is longer than `longest` is cut there, else the bytes are compared with
    /// what they were.
    pub fn contents_at(&self, path: &[u8], longest: u64) -> Result<Option<Vec<u8>>, Error> {
        let Some(node) = self.node_at(path)? else { return Ok(None) };
        let shown = || shorten(&String::from_utf8_lossy(path));
        match node.metadata.kind {
            Kind::Symlink => {
                let target = self.tree.read_link(&node);
                Ok(Some(target.map_err(|errno| failure(&shown(), errno))?))
            }
            Kind::File => {
                let file = self.verified(&node).map_err(|errno| failure(&shown(), errno))?;
                let mut bytes = vec![];
                let read = file.take(longest).read_to_end(&mut bytes);
                read.map_err(Error::from_read(shown()))?;
                Ok(Some(bytes))
            }
            _ => Ok(None),
        }
    }

    /// The bytes of the file at an exact path; none if it is something else or nothing.
    pub fn read_at(&self, path: &[u8]) -> Result<Option<Verified>, Error> {
        let found = self.node_at(path)?.filter(|node| node.metadata.is_file());
        let opened = found.map(|node| self.verified(&node)).transpose();
        Ok(opened.map_err(|errno| failure(&shorten(&String::from_utf8_lossy(path)), errno))?)
    }

    /// Visits what is at an exact path and everything in it, each directory before its entries.
    pub fn visit_at(
        &self,
        path: &[u8],
        visit: &mut dyn FnMut(&[u8], &Metadata),
    ) -> Result<(), Error> {
        let mut ahead: Vec<Node> = self.node_at(path)?.into_iter().collect();
        while let Some(node) = ahead.pop() {
            visit(&node.path, &node.metadata);
            if node.metadata.is_directory() {
                let pushed = self.push_children(&node, &mut ahead);
                pushed.map_err(|errno| failure(&String::from_utf8_lossy(&node.path), errno))?;
            }
        }
        Ok(())
    }

    fn node_at(&self, path: &[u8]) -> Result<Option<Node>, Error> {
        if let Some(id) = self.tree.lost {
            return Err(ViewError::Lost(id).into());
        }
        let found = self.tree.at(path);
        found.map_err(|errno| failure(&String::from_utf8_lossy(path), errno).into())
    }
}
