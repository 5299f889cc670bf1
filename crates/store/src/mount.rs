//! [`Mount`]: a mount that is attached nowhere yet.
//!
//! Mounts are made detached (`fsmount`, `open_tree`), so nothing appears in the host's mount table: a
//! mount lives as long as its descriptor, or as long as the container it was moved into, and a
//! crash leaks none. Kernels that cannot do so are served by [`crate::attached`]. This is the only thing that `sandbox` takes from this crate.

use crate::draft::WorkDir;
use crate::marks::Marks;
use crate::state::StateDir;
use crate::{Error, attached, sys};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, OpenTreeFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen, open_tree,
};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

/// A detached mount, held by its descriptor.
#[derive(Debug)]
pub struct Mount(OwnedFd);

/// A layer below, as overlay is told of it.
pub(crate) struct Lower {
    option: String,
    /// Kept until the mount is made.
    _directory: Option<OwnedFd>,
}

/// The two directories of the writable side of an overlay.
pub(crate) struct Writable<'a> {
    /// Where changes land.
    pub(crate) upper: BorrowedFd<'a>,
    /// Where the kernel prepares them; on the same file system.
    pub(crate) work: BorrowedFd<'a>,
}

impl Lower {
    /// A directory of the state folder whose path is ours, so that no link can be on the way.
    pub(crate) fn plain(state: &StateDir, path: &str) -> Self {
        Self { option: format!("{}/{path}", by_descriptor(state.fd())), _directory: None }
    }

    /// The name by which the kernel finds it.
    pub(crate) fn option(&self) -> &str {
        &self.option
    }

    /// Any directory of the host.
    #[cfg(test)]
    pub(crate) fn at(path: &Path) -> Self {
        Self { option: path.display().to_string(), _directory: None }
    }

    /// A directory of the state folder, opened with links refused.
    pub(crate) fn open(state: &StateDir, path: &[u8]) -> Result<Self, Error> {
        let directory = state.open_at(path, OFlags::PATH | OFlags::DIRECTORY);
        let shown = || crate::view::shorten(&String::from_utf8_lossy(path));
        let directory = directory.map_err(|errno| Error::io("open", shown())(errno.into()))?;
        Ok(Self { option: by_descriptor(directory.as_fd()), _directory: Some(directory) })
    }
}

impl Mount {
    /// A bind mount of a directory of the host.
    pub fn bind(path: &Path) -> Result<Self, Error> {
        Self::clone_of(CWD, path, OpenTreeFlags::AT_SYMLINK_NOFOLLOW)
    }

    /// A bind mount of one file of the host.
    pub fn bind_file(path: &Path) -> Result<Self, Error> {
        Self::bind(path)
    }

    /// Takes over a descriptor that `fsmount` or `open_tree` made.
    pub fn from_fd(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// A mount of what is at `path` inside this one, file or directory. Links are resolved inside
    /// this mount's root. `state` lends a place to kernels that cannot clone what is detached.
    pub(crate) fn at(&self, path: &str, state: &Arc<StateDir>) -> Result<Self, Error> {
        let refused = |source: rustix::io::Errno| Error::Mount {
            what: format!("`{}`", crate::view::shorten(path)),
            source: source.into(),
        };
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let place = openat2(&self.0, path, flags, Mode::empty(), resolve).map_err(refused)?;
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        match open_tree(&place, "", flags | OpenTreeFlags::AT_EMPTY_PATH) {
            Err(rustix::io::Errno::INVAL) => {
                let point = WorkDir::new(state)?;
                let part = attached::part(self.0.as_fd(), path, point.path());
                part.map(Self).map_err(refused)
            }
            cloned => cloned.map(Self).map_err(refused),
        }
    }

    /// Makes the mount read-only.
    pub fn set_read_only(&self) -> Result<(), Error> {
        sys::set_mount_read_only(self.0.as_fd())
            .map_err(|source| Error::Mount { what: "read-only".to_owned(), source })
    }

    /// The descriptor, for who attaches the mount.
    pub fn into_fd(self) -> OwnedFd {
        self.0
    }

    /// An overlay of `lowers`, newest first. Without a writable side it is read-only and there must
    /// be at least two lowers.
    /// `state` lends a place to kernels that cannot make overlays detached.
    pub(crate) fn overlay(
        lowers: &[Lower],
        writable: Option<&Writable<'_>>,
        state: &Arc<StateDir>,
    ) -> Result<Self, Error> {
        let made = match overlay(lowers, writable, state.marks()) {
            Err(Refused::OldKernel) => {
                let point = WorkDir::new(state)?;
                attached::overlay(lowers, writable, (point.path(), state.marks()))
            }
            Err(Refused::Errno(errno)) => Err(errno),
            Ok(made) => Ok(made),
        };
        made.map(Self).map_err(|errno| Error::Mount {
            what: format!("an overlay of {} layers", lowers.len()),
            source: errno.into(),
        })
    }

    fn clone_of(at: BorrowedFd<'_>, path: &Path, flags: OpenTreeFlags) -> Result<Self, Error> {
        let flags = flags | OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        open_tree(at, path, flags).map(Self).map_err(|source| Error::Mount {
            what: format!("`{}`", path.display()),
            source: source.into(),
        })
    }
}

/// Why the kernel did not make an overlay.
enum Refused {
    /// It does not know how to take lower directories one by one.
    OldKernel,
    Errno(rustix::io::Errno),
}

impl From<rustix::io::Errno> for Refused {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::Errno(errno)
    }
}

impl AsFd for Mount {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn overlay(
    lowers: &[Lower],
    writable: Option<&Writable<'_>>,
    marks: Marks,
) -> Result<OwnedFd, Refused> {
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, "source", "overlay")?;
    add_lowers(&context, lowers)?;
    if marks == Marks::User {
        // Without this the mount is made, and removing a directory of a lower fails much later.
        fsconfig_set_flag(&context, "userxattr")?;
    }
    let mut attributes = MountAttrFlags::empty();
    match writable {
        Some(writable) => {
            fsconfig_set_string(&context, "upperdir", by_descriptor(writable.upper))?;
            fsconfig_set_string(&context, "workdir", by_descriptor(writable.work))?;
            // Layers must mean the same over any other layer and on any kernel.
            for (option, value) in plain_options(marks) {
                fsconfig_set_string(&context, option, value)?;
            }
            // Without this every unmount syncs the whole file system below the upper directory.
            fsconfig_set_flag(&context, "volatile")?;
        }
        None => attributes |= MountAttrFlags::MOUNT_ATTR_RDONLY,
    }
    fsconfig_create(&context)?;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// What keeps layers plain: nothing in them points into other layers. With the marks of a user "off"
/// is refused where it means to follow what is there.
pub(crate) fn plain_options(marks: Marks) -> [(&'static str, &'static str); 3] {
    let redirect = if marks == Marks::User { "nofollow" } else { "off" };
    [("redirect_dir", redirect), ("metacopy", "off"), ("index", "off")]
}

/// Adds the lower directories one by one. The older form, one string of all of them, ends at the size
/// of a page and cannot be given to a mount that is not attached anywhere.
fn add_lowers(context: &OwnedFd, lowers: &[Lower]) -> Result<(), Refused> {
    for (number, lower) in lowers.iter().enumerate() {
        let added = fsconfig_set_string(context, "lowerdir+", &lower.option);
        added.map_err(|errno| match errno {
            rustix::io::Errno::INVAL if number == 0 => Refused::OldKernel,
            errno => Refused::Errno(errno),
        })?;
    }
    Ok(())
}

/// Names a directory by its descriptor. A string option may not pass 256 bytes and treats some
/// characters specially, and a path of the host could have both.
pub(crate) fn by_descriptor(directory: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", directory.as_raw_fd())
}
