//! Files and sockets that exist in memory only, for one container.
//!
//! Each is the one entry of a file system of its own, which is attached nowhere and gone with the last who
//! holds it. So nothing of it is ever on a disk, and a crash leaves nothing.

use crate::Error;
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid, chmodat, chownat, openat};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen,
};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use store::Mount;

/// Name of the one entry.
pub const MEMORY_ENTRY: &str = "entry";

/// Permission bits of a socket: its owner may connect.
const SOCKET_MODE: u32 = 0o600;

/// A file with these bytes, permission bits and owner: the file system that it is the entry of.
pub fn memory_file(bytes: &[u8], mode: u32, owner: (u32, u32)) -> Result<Mount, Error> {
    let made = || {
        let folder = new_folder()?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = openat(&folder, MEMORY_ENTRY, flags, Mode::from_raw_mode(0o600))?;
        File::from(file).write_all(bytes)?;
        give(&folder, mode, owner)?;
        Ok(Mount::from_fd(folder))
    };
    made().map_err(Error::host("cannot make a file in memory"))
}

/// A socket that its owner may connect to: the file system that it is the entry of, and our end.
pub fn memory_socket(owner: (u32, u32)) -> Result<(Mount, UnixListener), Error> {
    let made = || {
        let folder = new_folder()?;
        // The name of a socket has room for about a hundred bytes; this is short on any machine.
        let place = format!("/proc/self/fd/{}/{MEMORY_ENTRY}", folder.as_raw_fd());
        let listener = UnixListener::bind(place)?;
        listener.set_nonblocking(true)?;
        give(&folder, SOCKET_MODE, owner)?;
        Ok((Mount::from_fd(folder), listener))
    };
    made().map_err(Error::host("cannot make a socket in memory"))
}

/// Where other processes find the one entry of a file system in memory, for as long as we hold that.
pub fn memory_place(mount: &Mount) -> PathBuf {
    let (process, number) = (std::process::id(), mount.as_fd().as_raw_fd());
    PathBuf::from(format!("/proc/{process}/fd/{number}/{MEMORY_ENTRY}"))
}

/// An empty file system in memory, attached nowhere.
fn new_folder() -> Result<OwnedFd, Errno> {
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, "source", "tmpfs")?;
    fsconfig_set_string(&context, "mode", "0700")?;
    // What is swapped out is on a disk. Older kernels and engines without root cannot refuse that.
    let _ = fsconfig_set_flag(&context, "noswap");
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// Gives the entry its owner, and then its permission bits, some of which a new owner would take away.
fn give(folder: &OwnedFd, mode: u32, (uid, gid): (u32, u32)) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    chownat(folder, MEMORY_ENTRY, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(chmodat(folder, MEMORY_ENTRY, Mode::from_raw_mode(mode), AtFlags::empty())?)
}
