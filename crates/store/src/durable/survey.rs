//! Looks over a layer and writes down what it is made of.
//!
//! Only names and `stat` are read here; the digests of contents are taken over from whoever wrote
//! the files, and what nobody knows is filled in later by the scrub.

use super::manifest::{Directory, Entry, Facts, Sum};
use crate::attributes;
use crate::metadata::Metadata;
use crate::snapshot::LayerId;
use crate::state::{self, open_below};
use crate::view::join;
use rustix::fs::{AtFlags, Dir, OFlags, fstat, statat};
use rustix::io::Errno;
use std::collections::HashMap;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Digests of files in one layer, by a hash of their path. The path itself would take more room than
/// the digest.
#[derive(Default)]
pub(crate) struct Sums(HashMap<u64, Sum>);

impl Sums {
    pub(crate) fn insert(&mut self, path: &[u8], sum: Sum) {
        self.0.insert(key(path), sum);
    }

    pub(crate) fn remove(&mut self, path: &[u8]) {
        self.0.remove(&key(path));
    }

    pub(crate) fn get(&self, path: &[u8]) -> Option<Sum> {
        self.0.get(&key(path)).copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

fn key(path: &[u8]) -> u64 {
    let digest = blake3::hash(path);
    u64::from_le_bytes(*digest.as_bytes().first_chunk().expect("a digest has 32 bytes"))
}

/// Why a survey ended early.
pub(crate) enum Stopped {
    /// The layer has more entries than it was to have.
    Large,
    Errno(Errno),
    /// Whoever takes the directories could not.
    Taker(std::io::Error),
}

impl From<Errno> for Stopped {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

/// Gives every directory of a layer to `take`, parents before children.
pub(crate) fn survey(
    root: BorrowedFd<'_>,
    layer: LayerId,
    sums: &Sums,
    limit: usize,
    take: &mut dyn FnMut(Directory) -> std::io::Result<()>,
) -> Result<(), Stopped> {
    let layer = state::layer_path(layer).into_bytes();
    let mut ahead = vec![vec![]];
    let mut seen = 0;
    while let Some(path) = ahead.pop() {
        let open = open_below(root, &join(&layer, &path), OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut facts = Facts::of(&Metadata::from(&fstat(&open)?));
        facts.attributes = Some(attributes::digest(&open)?);
        let names = names_in(&open)?;
        seen += names.len();
        if seen > limit {
            return Err(Stopped::Large);
        }
        let mut entries = Vec::with_capacity(names.len());
        for name in names {
            let metadata = Metadata::from(&statat(&open, &name[..], AtFlags::SYMLINK_NOFOLLOW)?);
            let below = join(&path, &name);
            let mut facts = Facts::of(&metadata);
            if metadata.is_file() {
                facts.sum = sums.get(&below);
            }
            if metadata.is_directory() {
                ahead.push(below);
            }
            let facts = (!metadata.is_directory()).then_some(facts);
            entries.push(Entry { name, facts });
        }
        take(Directory { path, facts, entries }).map_err(Stopped::Taker)?;
    }
    Ok(())
}

fn names_in(directory: &OwnedFd) -> Result<Vec<Vec<u8>>, Errno> {
    let mut names = vec![];
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            names.push(name.to_vec());
        }
    }
    names.sort_unstable();
    Ok(names)
}
