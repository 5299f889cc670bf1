//! [`Draft`]: a layer that is being written.
//!
//! ```text
//! work/<id>/upper/      the layer, renamed into layers/ when it is finished
//! work/<id>/removed-n   what was in it and was taken out again, trashed with the rest
//! ```
//!
//! Editing, building and merging all write through here. Files are never opened for change, only
//! made and replaced: an entry may be a hard link into other layers, which are immutable.

use crate::durable::Sums;
use crate::metadata::{Meta, Metadata, Timestamp};
use crate::snapshot::{LayerId, LayerRef};
use crate::state::StateDir;
use crate::view::{ViewError, join, parent, shorten};
use crate::{Error, attributes};
use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags,
    chownat, fchmod, fchown, fsetxattr, futimens, linkat, mkdirat, mknodat, openat, symlinkat,
    unlinkat, utimensat,
};
use rustix::io::Errno;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Digests of files that are kept in memory while a layer is written, 40 bytes each.
const MOST_SUMS: usize = 1 << 20;

/// A directory below `work/` that goes to the trash when dropped.
pub(crate) struct WorkDir {
    state: Arc<StateDir>,
    name: String,
    path: PathBuf,
}

/// A layer that is being written. All paths are relative to its root, and all but the last name of
/// each must be directories that the draft has.
pub(crate) struct Draft {
    state: Arc<StateDir>,
    work: Arc<WorkDir>,
    /// Path of the root below the state folder.
    root: Vec<u8>,
    /// Set at the end, because every entry made in a directory changes its time.
    times: HashMap<Vec<u8>, Timestamp>,
    /// The directory used last, open.
    last: Option<(Vec<u8>, OwnedFd)>,
    entries: u64,
    removed: u64,
    /// Digests of files that whoever wrote them knows.
    sums: Sums,
    /// Inodes of other layers that have a name here.
    claimed: HashSet<u64>,
}

impl WorkDir {
    pub(crate) fn new(state: &Arc<StateDir>) -> Result<Self, Error> {
        let name = format!("work/{}", LayerId::random());
        let path = state.path().join(&name);
        std::fs::create_dir(&path).map_err(Error::io("create", &path))?;
        Ok(Self { state: Arc::clone(state), name, path })
    }

    /// Where it is on the host.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where it is below the state folder.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        self.state.trash().discard(&self.path);
    }
}

impl Draft {
    /// An empty layer whose root has mode 0755.
    pub(crate) fn new(state: &Arc<StateDir>) -> Result<Self, Error> {
        Self::at(Arc::new(WorkDir::new(state)?), "upper")
    }

    /// An empty layer in a folder of a work directory.
    pub(crate) fn at(work: Arc<WorkDir>, folder: &str) -> Result<Self, Error> {
        let path = work.path().join(folder);
        let made = mkdirat(CWD, &path, Mode::from_raw_mode(0o755));
        made.map_err(|errno| Error::io("create", &path)(errno.into()))?;
        let root = format!("{}/{folder}", work.name()).into_bytes();
        let state = Arc::clone(&work.state);
        let times = HashMap::new();
        let (last, entries, removed) = (None, 0, 0);
        let (sums, claimed) = (Sums::default(), HashSet::new());
        let mut draft = Self { state, work, root, times, last, entries, removed, sums, claimed };
        // The process's mask may have taken bits away.
        draft.set_mode(b"", 0o755)?;
        Ok(draft)
    }

    /// Path of the root below the state folder.
    pub(crate) fn root(&self) -> &[u8] {
        &self.root
    }

    /// Entries made so far.
    pub(crate) fn entries(&self) -> u64 {
        self.entries
    }

    /// Notes that an inode of another layer gets a name here, and says whether that is its first.
    pub(crate) fn claim(&mut self, inode: u64) -> bool {
        self.claimed.insert(inode)
    }

    /// Notes the digest of a file's bytes.
    pub(crate) fn note_sum(&mut self, path: &[u8], sum: [u8; 32]) {
        // A tree of more files than anybody imports in one go is left to the scrub.
        if self.sums.len() < MOST_SUMS {
            self.sums.insert(path, sum);
        }
    }

    /// What the draft itself has at a path.
    pub(crate) fn stat(&self, path: &[u8]) -> Option<Metadata> {
        self.state.stat(&join(&self.root, path)).ok()
    }

    /// Makes a directory.
    pub(crate) fn make_directory(&mut self, path: &[u8], meta: &Meta) -> Result<(), Error> {
        let (directory, name) = self.parent(path)?;
        let made = mkdirat(directory, name, Mode::RWXU);
        made.map_err(|errno| failed("create", path, errno))?;
        self.entries += 1;
        self.set_directory(path, meta)
    }

    /// Sets mode and owner of a directory now, and its time when all is written.
    pub(crate) fn set_directory(&mut self, path: &[u8], meta: &Meta) -> Result<(), Error> {
        self.set_owner(path, meta)?;
        self.set_mode(path, meta.mode)?;
        self.times.insert(path.to_vec(), meta.mtime);
        Ok(())
    }

    /// Gives a directory of the draft the extended attributes of another directory.
    pub(crate) fn copy_attributes(&mut self, from: &OwnedFd, path: &[u8]) -> Result<(), Error> {
        let directory = self.directory(path)?;
        attributes::copy(from, directory).map_err(|errno| failed("write", path, errno))
    }

    /// Makes an empty file to be filled and then passed to [`Draft::finish_file`].
    pub(crate) fn make_file(&mut self, path: &[u8]) -> Result<File, Error> {
        let (directory, name) = self.parent(path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = openat(directory, name, flags, Mode::RUSR | Mode::WUSR);
        let file = file.map_err(|errno| failed("create", path, errno))?;
        self.entries += 1;
        Ok(File::from(file))
    }

    /// Makes a symbolic link.
    pub(crate) fn make_symlink(
        &mut self,
        path: &[u8],
        target: &[u8],
        meta: &Meta,
    ) -> Result<(), Error> {
        let (directory, name) = self.parent(path)?;
        let made = symlinkat(target, directory, name)
            .and_then(|()| chown_at(directory, name, meta))
            .and_then(|()| set_time_at(directory, name, meta.mtime));
        made.map_err(|errno| failed("create", path, errno))?;
        self.entries += 1;
        Ok(())
    }

    /// Sets both times of an entry. A directory gets the time of its last change at the end anyway.
    pub(crate) fn set_both_times(&mut self, path: &[u8], time: Timestamp) -> Result<(), Error> {
        let (directory, name) = self.parent(path)?;
        let both = Timestamps { last_access: timespec(time), last_modification: timespec(time) };
        let set = utimensat(directory, name, &both, AtFlags::SYMLINK_NOFOLLOW);
        set.map_err(|errno| failed("write", path, errno))
    }

    /// Makes a device, a pipe or a socket.
    pub(crate) fn make_special(
        &mut self,
        path: &[u8],
        kind: FileType,
        device: u64,
        meta: &Meta,
    ) -> Result<(), Error> {
        let (directory, name) = self.parent(path)?;
        let mode = Mode::from_raw_mode(meta.mode);
        let made = mknodat(directory, name, kind, mode, device)
            .and_then(|()| chown_at(directory, name, meta))
            .and_then(|()| rustix::fs::chmodat(directory, name, mode, AtFlags::empty()))
            .and_then(|()| set_time_at(directory, name, meta.mtime));
        made.map_err(|errno| failed("create", path, errno))?;
        self.entries += 1;
        Ok(())
    }

    /// Gives an entry of another directory a second name here. The kernel's refusal is passed on,
    /// so that the caller can copy instead.
    pub(crate) fn link(
        &mut self,
        from: impl AsFd,
        name: &[u8],
        path: &[u8],
    ) -> Result<Result<(), Errno>, Error> {
        let (directory, new_name) = self.parent(path)?;
        match linkat(from, name, directory, new_name, AtFlags::empty()) {
            Err(errno @ (Errno::MLINK | Errno::XDEV | Errno::PERM | Errno::NOTSUP)) => {
                return Ok(Err(errno));
            }
            other => other.map_err(|errno| failed("link", path, errno))?,
        }
        self.entries += 1;
        Ok(Ok(()))
    }

    /// Gives an entry of the draft itself a second name.
    pub(crate) fn link_own(
        &mut self,
        existing: &[u8],
        path: &[u8],
    ) -> Result<Result<(), Errno>, Error> {
        let above = parent(existing);
        let name = if above.is_empty() { existing } else { &existing[above.len() + 1..] };
        let from = self.state.open_directory(&join(&self.root, above));
        let from = from.map_err(|errno| failed("open", existing, errno))?;
        self.link(from, name, path)
    }

    /// Hides the entry of this name in older layers.
    pub(crate) fn make_whiteout(&mut self, path: &[u8]) -> Result<(), Error> {
        let (directory, name) = self.parent(path)?;
        let made = mknodat(directory, name, FileType::CharacterDevice, Mode::empty(), 0);
        made.map_err(|errno| failed("remove", path, errno))?;
        self.entries += 1;
        self.note_whiteout(parent(path))
    }

    /// Marks a directory that holds a whiteout, so that the kernel does not show it even where no
    /// other layer has the directory.
    pub(crate) fn note_whiteout(&mut self, directory: &[u8]) -> Result<(), Error> {
        self.set_mark(directory, self.state.marks().origin(), b"")
    }

    /// Makes a directory hide what older layers have in it.
    pub(crate) fn set_opaque(&mut self, path: &[u8]) -> Result<(), Error> {
        self.set_mark(path, self.state.marks().opaque(), b"y")
    }

    /// Marks the layer as one that is never merged with others.
    pub(crate) fn set_apart(&mut self) -> Result<(), Error> {
        self.set_mark(b"", self.state.marks().apart(), b"y")
    }

    /// Moves an entry of the draft to a place where it has nothing.
    pub(crate) fn rename(&mut self, from: &[u8], to: &[u8]) -> Result<(), Error> {
        let above = parent(from);
        let name = if above.is_empty() { from } else { &from[above.len() + 1..] };
        let source = self.state.open_directory(&join(&self.root, above));
        let source = source.map_err(|errno| failed("open", from, errno))?;
        let (directory, new_name) = self.parent(to)?;
        let moved = rustix::fs::renameat(&source, name, directory, new_name);
        moved.map_err(|errno| failed("move", from, errno))?;
        self.last = None;
        self.sums.clear();
        let inside = |path: &[u8]| path.starts_with(from) && path.get(from.len()) == Some(&b'/');
        let times = std::mem::take(&mut self.times).into_iter();
        let moved = times.map(|(path, time)| match path == from || inside(&path) {
            true => ([to, &path[from.len()..]].concat(), time),
            false => (path, time),
        });
        self.times = moved.collect();
        Ok(())
    }

    /// Takes out whatever the draft has at a path and says whether that was a whiteout.
    pub(crate) fn clear(&mut self, path: &[u8]) -> Result<bool, Error> {
        let Some(found) = self.stat(path) else { return Ok(false) };
        if !found.is_directory() {
            let (directory, name) = self.parent(path)?;
            let gone = unlinkat(directory, name, AtFlags::empty());
            gone.map_err(|errno| failed("remove", path, errno))?;
            self.sums.remove(path);
            return Ok(found.is_whiteout());
        }
        self.sums.clear();
        self.removed += 1;
        let aside = self.work.path().join(format!("removed-{}", self.removed));
        let (directory, name) = self.parent(path)?;
        let moved = rustix::fs::renameat(directory, name, CWD, &aside);
        moved.map_err(|errno| failed("remove", path, errno))?;
        self.last = None;
        let inside =
            |other: &Vec<u8>| other.starts_with(path) && other.get(path.len()) == Some(&b'/');
        self.times.retain(|other, _| other != path && !inside(other));
        Ok(false)
    }

    /// The finished layer in the store.
    pub(crate) fn finish(mut self) -> Result<LayerRef, Error> {
        self.set_times()?;
        self.state.adopt_with(&self.work.path().join("upper"), self.sums)
    }

    /// Sets the times of directories, after which nothing may be written any more.
    pub(crate) fn set_times(&mut self) -> Result<(), Error> {
        for (path, time) in std::mem::take(&mut self.times) {
            let directory = self.directory(&path)?;
            let set = futimens(directory, &timestamps(time));
            set.map_err(|errno| failed("write", &path, errno))?;
        }
        Ok(())
    }

    fn set_mode(&mut self, path: &[u8], mode: u32) -> Result<(), Error> {
        let set = fchmod(self.directory(path)?, Mode::from_raw_mode(mode));
        set.map_err(|errno| failed("write", path, errno))
    }

    fn set_owner(&mut self, path: &[u8], meta: &Meta) -> Result<(), Error> {
        let directory = self.directory(path)?;
        let set = fchown(directory, Some(Uid::from_raw(meta.uid)), Some(Gid::from_raw(meta.gid)));
        set.map_err(|errno| failed("write", path, errno))
    }

    fn set_mark(&mut self, path: &[u8], mark: &str, value: &[u8]) -> Result<(), Error> {
        let set = fsetxattr(self.directory(path)?, mark, value, XattrFlags::empty());
        set.map_err(|errno| failed("write", path, errno))
    }

    fn parent<'a>(&mut self, path: &'a [u8]) -> Result<(&OwnedFd, &'a [u8]), Error> {
        let above = parent(path);
        let name = if above.is_empty() { path } else { &path[above.len() + 1..] };
        Ok((self.directory(above)?, name))
    }

    fn directory(&mut self, path: &[u8]) -> Result<&OwnedFd, Error> {
        if self.last.as_ref().is_none_or(|(last, _)| last != path) {
            let open = self.state.open_directory(&join(&self.root, path));
            let open = open.map_err(|errno| failed("open", path, errno))?;
            self.last = Some((path.to_vec(), open));
        }
        match &self.last {
            Some((_, open)) => Ok(open),
            None => Err(failed("open", path, Errno::NOENT)),
        }
    }
}

/// Sets owner, mode and time of a file once its bytes are written.
pub(crate) fn finish_file(file: &File, meta: &Meta) -> Result<(), Errno> {
    fchown(file, Some(Uid::from_raw(meta.uid)), Some(Gid::from_raw(meta.gid)))?;
    // After the owner, whose change takes the set-user and set-group bits away.
    fchmod(file, Mode::from_raw_mode(meta.mode))?;
    futimens(file, &timestamps(meta.mtime))
}

/// What the file system said about a path of a draft.
pub(crate) fn failed(action: &'static str, path: &[u8], errno: Errno) -> Error {
    let path = String::from_utf8_lossy(path);
    match errno {
        Errno::NAMETOOLONG => ViewError::PathTooLong(shorten(&path)).into(),
        errno => Error::io(action, Path::new(&shorten(&format!("/{path}"))))(errno.into()),
    }
}

fn chown_at(directory: &OwnedFd, name: &[u8], meta: &Meta) -> Result<(), Errno> {
    let (uid, gid) = (Uid::from_raw(meta.uid), Gid::from_raw(meta.gid));
    chownat(directory, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
}

fn set_time_at(directory: &OwnedFd, name: &[u8], time: Timestamp) -> Result<(), Errno> {
    utimensat(directory, name, &timestamps(time), AtFlags::SYMLINK_NOFOLLOW)
}

pub(crate) fn timestamps(time: Timestamp) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: timespec(time),
    }
}

fn timespec(time: Timestamp) -> Timespec {
    Timespec { tv_sec: time.seconds, tv_nsec: time.nanoseconds.into() }
}
