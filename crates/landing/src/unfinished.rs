//! [`Unfinished`]: a file that is being written and that nobody sees yet.

use crate::place::Place;
use crate::{Error, Meta, join, times};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, openat, renameat, unlinkat};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// A file that is being written. Dropped before it is finished, it leaves nothing.
pub struct Unfinished<'a> {
    place: &'a Place<'a>,
    file: File,
    /// The name it is to get.
    name: Vec<u8>,
    /// The name it has for now; none where the file system can do without.
    own: Option<String>,
}

impl<'a> Unfinished<'a> {
    pub(crate) fn create(place: &'a Place<'a>, name: &[u8]) -> Result<Self, Errno> {
        let name = name.to_vec();
        let private = Mode::RUSR | Mode::WUSR;
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        if place.landing.nameless.load(Ordering::Relaxed) {
            match openat(&place.open, ".", flags | OFlags::TMPFILE, private) {
                Ok(file) => return Ok(Self { place, file: file.into(), name, own: None }),
                // What file systems say that cannot, and kernels that do not know the flag.
                Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => {
                    place.landing.nameless.store(false, Ordering::Relaxed);
                }
                Err(errno) => return Err(errno),
            }
        }
        let own = place.landing.fresh_name();
        let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let file = openat(&place.open, &own, flags, private)?;
        Ok(Self { place, file: file.into(), name, own: Some(own) })
    }

    /// Where the bytes go.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The error of who could not write to it.
    pub fn not_written(&self, error: io::Error) -> Error {
        Error::Io { action: "write", path: self.path(), source: error }
    }

    /// Gives the file its name, in the place of what has it now.
    pub fn finish(mut self, meta: &Meta) -> Result<(), Error> {
        self.set(meta).map_err(|errno| self.not_written(errno.into()))?;
        if self.own.is_none() {
            match self.link(&self.name) {
                Ok(()) => return Ok(()),
                Err(Errno::EXIST) => self.link_aside()?,
                Err(errno) => return Err(self.place.failed("create", &self.name, errno)),
            }
        }
        if let Some(own) = &self.own {
            self.place.put(own, &self.name)?;
            self.own = None;
        }
        Ok(())
    }

    /// Where it is going to be.
    pub(crate) fn path(&self) -> PathBuf {
        self.place.landing.path_of(&join(&self.place.path, &self.name))
    }

    fn set(&self, meta: &Meta) -> Result<(), Errno> {
        if let Some((user, group)) = self.place.landing.owner {
            rustix::fs::fchown(&self.file, Some(user), Some(group))?;
        }
        // After the owner, whose change takes the set-user and set-group bits away.
        rustix::fs::fchmod(&self.file, Mode::from_raw_mode(meta.mode))?;
        rustix::fs::futimens(&self.file, &times(meta))
    }

    /// Gives a file without a name one that is free.
    fn link(&self, name: &[u8]) -> Result<(), Errno> {
        let directory = &self.place.open;
        match linkat(&self.file, "", directory, name, AtFlags::EMPTY_PATH) {
            // Without the right to link what is open; the other way needs `/proc`.
            Err(Errno::NOENT | Errno::PERM) => {
                let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
                linkat(CWD, own, directory, name, AtFlags::SYMLINK_FOLLOW)
            }
            other => other,
        }
    }

    /// Gives it a name of our own, to be renamed from: a link cannot replace.
    fn link_aside(&mut self) -> Result<(), Error> {
        let own = self.place.landing.fresh_name();
        let linked = self.link(own.as_bytes());
        linked.map_err(|errno| self.place.failed("create", &self.name, errno))?;
        self.own = Some(own);
        Ok(())
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(own) = &self.own {
            // Nothing is left to tell: the reason why it is not finished is told already.
            let _ = unlinkat(&self.place.open, own, AtFlags::empty());
        }
    }
}

impl Place<'_> {
    /// Renames an entry of our own over what has the name now. If that fails ours stays.
    pub(crate) fn put(&self, own: &str, name: &[u8]) -> Result<(), Error> {
        let rename = || renameat(&self.open, own, &self.open, name);
        match rename() {
            Err(Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => self.make_room(name)?,
            other => return other.map_err(|errno| self.failed("write", name, errno)),
        }
        rename().map_err(|errno| self.failed("write", name, errno))
    }
}
