//! [`Layer`]: a layer that several threads write at once.
//!
//! Unlike a `Draft` it keeps no state but its place: whoever walks the host knows which directories
//! it has made. Paths come from the walk and are opened from the layer's root with links refused.

use crate::Error;
use crate::draft::{WorkDir, failed, timestamps};
use crate::metadata::{Meta, Timestamp};
use crate::snapshot::LayerRef;
use crate::state::StateDir;
use crate::view::{join, parent};
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Uid, XattrFlags, chownat, fchmod, fchown, fsetxattr,
    futimens, linkat, mkdirat, mknodat, openat, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A layer that is being written. Dropped without being finished, it leaves nothing.
pub(super) struct Layer {
    state: Arc<StateDir>,
    work: WorkDir,
    /// Path of the root below the state folder.
    root: Vec<u8>,
    entries: AtomicU64,
    /// Whether what we make belongs to user and group 0 by itself.
    as_root: bool,
}

impl Layer {
    pub(super) fn new(state: &Arc<StateDir>) -> Result<Self, Error> {
        let work = WorkDir::new(state)?;
        let root = format!("{}/upper", work.name()).into_bytes();
        let made = mkdirat(state.fd(), &root[..], Mode::RWXU);
        made.map_err(|errno| failed("create", b"", errno))?;
        let as_root = geteuid().is_root() && getegid().is_root();
        Ok(Self { state: Arc::clone(state), work, root, entries: AtomicU64::new(0), as_root })
    }

    /// Asks for room for so many bytes that are about to be written.
    pub(super) fn admit(&self, bytes: usize) -> Result<(), Error> {
        Ok(self.state.room().admit(bytes as u64)?)
    }

    /// Opens a directory of the layer.
    pub(super) fn open(&self, path: &[u8]) -> Result<OwnedFd, Error> {
        let open = self.state.open_directory(&join(&self.root, path));
        open.map_err(|errno| failed("open", path, errno))
    }

    /// Makes a directory, whose parent is there. It may be there already.
    pub(super) fn make_directory(&self, path: &[u8]) -> Result<(), Error> {
        match mkdirat(self.state.fd(), &join(&self.root, path)[..], Mode::RWXU) {
            Ok(()) => self.count(),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed("create", path, errno)),
        }
        Ok(())
    }

    /// Sets what a directory is, after which nothing may be made in it any more.
    pub(super) fn finish_directory(&self, path: &[u8], meta: &Meta) -> Result<(), Error> {
        let directory = self.open(path)?;
        let set = self
            .own(&directory)
            .and_then(|()| fchmod(&directory, Mode::from_raw_mode(meta.mode)))
            .and_then(|()| futimens(&directory, &timestamps(meta.mtime)));
        set.map_err(|errno| failed("write", path, errno))
    }

    /// Takes back a directory that is empty.
    pub(super) fn remove_directory(&self, path: &[u8]) -> Result<(), Error> {
        self.entries.fetch_sub(1, Ordering::Relaxed);
        let gone = unlinkat(self.state.fd(), &join(&self.root, path)[..], AtFlags::REMOVEDIR);
        gone.map_err(|errno| failed("remove", path, errno))
    }

    /// Hides entries of a directory that older layers have.
    pub(super) fn hide(&self, directory: &[u8], names: &[Vec<u8>]) -> Result<(), Error> {
        let open = self.open(directory)?;
        for name in names {
            let made = mknodat(&open, &name[..], FileType::CharacterDevice, Mode::empty(), 0);
            made.map_err(|errno| failed("remove", &join(directory, name), errno))?;
            self.count();
        }
        let set = fsetxattr(&open, self.state.marks().origin(), b"", XattrFlags::empty());
        set.map_err(|errno| failed("write", directory, errno))
    }

    /// Makes an empty file in an open directory.
    pub(super) fn make_file(&self, directory: &OwnedFd, name: &[u8]) -> Result<File, Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = openat(directory, name, flags, Mode::RUSR | Mode::WUSR)?;
        self.count();
        Ok(File::from(file))
    }

    /// Sets what a file is, once its bytes are written.
    pub(super) fn finish_file(&self, file: &File, meta: &Meta) -> Result<(), Errno> {
        self.own(file)?;
        // After the owner, whose change takes the set-user and set-group bits away.
        fchmod(file, Mode::from_raw_mode(meta.mode))?;
        futimens(file, &timestamps(meta.mtime))
    }

    /// Takes back a file that could not be finished.
    pub(super) fn remove_file(&self, directory: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
        self.entries.fetch_sub(1, Ordering::Relaxed);
        unlinkat(directory, name, AtFlags::empty())
    }

    /// Makes a symbolic link in an open directory.
    pub(super) fn make_symlink(
        &self,
        directory: &OwnedFd,
        name: &[u8],
        target: &[u8],
        mtime: Timestamp,
    ) -> Result<(), Errno> {
        symlinkat(target, directory, name)?;
        self.count();
        let keep_link = AtFlags::SYMLINK_NOFOLLOW;
        if !self.as_root {
            chownat(directory, name, Some(Uid::ROOT), Some(Gid::ROOT), keep_link)?;
        }
        utimensat(directory, name, &timestamps(mtime), keep_link)
    }

    /// Gives a file of the layer one more name. False when the file system allows it no more.
    pub(super) fn link(
        &self,
        existing: &[u8],
        directory: &OwnedFd,
        name: &[u8],
    ) -> Result<bool, Error> {
        let above = parent(existing);
        let from = self.open(above)?;
        let own = if above.is_empty() { existing } else { &existing[above.len() + 1..] };
        match linkat(&from, own, directory, name, AtFlags::empty()) {
            Ok(()) => self.count(),
            Err(Errno::MLINK) => return Ok(false),
            Err(errno) => return Err(failed("link", existing, errno)),
        }
        Ok(true)
    }

    /// The finished layer in the store, and how many entries it has.
    pub(super) fn finish(self) -> Result<(LayerRef, u64), Error> {
        let layer = self.state.adopt(&self.work.path().join("upper"))?;
        Ok((layer, self.entries.into_inner()))
    }

    fn count(&self) {
        self.entries.fetch_add(1, Ordering::Relaxed);
    }

    fn own(&self, file: impl std::os::fd::AsFd) -> Result<(), Errno> {
        match self.as_root {
            true => Ok(()),
            false => fchown(file, Some(Uid::ROOT), Some(Gid::ROOT)),
        }
    }
}
