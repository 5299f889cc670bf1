//! Bytes by their sha256: streams of execs, downloads.
//!
//! ```text
//! blobs/sha256/<first two digits>/<64 hex digits>
//! ```
//!
//! A blob is written under `tmp/` and renamed when it is whole, so one that is there is complete.

use crate::Error;
use crate::snapshot::LayerId;
use crate::state::StateDir;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

/// The sha256 of a blob; 64 hex digits in text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobId([u8; 32]);

/// A blob that is being written. Dropped unfinished, it is gone.
pub struct BlobWriter {
    state: Arc<StateDir>,
    path: PathBuf,
    file: File,
    hasher: Sha256,
}

/// The text is not 64 hex digits.
#[derive(Debug, thiserror::Error)]
#[error("a blob id is 64 hex digits")]
pub struct ParseBlobIdError;

impl BlobId {
    /// The id of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The id with exactly this sha256.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The raw sha256.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl BlobWriter {
    pub(crate) fn new(state: &Arc<StateDir>) -> Result<Self, Error> {
        let path = state.path().join("tmp").join(LayerId::random().to_string());
        let file = File::create_new(&path).map_err(Error::io("create", &path))?;
        Ok(Self { state: Arc::clone(state), path, file, hasher: Sha256::new() })
    }

    /// The finished blob.
    pub fn finish(self) -> Result<BlobId, Error> {
        let id = BlobId(self.hasher.clone().finalize().into());
        let place = place(&self.state, &id);
        if let Some(folder) = place.parent() {
            fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
        }
        self.state.pins().blobs.keep_fresh(id);
        let durable = self.state.durable();
        if durable.knows_blob(id) && place.exists() {
            return Ok(id);
        }
        durable.made_blob(id);
        // A file that is there and whole stays: committed rows may name it, and ours is not on disk.
        if !is_whole(&place, &id) {
            fs::rename(&self.path, &place).map_err(Error::io("write", &place))?;
        }
        self.state.unmeasured().note_blob(id);
        Ok(id)
    }
}

impl Write for BlobWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.state.room().admit(bytes.len() as u64)?;
        let written = self.file.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for BlobWriter {
    fn drop(&mut self) {
        // After `finish` there is nothing at the path any more.
        self.state.trash().discard(&self.path);
    }
}

pub(crate) fn put(state: &Arc<StateDir>, bytes: &[u8]) -> Result<BlobId, Error> {
    let id = BlobId::of(bytes);
    // Pinned first, so that what is there stays until the caller has it. What an earlier process has
    // left is not trusted: it may have died while it wrote.
    let pinned = state.pins().blobs.pin(id).is_some();
    if pinned && state.durable().knows_blob(id) && place(state, &id).exists() {
        state.pins().blobs.keep_fresh(id);
        return Ok(id);
    }
    let mut writer = BlobWriter::new(state)?;
    writer.write_all(bytes).map_err(Error::io("write", place(state, &id)))?;
    writer.finish()
}

pub(crate) fn open(state: &StateDir, id: &BlobId) -> Result<File, Error> {
    let place = place(state, id);
    File::open(&place).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::MissingBlob(*id),
        _ => Error::io("open", &place)(error),
    })
}

/// Whether a file has the bytes that its name says.
fn is_whole(place: &Path, id: &BlobId) -> bool {
    sum(place).is_ok_and(|sum| sum == id.0)
}

fn sum(place: &Path) -> io::Result<[u8; 32]> {
    let mut file = File::open(place)?;
    let (mut hasher, mut piece) = (Sha256::new(), vec![0; 128 * 1024]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hasher.finalize().into()),
            count => hasher.update(&piece[..count]),
        }
    }
}

pub(crate) fn place(state: &StateDir, id: &BlobId) -> PathBuf {
    state.path().join(relative_place(id))
}

/// Where a blob lies below the state folder.
pub(crate) fn relative_place(id: &BlobId) -> PathBuf {
    let name = id.to_string();
    PathBuf::from("blobs/sha256").join(&name[..2]).join(name)
}

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for BlobId {
    type Err = ParseBlobIdError;

    fn from_str(text: &str) -> Result<Self, ParseBlobIdError> {
        // Both are 256 bits in the same text form.
        let digest: protocol::Digest = text.parse().map_err(|_| ParseBlobIdError)?;
        Ok(Self(*digest.as_bytes()))
    }
}

impl Serialize for BlobId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        protocol::Digest::from_bytes(self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for BlobId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(*protocol::Digest::deserialize(deserializer)?.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn blobs_are_found_by_their_sha256_and_unfinished_ones_leave_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let state = Arc::new(StateDir::open(folder.path()).unwrap());
        let id = put(&state, b"abc").unwrap();
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(id.to_string(), known);
        assert_eq!(known.parse::<BlobId>().unwrap(), id);
        let mut writer = BlobWriter::new(&state).unwrap();
        writer.write_all(b"a").unwrap();
        writer.write_all(b"bc").unwrap();
        assert_eq!(writer.finish().unwrap(), id);
        let mut text = String::new();
        open(&state, &id).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "abc");
        drop(BlobWriter::new(&state).unwrap());
        assert_eq!(fs::read_dir(folder.path().join("tmp")).unwrap().count(), 0);
        let missing = open(&state, &BlobId::of(b"other")).unwrap_err();
        assert!(matches!(missing, Error::MissingBlob(_)));
    }
}
