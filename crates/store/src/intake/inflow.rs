//! [`Inflow`]: a tree that arrives entry by entry, from a client that hands nothing over.
//!
//! Entries come parents first. Their paths are checked and then opened below the new layer with
//! links refused, so whatever a client sends stays in it.

use crate::Error;
use crate::draft::{Draft, failed, finish_file};
use crate::metadata::Meta;
use crate::snapshot::Snapshot;
use crate::store::Store;
use crate::view::ViewError;
use protocol::Digest;
use rustix::fs::ftruncate;
use rustix::io::Errno;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// A piece of at least this length that is all zeros becomes a hole.
const HOLE: usize = 4096;

/// A tree that arrives entry by entry. Dropped without being finished, it leaves nothing.
pub struct Inflow {
    store: Store,
    draft: Draft,
}

/// A file that arrives piece by piece.
pub struct InflowFile {
    store: Store,
    file: File,
    path: Vec<u8>,
    length: u64,
}

impl Store {
    /// Begins a tree that arrives entry by entry.
    pub fn inflow(&self) -> Result<Inflow, Error> {
        Ok(Inflow { store: self.clone(), draft: Draft::new(&self.0.state)? })
    }
}

impl Inflow {
    /// A directory; the empty path is the root.
    pub fn directory(&mut self, path: &[u8], meta: &Meta) -> Result<(), Error> {
        match path {
            [] => self.draft.set_directory(b"", meta),
            path => self.draft.make_directory(checked(path)?, meta),
        }
    }

    /// A symbolic link.
    pub fn symlink(&mut self, path: &[u8], target: &[u8], meta: &Meta) -> Result<(), Error> {
        self.draft.make_symlink(checked(path)?, target, meta)
    }

    /// One more name of a file that came before.
    pub fn hard_link(&mut self, existing: &[u8], path: &[u8]) -> Result<(), Error> {
        let linked = self.draft.link_own(checked(existing)?, checked(path)?)?;
        linked.map_err(|errno| failed("link", path, errno))
    }

    /// A file whose bytes come next.
    pub fn file(&mut self, path: &[u8]) -> Result<InflowFile, Error> {
        let file = self.draft.make_file(checked(path)?)?;
        Ok(InflowFile { store: self.store.clone(), file, path: path.to_vec(), length: 0 })
    }

    /// The tree and its digest.
    pub fn finish(self) -> Result<(Snapshot, Digest), Error> {
        let entries = self.draft.entries();
        let layer = self.draft.finish()?;
        let snapshot = self.store.0.commit(&Snapshot::empty(), layer, Some(entries));
        let digest = self.store.tree_digest(&snapshot)?;
        Ok((snapshot, digest))
    }
}

impl InflowFile {
    /// The next bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.store.0.state.room().admit(bytes.len() as u64)?;
        let start = self.length;
        self.length += bytes.len() as u64;
        if bytes.len() >= HOLE && bytes.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        let written = self.file.write_all_at(bytes, start);
        written.map_err(|error| self.failed(&error))
    }

    /// What came so far is void; the bytes come again.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.length = 0;
        ftruncate(&self.file, 0).map_err(|errno| failed("write", &self.path, errno))
    }

    /// The file is complete.
    pub fn finish(self, meta: &Meta) -> Result<(), Error> {
        let set = ftruncate(&self.file, self.length).and_then(|()| finish_file(&self.file, meta));
        set.map_err(|errno| failed("write", &self.path, errno))
    }

    fn failed(&self, error: &std::io::Error) -> Error {
        failed("write", &self.path, Errno::from_io_error(error).unwrap_or(Errno::IO))
    }
}

/// The path, if it is one of an entry below the root.
fn checked(path: &[u8]) -> Result<&[u8], Error> {
    let mut names = path.split(|byte| *byte == b'/');
    let odd = |name: &[u8]| matches!(name, b"" | b"." | b"..") || name.contains(&0);
    match names.any(odd) {
        true => Err(ViewError::NotFound(String::from_utf8_lossy(path).into_owned()).into()),
        false => Ok(path),
    }
}
