//! Manifests: what a layer is made of, written down beside it.
//!
//! ```text
//! layers/<xx>/<id>.<16 digits>    digits: begin of the digest of the file, which the database knows
//!   ci-tool layer manifest 1\n
//!   length (4 bytes, little-endian), directory    one for each directory, the root first
//!   ...
//! ```
//!
//! One directory after the other, so that a layer of a million files is written, read and compared
//! without ever being in memory. A manifest never changes: a new one gets another name, the database
//! goes over to it, and the old file is removed.

use crate::metadata::{Kind, Metadata};
use crate::snapshot::LayerId;
use crate::state;
use protocol::Digest;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

const HEAD: &[u8] = b"ci-tool layer manifest 1\n";
/// Digits of the digest that are part of the file's name.
const DIGITS: usize = 16;

/// The sha256 of a file's bytes or of a link's target.
pub(crate) type Sum = [u8; 32];

/// One directory of a layer and all that is directly in it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Directory {
    /// Path in the layer without a leading slash; empty for the root.
    pub(crate) path: Vec<u8>,
    pub(crate) facts: Facts,
    /// Sorted by name. Directories are here too, by their name alone.
    pub(crate) entries: Vec<Entry>,
}

/// One entry of a directory.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) name: Vec<u8>,
    /// None for a directory, which has a record of its own.
    pub(crate) facts: Option<Facts>,
}

/// What is known of one entry.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Facts {
    /// Type and permission bits, as `stat` has them.
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Bytes of a file, length of a link's target, number of a device, nothing for a directory.
    pub(crate) size: u64,
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: u32,
    /// Of a file or a link; none until somebody has read it.
    pub(crate) sum: Option<Sum>,
    /// Digest of the extended attributes, the marks of overlay included; none until somebody has
    /// read them.
    pub(crate) attributes: Option<[u8; 16]>,
}

impl Facts {
    /// What `stat` says.
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let kind = match metadata.kind {
            Kind::File => libc::S_IFREG,
            Kind::Directory => libc::S_IFDIR,
            Kind::Symlink => libc::S_IFLNK,
            Kind::CharacterDevice => libc::S_IFCHR,
            Kind::BlockDevice => libc::S_IFBLK,
            Kind::Fifo => libc::S_IFIFO,
            Kind::Socket => libc::S_IFSOCK,
        };
        let size = match metadata.kind {
            Kind::File | Kind::Symlink => metadata.size,
            Kind::CharacterDevice | Kind::BlockDevice => metadata.rdev,
            Kind::Directory | Kind::Fifo | Kind::Socket => 0,
        };
        Self {
            mode: metadata.mode | kind,
            uid: metadata.uid,
            gid: metadata.gid,
            size,
            seconds: metadata.mtime.seconds,
            nanoseconds: metadata.mtime.nanoseconds,
            sum: None,
            attributes: None,
        }
    }

    /// Whether `stat` still says the same.
    pub(crate) fn agree(&self, metadata: &Metadata) -> bool {
        let now = Self::of(metadata);
        (self.mode, self.uid, self.gid, self.size, self.seconds, self.nanoseconds)
            == (now.mode, now.uid, now.gid, now.size, now.seconds, now.nanoseconds)
    }

    pub(crate) fn is_file(&self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFREG
    }

    pub(crate) fn is_link(&self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFLNK
    }
}

/// A manifest that is being written.
pub(crate) struct Writer {
    file: BufWriter<File>,
    path: PathBuf,
    hasher: blake3::Hasher,
    finished: bool,
}

impl Writer {
    /// Begins a manifest below the state folder.
    pub(crate) fn begin(state: &Path) -> io::Result<Self> {
        let path = state.join("tmp").join(LayerId::random().to_string());
        let file = BufWriter::new(File::create_new(&path)?);
        let mut writer = Self { file, path, hasher: blake3::Hasher::new(), finished: false };
        writer.write(HEAD)?;
        Ok(writer)
    }

    pub(crate) fn add(&mut self, directory: &Directory) -> io::Result<()> {
        let bytes = postcard::to_stdvec(directory).map_err(io::Error::other)?;
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        self.write(&length.to_le_bytes())?;
        self.write(&bytes)
    }

    /// Puts the manifest into its place beside the layer. It is not on disk yet.
    pub(crate) fn finish(mut self, state: &Path, layer: LayerId) -> io::Result<Digest> {
        self.file.flush()?;
        let digest = Digest::from_bytes(*self.hasher.finalize().as_bytes());
        fs::rename(&self.path, place(state, layer, &digest))?;
        self.finished = true;
        Ok(digest)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        self.file.write_all(bytes)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.finished
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!("cannot remove `{}`: {error}", self.path.display());
        }
    }
}

/// Where the manifest of a layer lies.
pub(crate) fn place(state: &Path, layer: LayerId, digest: &Digest) -> PathBuf {
    state.join(relative_place(layer, digest))
}

/// The same below the state folder.
pub(crate) fn relative_place(layer: LayerId, digest: &Digest) -> PathBuf {
    let digest = digest.to_string();
    format!("{}.{}", state::layer_path(layer), &digest[..DIGITS]).into()
}

/// Whether a file beside layers is the manifest with this digest.
pub(crate) fn is_named_by(ending: &str, digest: &Digest) -> bool {
    digest.to_string().get(..DIGITS) == Some(ending)
}

/// Reads a whole manifest and gives its directories to `take`, which may end it with an error.
/// A manifest that is not the one that the database knows is an error of its own, given before
/// anything of it was used.
pub(crate) fn read(
    state: &Path,
    layer: LayerId,
    digest: &Digest,
) -> io::Result<impl Iterator<Item = io::Result<Directory>>> {
    let path = place(state, layer, digest);
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(&path)?)?;
    if hasher.finalize().as_bytes() != digest.as_bytes() {
        return Err(unreadable());
    }
    let mut file = io::BufReader::new(File::open(&path)?);
    let mut head = [0; HEAD.len()];
    file.read_exact(&mut head)?;
    if head != HEAD {
        return Err(unreadable());
    }
    let mut bytes = vec![];
    Ok(std::iter::from_fn(move || next(&mut file, &mut bytes).transpose()))
}

fn next(file: &mut impl Read, bytes: &mut Vec<u8>) -> io::Result<Option<Directory>> {
    let mut length = [0; 4];
    match file.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    bytes.resize(u32::from_le_bytes(length) as usize, 0);
    file.read_exact(bytes)?;
    postcard::from_bytes(bytes).map(Some).map_err(|_| unreadable())
}

fn unreadable() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the manifest is damaged")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(path: &str) -> Directory {
        let facts = Facts { sum: None, ..Facts::of(&Metadata::empty_root()) };
        let file = Facts { mode: libc::S_IFREG | 0o644, sum: Some([7; 32]), ..facts_of_root() };
        let entry = Entry { name: b"file".to_vec(), facts: Some(file) };
        Directory { path: path.into(), facts, entries: vec![entry] }
    }

    fn facts_of_root() -> Facts {
        Facts::of(&Metadata::empty_root())
    }

    #[test]
    fn a_manifest_reads_back_and_any_change_of_it_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let layer = LayerId::random();
        fs::create_dir_all(folder.path().join(state::layer_path(layer))).unwrap();
        fs::create_dir(folder.path().join("tmp")).unwrap();
        let mut writer = Writer::begin(folder.path()).unwrap();
        let written = [directory(""), directory("a/b")];
        written.iter().for_each(|directory| writer.add(directory).unwrap());
        let digest = writer.finish(folder.path(), layer).unwrap();
        let found = read(folder.path(), layer, &digest).unwrap();
        assert_eq!(found.collect::<io::Result<Vec<_>>>().unwrap(), written);

        let path = place(folder.path(), layer, &digest);
        let whole = fs::read(&path).unwrap();
        for at in [0, HEAD.len() + 9, whole.len() - 1] {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(&path, bytes).unwrap();
            assert!(read(folder.path(), layer, &digest).is_err(), "{at}");
        }
        fs::write(&path, &whole[..whole.len() - 3]).unwrap();
        assert!(read(folder.path(), layer, &digest).is_err());
        drop(Writer::begin(folder.path()).unwrap());
        assert_eq!(fs::read_dir(folder.path().join("tmp")).unwrap().count(), 0);
    }
}
