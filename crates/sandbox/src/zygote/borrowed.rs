//! [`Borrowed`]: what root of a user namespace cannot make and takes from the host.
//!
//! Device nodes cannot be made there, so the host's are bound. And the kernel mounts a new `/proc` or
//! `/sys` only where another one is to be seen whole, so the zygote keeps one of each in its root.

use super::world::{attach, new_mount};
use crate::container::DEVICES;
use crate::sys;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, OpenTreeFlags, open_tree};
use rustix::thread::UnshareFlags;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Where the device nodes are in the zygote's root.
pub(crate) const FOLDER: &str = "devices";

/// Mounts that are attached nowhere yet.
pub(super) struct Borrowed {
    proc: OwnedFd,
    sys: OwnedFd,
    null: OwnedFd,
    devices: Vec<(&'static str, OwnedFd)>,
}

impl Borrowed {
    /// Takes everything, while the host's mounts are still there.
    pub(super) fn take(host_network: bool) -> Result<Borrowed, Errno> {
        let device = |name: &'static str| Ok((name, clone_tree(&format!("/dev/{name}"))?));
        Ok(Borrowed {
            proc: new_mount("proc", &[], MountAttrFlags::empty())?,
            sys: take_sys(host_network)?,
            null: clone_tree("/dev/null")?,
            devices: DEVICES.iter().map(|(name, ..)| device(name)).collect::<Result<_, Errno>>()?,
        })
    }

    /// Puts everything into the zygote's root, which has the directories for it.
    pub(super) fn attach(self, root: BorrowedFd<'_>) -> Result<(), Errno> {
        attach(self.proc.as_fd(), root, "proc")?;
        attach(self.sys.as_fd(), root, "sys")?;
        place(root, "null", &self.null)?;
        rustix::fs::mkdirat(root, FOLDER, Mode::from_raw_mode(0o755))?;
        for (name, device) in &self.devices {
            place(root, &format!("{FOLDER}/{name}"), device)?;
        }
        Ok(())
    }
}

/// A mount of what the host has at a path, with all that is mounted below: the mounts of a namespace
/// with more rights come together or not at all.
pub(crate) fn clone_tree(path: &str) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    open_tree(CWD, path, flags | OpenTreeFlags::AT_RECURSIVE)
}

/// A `/sys` of our own shows a network namespace, which must be ours too. Containers that share the
/// host's network get the host's.
fn take_sys(host_network: bool) -> Result<OwnedFd, Errno> {
    match new_mount("sysfs", &[], MountAttrFlags::empty()) {
        Err(Errno::PERM) if host_network => clone_tree("/sys"),
        Err(Errno::PERM) => {
            sys::unshare(UnshareFlags::NEWNET)?;
            new_mount("sysfs", &[], MountAttrFlags::empty())
        }
        made => made,
    }
}

/// Mounts a file under a name that is made for it.
fn place(root: BorrowedFd<'_>, path: &str, file: &OwnedFd) -> Result<(), Errno> {
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::openat(root, path, flags, Mode::from_raw_mode(0o644))?;
    attach(file.as_fd(), root, path)
}
