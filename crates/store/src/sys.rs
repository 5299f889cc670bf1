//! The system calls that `rustix` does not wrap.
//!
//! Everything else in this crate goes through `rustix`; nothing but raw calls belongs here.
#![expect(unsafe_code, reason = "these calls have no safe wrapper in rustix or libc")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::thread::JoinHandleExt as _;
use std::thread::JoinHandle;

/// `struct mount_attr` of the kernel, first version.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

const MOUNT_ATTR_RDONLY: u64 = 1;

/// Makes one mount read-only, whether it is attached or not.
pub(crate) fn set_mount_read_only(mount: BorrowedFd<'_>) -> io::Result<()> {
    let attributes =
        MountAttributes { set: MOUNT_ATTR_RDONLY, clear: 0, propagation: 0, user_namespace: 0 };
    // SAFETY: the path is an empty C string, the structure is the kernel's first version and its
    // size is passed along; both live until the call returns.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// When a thread runs that could.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// As others do.
    Usual,
    /// Only where no other wants to.
    Idle,
}

/// Sets the pace of a thread. Only who may set any can go back to the usual one.
pub(crate) fn set_pace<T>(thread: &JoinHandle<T>, pace: Pace) -> io::Result<()> {
    let policy = match pace {
        Pace::Usual => libc::SCHED_OTHER,
        Pace::Idle => libc::SCHED_IDLE,
    };
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the thread was neither joined nor detached, since its handle is there; the structure lives
    // until the call returns.
    match unsafe {
        libc::pthread_setschedparam(thread.as_pthread_t(), policy, &raw const parameters)
    } {
        0 => Ok(()),
        number => Err(io::Error::from_raw_os_error(number)),
    }
}

/// The pace of the calling thread, if it is one of ours.
#[cfg(test)]
pub(crate) fn pace() -> Option<Pace> {
    // SAFETY: the call takes a number only; zero is the calling thread.
    match unsafe { libc::sched_getscheduler(0) } {
        libc::SCHED_OTHER => Some(Pace::Usual),
        libc::SCHED_IDLE => Some(Pace::Idle),
        _ => None,
    }
}

/// Gives pages that hold nothing any more back to the kernel. The allocator keeps them otherwise, however
/// much was dropped.
pub(crate) fn give_back_memory() {
    // SAFETY: the call takes a number, and the allocator locks what it touches.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0)
    };
}

/// Has the kernel begin to write the dirty pages of a file, and does not wait. What fails shows when
/// the file is synced.
pub(crate) fn start_writing(file: BorrowedFd<'_>) {
    // SAFETY: the call takes numbers only; length zero means to the end of the file.
    unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE) };
}
