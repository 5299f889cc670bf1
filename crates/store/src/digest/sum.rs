//! The sums of trees and files that users see and keep.
//!
//! They are those that programs of this ecosystem have written down: sha256 over the fields of an
//! entry's tar header without name and times, then its bytes; that of a directory over its header's
//! sum and the names and sums of what is in it. The store does not use them itself, because one
//! cannot be had without reading every file.

use super::{each_entry, named_key};
use crate::snapshot::Snapshot;
use crate::store::Inner;
use crate::view::{Node, Tree, failure};
use crate::{Error, Kind, Metadata, attributes};
use protocol::Digest;
use rustix::fs::OFlags;
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::Read as _;
use std::sync::Arc;

/// Bytes read at once.
const PIECE: usize = 256 * 1024;

/// Sum of all that is in a snapshot, found by its layers if it was ever taken before.
pub(crate) fn of_tree(inner: &Arc<Inner>, snapshot: &Snapshot) -> Result<Digest, Error> {
    let key = named_key("sum of layers", snapshot);
    if let Some(known) = inner.database.tree_digest(&key) {
        return Ok(known);
    }
    inner.require(snapshot.layers())?;
    let tree = inner.tree(snapshot);
    let mut open = OpenDirectories::default();
    each_entry(&tree, |node| of_entry(&tree, node), |node, sum| open.take(node, sum))?;
    let sum = open.finish();
    inner.database.put_tree_digest(key, sum);
    Ok(sum)
}

/// Sum of one file.
pub(crate) fn of_file(inner: &Inner, snapshot: &Snapshot, path: &str) -> Result<Digest, Error> {
    inner.require(snapshot.layers())?;
    let tree = inner.tree(snapshot);
    let node = tree.find_file(path)?;
    Ok(of_entry(&tree, &node).map_err(|errno| failure(path, errno))?)
}

/// The directories between the root of a walk and where it is.
#[derive(Default)]
struct OpenDirectories(Vec<OpenDirectory>);

struct OpenDirectory {
    path: Vec<u8>,
    /// Over what came so far.
    sum: Sha256,
}

impl OpenDirectories {
    /// Takes the next entry of a walk. For a directory the sum is that of its header.
    fn take(&mut self, node: &Node, sum: Digest) {
        let parent = node.path.len().saturating_sub(node.name().len() + 1);
        while self.0.last().is_some_and(|last| !node.path.is_empty() && last.path.len() > parent) {
            self.close_last();
        }
        if node.metadata.is_directory() {
            let mut directory = OpenDirectory { path: node.path.clone(), sum: Sha256::new() };
            directory.add(b"", &sum);
            self.0.push(directory);
        } else if let Some(directory) = self.0.last_mut() {
            directory.add(node.name(), &sum);
        }
    }

    /// Ends the innermost directory and adds it to the one it is in. Gives its sum.
    fn close_last(&mut self) -> Digest {
        let Some(done) = self.0.pop() else { return sum_of(Sha256::new()) };
        let name = done.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let sum = sum_of(done.sum);
        if let Some(around) = self.0.last_mut() {
            around.add(name, &sum);
        }
        sum
    }

    fn finish(mut self) -> Digest {
        while self.0.len() > 1 {
            self.close_last();
        }
        self.close_last()
    }
}

impl OpenDirectory {
    fn add(&mut self, name: &[u8], sum: &Digest) {
        self.sum.update(b"\0");
        self.sum.update(name);
        self.sum.update(format!("sha256:{sum}"));
    }
}

/// Sum of an entry; of a directory without what is in it.
fn of_entry(tree: &Tree, node: &Node) -> Result<Digest, Errno> {
    let metadata = &node.metadata;
    match metadata.kind {
        Kind::File => {
            let file = tree.open(node, OFlags::RDONLY | OFlags::NONBLOCK)?;
            let before = header(metadata, b"", &attributes::read(&file)?);
            of_bytes(before, File::from(file))
        }
        Kind::Directory if !node.parts.is_empty() => {
            let directory = tree.open(node, OFlags::RDONLY | OFlags::DIRECTORY)?;
            Ok(sum_of(header(metadata, b"", &attributes::read(&directory)?)))
        }
        Kind::Symlink => Ok(sum_of(header(metadata, &tree.read_link(node)?, &[]))),
        _ => Ok(sum_of(header(metadata, b"", &[]))),
    }
}

fn of_bytes(mut hasher: Sha256, mut file: File) -> Result<Digest, Errno> {
    let mut piece = vec![0; PIECE];
    loop {
        let read = file.read(&mut piece);
        match read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))? {
            0 => return Ok(sum_of(hasher)),
            read => hasher.update(&piece[..read]),
        }
    }
}

/// What stands before the bytes of an entry: names and values of the fields one after the other.
fn header(metadata: &Metadata, target: &[u8], attributes: &[attributes::Attribute]) -> Sha256 {
    let kind = match metadata.kind {
        Kind::File | Kind::Socket => "0",
        Kind::Symlink => "2",
        Kind::CharacterDevice => "3",
        Kind::BlockDevice => "4",
        Kind::Directory => "5",
        Kind::Fifo => "6",
    };
    let size = if metadata.kind == Kind::File { metadata.size } else { 0 };
    let device = match metadata.kind {
        Kind::CharacterDevice | Kind::BlockDevice => metadata.rdev,
        _ => 0,
    };
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let Metadata { mode, uid, gid, .. } = metadata;
    let before = format!("namemode{mode}uid{uid}gid{gid}size{size}typeflag{kind}linkname");
    let mut hasher = Sha256::new().chain_update(before).chain_update(target);
    hasher.update(format!("unamegnamedevmajor{major}devminor{minor}"));
    for (name, value) in attributes {
        hasher.update(name);
        hasher.update(value);
    }
    hasher
}

fn sum_of(hasher: Sha256) -> Digest {
    Digest::from_bytes(hasher.finalize().into())
}
