//! [`Place`]: one directory that is being written into, open.

use crate::unfinished::Unfinished;
use crate::{Copying, Error, Landing, Meta, Others, join, remove, times};
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, fstat, linkat, mkdirat, openat, statat, symlinkat,
    unlinkat, utimensat,
};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::OwnedFd;

/// One directory that is being written into. The names it takes are single names, not paths.
pub struct Place<'a> {
    pub(crate) landing: &'a Landing,
    /// Below the root of the landing.
    pub(crate) path: Vec<u8>,
    pub(crate) open: OwnedFd,
}

/// Whether a directory was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// It is new and empty.
    New,
    /// It was there, with what is in it.
    Before,
}

impl Place<'_> {
    /// Begins a file that nobody sees until it is finished.
    pub fn begin(&self, name: &[u8]) -> Result<Unfinished<'_>, Error> {
        self.check(name)?;
        Unfinished::create(self, name).map_err(|errno| self.failed("create", name, errno))
    }

    /// Makes a directory that only we can use until it is finished; one that is there is kept. A
    /// file or a link in its way is replaced.
    pub fn directory(&self, name: &[u8]) -> Result<Made, Error> {
        self.check(name)?;
        let failed = |errno| self.failed("create", name, errno);
        match mkdirat(&self.open, name, Mode::RWXU) {
            Err(Errno::EXIST) if self.kind_of(name) == Some(FileType::Directory) => {
                return Ok(Made::Before);
            }
            Err(Errno::EXIST) => {
                unlinkat(&self.open, name, AtFlags::empty()).map_err(failed)?;
                mkdirat(&self.open, name, Mode::RWXU).map_err(failed)?;
            }
            other => other.map_err(failed)?,
        }
        self.take_over(name).map_err(failed)?;
        Ok(Made::New)
    }

    /// Makes a symbolic link, in the place of what has the name.
    pub fn symlink(&self, name: &[u8], target: &[u8], meta: &Meta) -> Result<(), Error> {
        self.check(name)?;
        let failed = |errno| self.failed("create", name, errno);
        let make = |name: &[u8]| {
            symlinkat(target, &self.open, name)?;
            self.take_over(name)?;
            utimensat(&self.open, name, &times(meta), AtFlags::SYMLINK_NOFOLLOW)
        };
        match make(name) {
            Err(Errno::EXIST) => {}
            other => return other.map_err(failed),
        }
        let own = self.landing.fresh_name();
        let made = make(own.as_bytes()).map_err(failed);
        self.put_or_drop(&own, name, made)
    }

    /// Gives the file `first` of `from` one more name. Where the file system does not do that, the
    /// file is copied.
    pub fn hard_link(&self, name: &[u8], from: &Place<'_>, first: &[u8]) -> Result<(), Error> {
        self.check(name)?;
        let link = |name: &[u8]| linkat(&from.open, first, &self.open, name, AtFlags::empty());
        let failed = |errno| self.failed("link", name, errno);
        match link(name) {
            Ok(()) => Ok(()),
            Err(Errno::MLINK | Errno::XDEV | Errno::PERM | Errno::OPNOTSUPP) => {
                self.duplicate(name, from, first)
            }
            Err(Errno::EXIST) => {
                let own = self.landing.fresh_name();
                let linked = link(own.as_bytes()).map_err(failed);
                self.put_or_drop(&own, name, linked)
            }
            Err(errno) => Err(failed(errno)),
        }
    }

    /// Removes an entry with all that is in it. What is not there is fine.
    pub fn remove(&self, name: &[u8]) -> Result<(), Error> {
        self.check(name)?;
        match remove::entry(&self.open, name) {
            Ok(()) => Ok(()),
            Err((below, errno)) => Err(self.failed("remove", &below, errno)),
        }
    }

    /// Removes a directory if nothing is in it. Anything else stays.
    pub(crate) fn remove_if_empty(&self, name: &[u8]) -> Result<(), Error> {
        self.check(name)?;
        match unlinkat(&self.open, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT | Errno::NOTDIR | Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
            Err(errno) => Err(self.failed("remove", name, errno)),
        }
    }

    /// Names of all that is in the directory.
    pub fn names(&self) -> Result<Vec<Vec<u8>>, Error> {
        list(&self.open).map_err(|errno| self.landing.failed("read", &self.path, errno))
    }

    pub(crate) fn check(&self, name: &[u8]) -> Result<(), Error> {
        self.landing.check(&join(&self.path, name), name)
    }

    pub(crate) fn failed(&self, action: &'static str, name: &[u8], errno: Errno) -> Error {
        self.landing.failed(action, &join(&self.path, name), errno)
    }

    /// Takes a directory out of the way of a file.
    pub(crate) fn make_room(&self, name: &[u8]) -> Result<(), Error> {
        if self.landing.others == Others::Remove {
            return self.remove(name);
        }
        match unlinkat(&self.open, name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => {
                Err(Error::InTheWay(self.landing.path_of(&join(&self.path, name))))
            }
            other => other.map_err(|errno| self.failed("remove", name, errno)),
        }
    }

    /// Renames what was made under a name of our own. Whatever happens, that name is gone then.
    fn put_or_drop(&self, own: &str, name: &[u8], made: Result<(), Error>) -> Result<(), Error> {
        let put = made.and_then(|()| self.put(own, name));
        // Renaming one name of a file to another name of it does nothing, and succeeds.
        let _ = unlinkat(&self.open, own, AtFlags::empty());
        put
    }

    pub(crate) fn duplicate(
        &self,
        name: &[u8],
        from: &Place<'_>,
        first: &[u8],
    ) -> Result<(), Error> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let unread = |errno| from.failed("read", first, errno);
        let source = File::from(openat(&from.open, first, flags, Mode::empty()).map_err(unread)?);
        let stat = fstat(&source).map_err(unread)?;
        let meta = Meta {
            mode: stat.st_mode & 0o7777,
            modified: (stat.st_mtime, stat.st_mtime_nsec as u32),
        };
        let unfinished = self.begin(name)?;
        let mut copying = Copying::new(self.landing, &|_| true);
        copying.run(&source, &unfinished, stat.st_size as u64, None)?;
        unfinished.finish(&meta)
    }

    /// Gives an entry that is no file to its owner.
    fn take_over(&self, name: &[u8]) -> Result<(), Errno> {
        let Some((user, group)) = self.landing.owner else { return Ok(()) };
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        rustix::fs::chownat(&self.open, name, Some(user), Some(group), flags)
    }

    fn kind_of(&self, name: &[u8]) -> Option<FileType> {
        let stat = statat(&self.open, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(FileType::from_raw_mode(stat.st_mode))
    }
}

/// Names in an open directory, without itself and its parent.
pub(crate) fn list(directory: &OwnedFd) -> Result<Vec<Vec<u8>>, Errno> {
    let mut names = vec![];
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            names.push(name.to_vec());
        }
    }
    Ok(names)
}
