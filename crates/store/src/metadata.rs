//! What is known of one entry of a tree beside its name and its bytes.

use rustix::fs::{FileType, Stat};
use std::time::{SystemTime, UNIX_EPOCH};

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A character device.
    CharacterDevice,
    /// A block device.
    BlockDevice,
    /// A named pipe.
    Fifo,
    /// A unix socket.
    Socket,
}

/// Seconds and nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Timestamp {
    /// Whole seconds, negative before 1970.
    pub seconds: i64,
    /// The rest, below one thousand million.
    pub nanoseconds: u32,
}

/// User and group of an entry, as numbers inside the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Owner {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// An entry as `lstat` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// What it is.
    pub kind: Kind,
    /// Permission bits with set-user, set-group and sticky bits; no type bits.
    pub mode: u32,
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Bytes of a file, length of a link's target.
    pub size: u64,
    /// Last change of the contents.
    pub mtime: Timestamp,
    /// Device number of a device.
    pub rdev: u64,
    /// Inode in the file system of the store; only unchanging layers are read, so it is stable.
    pub(crate) inode: u64,
    /// Names the inode has in the whole store.
    pub(crate) links: u64,
}

/// What a layer builder sets on an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Meta {
    /// Permission bits with set-user, set-group and sticky bits.
    pub mode: u32,
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Last change of the contents.
    pub mtime: Timestamp,
}

impl Timestamp {
    /// The present.
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { seconds: since.as_secs() as i64, nanoseconds: since.subsec_nanos() }
    }
}

impl Metadata {
    /// Whether this is a directory.
    pub fn is_directory(&self) -> bool {
        self.kind == Kind::Directory
    }

    /// Whether this is a regular file.
    pub fn is_file(&self) -> bool {
        self.kind == Kind::File
    }

    /// User and group.
    pub fn owner(&self) -> Owner {
        Owner { uid: self.uid, gid: self.gid }
    }

    /// The root of a tree that has no layer at all.
    pub(crate) fn empty_root() -> Self {
        Self {
            kind: Kind::Directory,
            mode: 0o755,
            uid: 0,
            gid: 0,
            size: 4096,
            mtime: Timestamp::default(),
            rdev: 0,
            inode: 0,
            links: 1,
        }
    }

    /// Whether this hides the entry of the same name in older layers.
    pub(crate) fn is_whiteout(&self) -> bool {
        self.kind == Kind::CharacterDevice && self.rdev == 0
    }

    pub(crate) fn meta(&self) -> Meta {
        Meta { mode: self.mode, uid: self.uid, gid: self.gid, mtime: self.mtime }
    }
}

impl From<&Stat> for Metadata {
    fn from(stat: &Stat) -> Self {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Symlink,
            FileType::CharacterDevice => Kind::CharacterDevice,
            FileType::BlockDevice => Kind::BlockDevice,
            FileType::Fifo => Kind::Fifo,
            FileType::Socket => Kind::Socket,
            _ => Kind::File,
        };
        Self {
            kind,
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            size: stat.st_size as u64,
            mtime: Timestamp { seconds: stat.st_mtime, nanoseconds: stat.st_mtime_nsec as u32 },
            rdev: stat.st_rdev,
            inode: stat.st_ino,
            links: stat.st_nlink,
        }
    }
}
