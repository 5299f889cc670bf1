//! From a path as it was typed to an entry of the tree.
//!
//! The kernel is never asked to follow a link: names are looked up one at a time, links are read and
//! followed here, an absolute one starts at the root of the tree again and `..` stops there. So no
//! path, however hostile, leads outside.

use super::error::{ViewError, shorten};
use super::tree::{Node, Tree};
use crate::metadata::Kind;
use rustix::io::Errno;

/// As the kernel's own limits.
const LONGEST_PATH: usize = 4096;
const LONGEST_NAME: usize = 255;
const MOST_LINKS: usize = 40;

/// Where a path leads.
pub(crate) enum Located {
    /// To something that is there.
    Found(Node),
    /// To something that could be made.
    Missing {
        /// The last directory on the way that is there.
        parent: Node,
        /// Names below it, at least one.
        names: Vec<Vec<u8>>,
    },
}

/// Whether the last name of a path is followed if it is a link.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    Follow,
    Keep,
}

impl Tree {
    /// Follows a path.
    pub(crate) fn locate(&self, path: &str, last: Last) -> Result<Located, ViewError> {
        check(path)?;
        if let Some(id) = self.lost {
            return Err(ViewError::Lost(id));
        }
        let failed = |errno| failure(path, errno);
        let mut directories = vec![self.root().map_err(failed)?];
        let mut missing: Vec<Vec<u8>> = vec![];
        let mut ahead = names(path.as_bytes());
        let mut links = 0;
        while let Some(name) = ahead.pop() {
            if name == b".." {
                if missing.pop().is_none() && directories.len() > 1 {
                    directories.pop();
                }
                continue;
            }
            if name.len() > LONGEST_NAME {
                return Err(ViewError::NameTooLong(shorten(path)));
            }
            let Some(directory) = directories.last().filter(|_| missing.is_empty()) else {
                missing.push(name);
                continue;
            };
            let Some(node) = self.lookup(directory, &name).map_err(failed)? else {
                missing.push(name);
                continue;
            };
            match node.metadata.kind {
                Kind::Directory => directories.push(node),
                Kind::Symlink if !ahead.is_empty() || last == Last::Follow => {
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(ViewError::TooManyLinks(shorten(path)));
                    }
                    let target = self.read_link(&node).map_err(failed)?;
                    if target.starts_with(b"/") {
                        directories.truncate(1);
                    }
                    ahead.extend(names(&target));
                }
                _ if ahead.is_empty() => return Ok(Located::Found(node)),
                _ => return Err(ViewError::NotADirectory(shorten(path))),
            }
        }
        let node = directories.pop().ok_or_else(|| failed(Errno::NOENT))?;
        Ok(match missing.is_empty() {
            true => Located::Found(node),
            false => Located::Missing { parent: node, names: missing },
        })
    }

    /// Follows a path to something that is there.
    pub(crate) fn find(&self, path: &str, last: Last) -> Result<Node, ViewError> {
        match self.locate(path, last)? {
            Located::Found(node) => Ok(node),
            Located::Missing { .. } => Err(ViewError::NotFound(shorten(path))),
        }
    }

    /// Follows a path to a directory.
    pub(crate) fn find_directory(&self, path: &str) -> Result<Node, ViewError> {
        let node = self.find(path, Last::Follow)?;
        if node.metadata.is_directory() {
            return Ok(node);
        }
        Err(ViewError::NotADirectory(shorten(path)))
    }

    /// Follows a path to a regular file.
    pub(crate) fn find_file(&self, path: &str) -> Result<Node, ViewError> {
        let node = self.find(path, Last::Follow)?;
        match node.metadata.kind {
            Kind::File => Ok(node),
            Kind::Directory => Err(ViewError::NotAFile(shorten(path))),
            _ => Err(ViewError::NotRegular(shorten(path))),
        }
    }
}

/// What the file system said about a path.
pub(crate) fn failure(path: &str, errno: Errno) -> ViewError {
    match errno {
        // The path itself was checked: links and nesting have led to one that is longer.
        Errno::NAMETOOLONG => ViewError::PathTooLong(shorten(path)),
        errno => ViewError::Io { path: shorten(path), source: errno.into() },
    }
}

fn check(path: &str) -> Result<(), ViewError> {
    if path.len() > LONGEST_PATH {
        // A single long name has an error of its own that clients look for.
        if path.len() <= 64 * 1024 && path.split('/').any(|name| name.len() > LONGEST_NAME) {
            return Err(ViewError::NameTooLong(shorten(path)));
        }
        return Err(ViewError::PathTooLong(shorten(path)));
    }
    if path.contains('\0') {
        return Err(ViewError::Nul(shorten(&path.replace('\0', "\\0"))));
    }
    Ok(())
}

/// The names of a path, last first.
fn names(path: &[u8]) -> Vec<Vec<u8>> {
    let parts = path.rsplit(|byte| *byte == b'/');
    parts.filter(|name| !matches!(*name, b"" | b".")).map(<[u8]>::to_vec).collect()
}
