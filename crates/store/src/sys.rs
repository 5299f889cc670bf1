//! The system calls that `rustix` does not wrap.
//!
//! Everything else in this crate goes through `rustix`; nothing but raw calls belongs here.
#![expect(unsafe_code, reason = "these calls have no safe wrapper in rustix or libc")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

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

/// Lets this thread run only where no other wants to. What fails leaves it as it was, which is slower
/// for others but not wrong.
pub(crate) fn become_idle_thread() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the structure lives until the call returns; zero is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
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
