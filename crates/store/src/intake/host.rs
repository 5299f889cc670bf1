//! Looking at the host: entries below an open directory, never through a link.

use super::index::Stamp;
use crate::metadata::{Kind, Timestamp};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, Statx, StatxFlags, fstatfs, openat, openat2,
    statx,
};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The clock of a file system may be this much behind ours: one tick of the kernel and a bit. What
/// was written for longer than this in one call can be taken half.
const TICK: i64 = 20_000_000;
/// The same where a server keeps the times.
const OTHER_CLOCK: i64 = 60_000_000_000;
/// File systems whose times come from somewhere else: NFS, SMB (two numbers), 9P, FUSE.
const REMOTE: [u64; 5] = [0x6969, 0x517b, 0xff53_4d42, 0x0102_1997, 0x6573_5546];
/// How often a directory is opened that is being renamed.
const TRIES: usize = 100;

/// What was seen of an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) kind: Kind,
    pub(super) mode: u32,
    pub(super) stamp: Stamp,
    /// Number of names.
    pub(super) links: u32,
    pub(super) device: u64,
    /// Whether fewer blocks are on disk than the size needs.
    pub(super) sparse: bool,
}

impl Seen {
    /// When its contents changed last.
    pub(super) fn mtime(&self) -> Timestamp {
        const SECOND: i64 = 1_000_000_000;
        Timestamp {
            seconds: self.stamp.mtime.div_euclid(SECOND),
            nanoseconds: self.stamp.mtime.rem_euclid(SECOND) as u32,
        }
    }

    /// What it is in words, if it cannot be taken in.
    pub(super) fn special(&self) -> Option<&'static str> {
        match self.kind {
            Kind::File | Kind::Directory | Kind::Symlink => None,
            Kind::Fifo => Some("a named pipe"),
            Kind::Socket => Some("a socket"),
            Kind::CharacterDevice | Kind::BlockDevice => Some("a device"),
        }
    }
}

impl From<&Statx> for Seen {
    fn from(stat: &Statx) -> Self {
        let mode = u32::from(stat.stx_mode);
        let nanoseconds = |seconds: i64, rest: u32| {
            seconds.saturating_mul(1_000_000_000).saturating_add(rest.into())
        };
        Self {
            kind: kind(FileType::from_raw_mode(mode)),
            mode: mode & 0o7777,
            stamp: Stamp {
                size: stat.stx_size,
                mtime: nanoseconds(stat.stx_mtime.tv_sec, stat.stx_mtime.tv_nsec),
                ctime: nanoseconds(stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec),
                inode: stat.stx_ino,
            },
            links: stat.stx_nlink,
            device: (u64::from(stat.stx_dev_major) << 32) | u64::from(stat.stx_dev_minor),
            sparse: stat.stx_blocks.saturating_mul(512) < stat.stx_size,
        }
    }
}

/// What an entry is, by the system's word for it.
fn kind(kind: FileType) -> Kind {
    match kind {
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Symlink,
        FileType::CharacterDevice => Kind::CharacterDevice,
        FileType::BlockDevice => Kind::BlockDevice,
        FileType::Fifo => Kind::Fifo,
        FileType::Socket => Kind::Socket,
        _ => Kind::File,
    }
}

/// Looks at an entry of a directory.
pub(super) fn look(directory: impl AsFd, name: &[u8]) -> Result<Seen, Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_DONT_SYNC;
    statx(directory, name, flags, StatxFlags::BASIC_STATS).map(|stat| Seen::from(&stat))
}

/// Looks at what is open.
pub(super) fn look_at(file: impl AsFd) -> Result<Seen, Errno> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    statx(file, "", flags, StatxFlags::BASIC_STATS).map(|stat| Seen::from(&stat))
}

/// Opens a directory by its path below the root. No descriptor is kept for the directories on the
/// way: a wide or deep tree has more of them than a process may have open.
pub(super) fn open_directory(root: &OwnedFd, path: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let path = if path.is_empty() { b"." } else { path };
    for _ in 0..TRIES {
        match openat2(root, path, flags, Mode::empty(), resolve) {
            // Something on the way was renamed while the kernel looked.
            Err(Errno::AGAIN) => {}
            other => return other,
        }
    }
    Err(Errno::AGAIN)
}

/// Opens a file for reading, without following a link and without waiting: what was a file may have
/// become a pipe.
pub(super) fn open_file(directory: impl AsFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    openat(directory, name, flags, Mode::empty())
}

/// How long a file must be left alone because it changed just now.
pub(super) fn too_young(seen: &Seen) -> Option<Duration> {
    let age = now() - seen.stamp.ctime;
    (0..TICK).contains(&age).then(|| Duration::from_nanos((TICK - age).unsigned_abs()))
}

fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    i64::try_from(now).unwrap_or(i64::MAX)
}

/// A time before which every change has left another timestamp than any change from now on.
pub(super) fn trusted_before(root: &OwnedFd) -> i64 {
    let remote = fstatfs(root).is_ok_and(|system| REMOTE.contains(&(system.f_type as u64)));
    now() - if remote { OTHER_CLOCK } else { TICK }
}
