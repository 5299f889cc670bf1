//! File systems that a program answers for.
//!
//! The mount is attached nowhere and the program is handed its other end: no path leads to it but for who gets the
//! mount, nobody needs the right to mount but us, and when the program is gone everybody who waits for it is told.

use crate::Error;
use rustix::fs::{Mode, OFlags, open, openat};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen,
};
use std::os::fd::{AsRawFd, OwnedFd};
use store::Mount;

/// What the kernel gives such file systems out by.
const DEVICE: &str = "/dev/fuse";
/// Most bytes that are read at once. Programs that do not say another number rely on this one.
const MAX_READ: &str = "65536";

/// A file system, and the end of it for the program that answers for its files. Whoever waits for that program waits
/// for as long as somebody holds its end.
pub fn answered_mount(source: &str) -> Result<(Mount, OwnedFd), Error> {
    let device = open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| Error::host("cannot open `/dev/fuse`")(errno.into()))?;
    let mount = mount(source, &device)
        .map_err(|errno| Error::host("the kernel makes no fuse file system")(errno.into()))?;
    Ok((Mount::from_fd(mount), device))
}

/// Waits until somebody answers for the files of such a mount; false when there is nobody who could.
pub async fn is_answered(mount: &Mount) -> Result<bool, Error> {
    let failed = Error::host("cannot look into a mount");
    let root = rustix::io::dup(mount).map_err(|errno| failed(errno.into()))?;
    // This waits in the kernel, which knows whether anybody is left who holds the other end.
    let first = tokio::task::spawn_blocking(move || {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(&root, ".", flags, Mode::empty())
    });
    match first.await.map_err(|error| failed(error.into()))? {
        Ok(_) => Ok(true),
        Err(Errno::NOTCONN | Errno::CONNABORTED) => Ok(false),
        Err(errno) => Err(failed(errno.into())),
    }
}

fn mount(source: &str, device: &OwnedFd) -> Result<OwnedFd, Errno> {
    let context = fsopen("fuse", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let number = device.as_raw_fd().to_string();
    for (option, value) in [
        ("source", source),
        ("fd", &number),
        ("rootmode", "40000"),
        ("user_id", "0"),
        ("group_id", "0"),
        ("max_read", MAX_READ),
    ] {
        fsconfig_set_string(&context, option, value)?;
    }
    // Users of a container are others than we are, and the kernel compares them with the bits of a file.
    for option in ["allow_other", "default_permissions"] {
        fsconfig_set_flag(&context, option)?;
    }
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOSUID;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}
