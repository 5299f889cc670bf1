//! A mount namespace for this program and all it starts, so that what is mounted and unmounted for
//! peers is seen by nobody else.

#![expect(unsafe_code, reason = "leaving a namespace has no safe form")]

use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Enters a new mount namespace. To be called while the program has one thread: others would stay.
pub(super) fn own_mounts() -> rustix::io::Result<()> {
    // SAFETY: only a table of file descriptors that is no longer shared could be misused.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
}
