//! Tar, strictly: the format of layers and of image archives.
//!
//! Readers of tar have disagreed about almost everything, and each disagreement has been an attack. So
//! what honest writers do is read, the rest is refused, and nothing is guessed. The writer uses the
//! same few forms: a plain header, with a PAX record before it only where a value does not fit.

mod header;
mod pax;
mod reader;
mod writer;

#[cfg(test)]
mod tests;

pub use reader::Reader;
pub use writer::Writer;
pub(crate) use writer::{END, head, padding};

/// Size of a block: headers are one, contents are padded to a multiple.
pub(crate) const BLOCK: usize = 512;

/// One entry of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its path as written, never empty and without a NUL byte.
    pub path: Vec<u8>,
    /// What it is.
    pub kind: Kind,
    /// Permission bits with set-user, set-group and sticky bits.
    pub mode: u32,
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Seconds since 1970 of the last change.
    pub mtime: i64,
    /// Nanoseconds of it.
    pub mtime_nanoseconds: u32,
    /// Bytes of a file; zero for everything else.
    pub size: u64,
    /// Extended attributes by name.
    pub xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file; its contents follow.
    File,
    /// A directory.
    Directory,
    /// A symbolic link with this target.
    Symlink(Vec<u8>),
    /// Another name of the entry at this path.
    HardLink(Vec<u8>),
    /// A named pipe.
    Fifo,
    /// A character device.
    Character {
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
    },
    /// A block device.
    Block {
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
    },
}

impl Entry {
    /// An entry of root's without a time.
    pub fn new(path: impl Into<Vec<u8>>, kind: Kind, mode: u32) -> Self {
        Self {
            path: path.into(),
            kind,
            mode,
            uid: 0,
            gid: 0,
            mtime: 0,
            mtime_nanoseconds: 0,
            size: 0,
            xattrs: vec![],
        }
    }
}
