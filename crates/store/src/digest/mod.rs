//! The identity of a tree's content.
//!
//! Two trees with equal content have equal digests whatever their layers, so an action that reads a
//! tree hits when the tree is the same, however it came to be. Times are left out: they differ
//! between two runs of the same work. Entries are taken in a fixed order and hashed in batches, the
//! bytes of files in parallel; a tree is never held in memory as a whole.

pub(crate) mod sum;

use crate::snapshot::{LayerId, Snapshot};
use crate::store::Inner;
use crate::view::{Node, Tree, failure};
use crate::{Error, Kind, Metadata, attributes, compact};
use protocol::{Digest, DigestBuilder};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::collections::HashMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

/// Raised when the digest of an unchanged tree changes, because stored ones then mean nothing.
const VERSION: u64 = 1;
/// Entries hashed at once.
const BATCH: usize = 1024;
/// Digests of files that each of two generations keeps.
const KEPT: usize = 32_768;

/// Digests of files in layers. Layers never change, so layer and inode name the bytes for good.
#[derive(Default)]
pub(crate) struct FileDigests(Mutex<Generations>);

/// When the younger generation is full it becomes the older one: what is used stays, and memory is
/// bounded without keeping an order.
#[derive(Default)]
struct Generations {
    young: HashMap<(LayerId, u64), Digest>,
    old: HashMap<(LayerId, u64), Digest>,
}

impl FileDigests {
    fn get(&self, key: &(LayerId, u64)) -> Option<Digest> {
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(digest) = generations.young.get(key) {
            return Some(*digest);
        }
        let digest = generations.old.remove(key)?;
        generations.insert(*key, digest);
        Some(digest)
    }

    fn put(&self, key: (LayerId, u64), digest: Digest) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, digest);
    }
}

impl Generations {
    fn insert(&mut self, key: (LayerId, u64), digest: Digest) {
        if self.young.len() >= KEPT {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, digest);
    }
}

/// Digest of all that is in a snapshot, found by its layers if it was ever taken before.
pub(crate) fn of_tree(inner: &Arc<Inner>, snapshot: &Snapshot) -> Result<Digest, Error> {
    let key = key_of(snapshot);
    if let Some(known) = inner.database.tree_digest(&key) {
        return Ok(known);
    }
    inner.require(snapshot.layers())?;
    let hashing = Hashing { tree: inner.tree(snapshot), known: &inner.file_digests };
    let tree = hashing.whole()?;
    inner.database.put_tree_digest(key, tree);
    Ok(tree)
}

/// Notes the digest of a snapshot that was found without reading it.
pub(crate) fn remember(inner: &Inner, snapshot: &Snapshot, digest: Digest) {
    inner.database.put_tree_digest(key_of(snapshot), digest);
}

fn key_of(snapshot: &Snapshot) -> Digest {
    named_key("digest of layers", snapshot)
}

fn named_key(name: &str, snapshot: &Snapshot) -> Digest {
    let mut key = Digest::builder(name);
    key.number(VERSION).digest(&compact::digest_of(snapshot.layers())).finish()
}

/// Digest of one file.
pub(crate) fn of_file(inner: &Inner, snapshot: &Snapshot, path: &str) -> Result<Digest, Error> {
    inner.require(snapshot.layers())?;
    let hashing = Hashing { tree: inner.tree(snapshot), known: &inner.file_digests };
    let node = hashing.tree.find_file(path)?;
    let contents = hashing.contents(&node).map_err(|errno| failure(path, errno))?;
    let mut digest = Digest::builder("file");
    add_entry(&mut digest, b"", &node.metadata, &contents);
    Ok(digest.finish())
}

struct Hashing<'a> {
    tree: Tree,
    known: &'a FileDigests,
}

impl Hashing<'_> {
    fn whole(&self) -> Result<Digest, Error> {
        let mut digest = Digest::builder("tree");
        each_entry(
            &self.tree,
            |node| self.contents(node),
            |node, contents| add_entry(&mut digest, &node.path, &node.metadata, &contents),
        )?;
        Ok(digest.finish())
    }

    /// What an entry holds beside its metadata.
    fn contents(&self, node: &Node) -> Result<Digest, Errno> {
        match node.metadata.kind {
            Kind::File => self.file(node),
            Kind::Directory if node.parts.is_empty() => Ok(with_attributes(&Digest::of(b""), &[])),
            Kind::Directory => {
                let directory = self.tree.open(node, OFlags::RDONLY | OFlags::DIRECTORY)?;
                Ok(with_attributes(&Digest::of(b""), &attributes::read(&directory)?))
            }
            Kind::Symlink => Ok(Digest::of(&self.tree.read_link(node)?)),
            _ => Ok(Digest::of(&node.metadata.rdev.to_le_bytes())),
        }
    }

    fn file(&self, node: &Node) -> Result<Digest, Errno> {
        let layer = node.parts.first().and_then(|part| self.tree.places[*part].layer.as_ref());
        let key = layer.map(|layer| (layer.id, node.metadata.inode));
        if let Some(known) = key.and_then(|key| self.known.get(&key)) {
            return Ok(known);
        }
        let file = File::from(self.tree.open(node, OFlags::RDONLY | OFlags::NONBLOCK)?);
        let mut hasher = blake3::Hasher::new();
        let read = hasher.update_reader(&file);
        read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        let bytes = Digest::from_bytes(*hasher.finalize().as_bytes());
        let digest = with_attributes(&bytes, &attributes::read(&OwnedFd::from(file))?);
        if let Some(key) = key {
            self.known.put(key, digest);
        }
        Ok(digest)
    }
}

/// Reads the entries of a tree, many at once, and takes them one after the other: each directory
/// before what is in it, names sorted.
fn each_entry<T: Send>(
    tree: &Tree,
    read: impl Fn(&Node) -> Result<T, Errno> + Sync,
    mut take: impl FnMut(&Node, T),
) -> Result<(), Error> {
    let mut ahead = vec![tree.root().map_err(|errno| failure("/", errno))?];
    while !ahead.is_empty() {
        let batch = next_batch(tree, &mut ahead)?;
        let found: Vec<_> = batch.par_iter().map(&read).collect();
        for (node, found) in batch.iter().zip(found) {
            let shown = || String::from_utf8_lossy(&node.path);
            take(node, found.map_err(|errno| failure(&shown(), errno))?);
        }
    }
    Ok(())
}

/// Takes entries off the stack, each directory before what is in it.
fn next_batch(tree: &Tree, ahead: &mut Vec<Node>) -> Result<Vec<Node>, Error> {
    let mut batch = vec![];
    while batch.len() < BATCH {
        let Some(node) = ahead.pop() else { break };
        if node.metadata.is_directory() {
            let shown = String::from_utf8_lossy(&node.path);
            let children = tree.children(&node).map_err(|errno| failure(&shown, errno))?;
            ahead.extend(children.into_iter().rev());
        }
        batch.push(node);
    }
    Ok(batch)
}

/// What an entry without extended attributes holds: the bytes of a file, nothing for a directory.
pub(crate) fn plain_contents(bytes: &Digest) -> Digest {
    with_attributes(bytes, &[])
}

fn with_attributes(bytes: &Digest, attributes: &[attributes::Attribute]) -> Digest {
    let mut digest = Digest::builder("contents");
    digest.digest(bytes);
    for (name, value) in attributes {
        digest.bytes(name).bytes(value);
    }
    digest.finish()
}

/// Adds one entry of a tree. They come in the order of a walk, the names of a directory sorted.
pub(crate) fn add_entry(
    digest: &mut DigestBuilder,
    path: &[u8],
    metadata: &Metadata,
    contents: &Digest,
) {
    let kind: &str = match metadata.kind {
        Kind::File => "file",
        Kind::Directory => "directory",
        Kind::Symlink => "symlink",
        Kind::CharacterDevice => "character device",
        Kind::BlockDevice => "block device",
        Kind::Fifo => "fifo",
        Kind::Socket => "socket",
    };
    digest.bytes(path).text(kind).number(metadata.mode.into());
    digest.number(metadata.uid.into()).number(metadata.gid.into()).digest(contents);
}
