//! The folder of downloaded things: a mirror of the store, which counts and collects it, or a folder that somebody names
//! and several engines may share.
//!
//! ```text
//! releases/<digest>   what the signed file of a suite said, with the time of the last look
//! indexes/<sha256>    parsed package index, by the digest of the file it came from
//! packages/<sha256>   packages
//! tmp/                downloads on their way
//! ```
//!
//! Files appear under their name by rename, complete and verified; nobody changes them afterwards.

use super::error::Error;
use protocol::Digest;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// After this long a file in `tmp/` belongs to nobody any more.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);

#[derive(Clone, Debug)]
pub(super) struct Cache {
    root: PathBuf,
}

impl Cache {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Makes the folders and removes what a process that died left in `tmp/`.
    pub(super) fn prepare(&self) -> Result<(), Error> {
        for name in ["releases", "indexes", "packages", "tmp"] {
            let path = self.root.join(name);
            fs::create_dir_all(&path).map_err(Error::io("create", &path))?;
        }
        let path = self.root.join("tmp");
        for entry in fs::read_dir(&path).map_err(Error::io("read", &path))?.flatten() {
            let modified = entry.metadata().and_then(|metadata| metadata.modified());
            let age = modified.ok().and_then(|at| SystemTime::now().duration_since(at).ok());
            if age.is_some_and(|age| age > ABANDONED) {
                remove(&entry.path());
            }
        }
        Ok(())
    }

    pub(super) fn release(&self, key: &Digest) -> PathBuf {
        self.root.join("releases").join(key.to_string())
    }

    pub(super) fn index(&self, sha256: &[u8; 32]) -> PathBuf {
        self.root.join("indexes").join(hex::encode(sha256))
    }

    /// Where the packages are.
    pub(super) fn packages(&self) -> PathBuf {
        self.root.join("packages")
    }

    pub(super) fn package(&self, sha256: &[u8; 32]) -> PathBuf {
        self.packages().join(package_name(sha256))
    }

    /// A file that nobody else has, gone when dropped.
    pub(super) fn temporary(&self) -> Temporary {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let name = format!("{}-{}-{number}", std::process::id(), since.as_nanos());
        Temporary(self.root.join("tmp").join(name))
    }

    /// Writes a file so that it is there completely or not at all.
    pub(super) fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), Error> {
        let temporary = self.temporary();
        fs::write(temporary.path(), bytes).map_err(Error::io("write", temporary.path()))?;
        temporary.persist(path)
    }
}

/// The name of a package in the cache.
pub(super) fn package_name(sha256: &[u8; 32]) -> String {
    format!("{}.deb", hex::encode(sha256))
}

/// A file in `tmp/`.
pub(super) struct Temporary(PathBuf);

impl Temporary {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Gives the file its name.
    pub(super) fn persist(self, path: &Path) -> Result<(), Error> {
        fs::rename(&self.0, path).map_err(Error::io("write", path))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

/// Removes a file; that it is gone already is fine.
pub(super) fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != ErrorKind::NotFound
    {
        tracing::warn!(%error, path = %path.display(), "cannot remove a file of the cache");
    }
}

/// The contents of a file, none where there is no such file.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", path)(error)),
    }
}
