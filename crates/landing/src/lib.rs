//! Writing a tree into a directory of the host, so that every file there is whole at any moment.
//!
//! Both sides of the wire use this: the engine when a client hands it the open directory, the client
//! when the tree comes as frames. So the rules are the same however the bytes travel:
//!
//! - A file appears under its name when it is complete, and replaces what had the name in one step.
//!   It is written without a name, or under one that begins with `.ci-tool-` where the file system
//!   cannot do that; what is not finished is removed.
//! - No link is ever followed below the directory. Every name on a path is opened by itself, and a
//!   link in the way of a directory, like a file in its way, is replaced by it.
//! - A directory in the way of a file is replaced if it is empty, or if everything is to be removed
//!   that the tree does not have ([`Others::Remove`]). Else it is an error and stays.
//! - Modes and times of directories are set last. Owner is who asks, extended attributes are none.
//!
//! Start at [`Landing`]. Everything here blocks. It knows neither stores nor streams.

mod copy;
mod error;
mod place;
mod remove;
mod unfinished;

pub use copy::{Copying, Seen};
pub use error::Error;
pub use place::{Made, Place};
pub use unfinished::Unfinished;

use rustix::fs::{Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid, openat};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use rustix::rand::{GetRandomFlags, getrandom};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Longest name that file systems take.
const LONGEST_NAME: usize = 255;

/// What happens to entries of a directory that the tree does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// They stay.
    Keep,
    /// They are removed.
    Remove,
}

/// What an entry gets beside its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Permission bits with set-user, set-group and sticky bits.
    pub mode: u32,
    /// Last change: seconds since 1970 and nanoseconds.
    pub modified: (i64, u32),
}

/// A directory of the host that is being written into.
pub struct Landing {
    root: OwnedFd,
    shown: PathBuf,
    others: Others,
    /// None when what we make belongs to the right user anyway.
    owner: Option<(Uid, Gid)>,
    /// Whether the file system makes files without a name, as far as we know.
    nameless: AtomicBool,
    /// Whether the file system shares blocks between files, as far as we know.
    clones: AtomicBool,
    random: u64,
    names: AtomicU64,
}

impl Landing {
    /// Writes into the open directory `root`. Errors show paths below `shown`.
    pub fn new(root: OwnedFd, shown: impl Into<PathBuf>, others: Others) -> Self {
        let mut random = [0; 8];
        // Names must differ from those of others who write here now, which the time would do too.
        let _ = getrandom(&mut random, GetRandomFlags::empty());
        Self {
            root,
            shown: shown.into(),
            others,
            owner: None,
            nameless: AtomicBool::new(true),
            clones: AtomicBool::new(true),
            random: u64::from_le_bytes(random),
            names: AtomicU64::new(0),
        }
    }

    /// Makes all that is written belong to this user and group.
    #[must_use]
    pub fn owned_by(mut self, (user, group): (u32, u32)) -> Self {
        let ours = (geteuid(), getegid());
        let wanted = (Uid::from_raw(user), Gid::from_raw(group));
        self.owner = (wanted != ours).then_some(wanted);
        self
    }

    /// Where it is on the host.
    pub fn shown(&self) -> &Path {
        &self.shown
    }

    /// What happens to entries that the tree does not have.
    pub fn others(&self) -> Others {
        self.others
    }

    /// The directory at a path below the root; empty is the root. It must be there.
    pub fn place(&self, path: &[u8]) -> Result<Place<'_>, Error> {
        let failed = |errno| self.failed("open", path, errno);
        let mut open = rustix::io::fcntl_dupfd_cloexec(&self.root, 0).map_err(failed)?;
        for name in names(path) {
            self.check(path, name)?;
            open = open_directory(&open, name).map_err(failed)?;
        }
        Ok(Place { landing: self, path: path.to_vec(), open })
    }

    /// Removes the entry at a path with all that is in it. What is not there is fine; what lies
    /// behind a link is not there. With a slash at its end the path means a directory, which goes if
    /// nothing is left in it.
    pub fn remove(&self, path: &[u8]) -> Result<(), Error> {
        let (path, if_empty) = match path.strip_suffix(b"/") {
            Some(path) => (path, true),
            None => (path, false),
        };
        let mut parts: Vec<&[u8]> = names(path).collect();
        parts.iter().try_for_each(|name| self.check(path, name))?;
        let Some(last) = parts.pop() else {
            return Err(Error::BadName(self.path_of(path)));
        };
        match self.place(&parts.join(&b'/')) {
            Ok(place) if if_empty => place.remove_if_empty(last),
            Ok(place) => place.remove(last),
            Err(Error::Io { source, .. }) if is_no_directory(&source) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Sets mode and time of a directory, once all that goes into it is there.
    pub fn finish_directory(&self, path: &[u8], meta: &Meta) -> Result<(), Error> {
        let place = self.place(path)?;
        let mode = Mode::from_raw_mode(meta.mode);
        let set = rustix::fs::fchmod(&place.open, mode)
            .and_then(|()| rustix::fs::futimens(&place.open, &times(meta)));
        set.map_err(|errno| self.failed("set the mode and time of", path, errno))
    }

    /// A name that nobody else has.
    fn fresh_name(&self) -> String {
        let number = self.names.fetch_add(1, Ordering::Relaxed);
        format!(".ci-tool-{:016x}-{number}", self.random)
    }

    /// Refuses names that lead elsewhere: paths may come from another machine.
    fn check(&self, path: &[u8], name: &[u8]) -> Result<(), Error> {
        let leads_away = matches!(name, b"" | b"." | b"..") || name.contains(&b'/');
        if leads_away || name.contains(&0) || name.len() > LONGEST_NAME {
            return Err(Error::BadName(self.path_of(path)));
        }
        Ok(())
    }

    fn path_of(&self, path: &[u8]) -> PathBuf {
        use std::os::unix::ffi::OsStrExt as _;
        self.shown.join(std::ffi::OsStr::from_bytes(path))
    }

    fn failed(&self, action: &'static str, path: &[u8], errno: Errno) -> Error {
        Error::Io { action, path: self.path_of(path), source: errno.into() }
    }
}

/// Opens one directory of a directory. A link is not followed.
fn open_directory(parent: &OwnedFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty())
}

/// The names of a path; a leading or doubled slash makes an empty one, which is refused later.
fn names(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(move |_| !path.is_empty())
}

/// Joins two relative paths, of which the first may be empty.
fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() {
        return name.to_vec();
    }
    [directory, b"/", name].concat()
}

fn times(meta: &Meta) -> Timestamps {
    let (seconds, nanoseconds) = meta.modified;
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() },
    }
}

/// Whether opening failed because there is no such directory.
fn is_no_directory(error: &std::io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
}

#[cfg(test)]
mod tests;
