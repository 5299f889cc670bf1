//! Signal masks and dispositions of this process.
#![expect(unsafe_code, reason = "signal masks have no safe wrappers")]

use super::last_error;
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};

/// Highest signal number of Linux on the platforms we build for.
const LAST_SIGNAL: i32 = 64;

fn full_set() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigfillset initialises the whole set.
    unsafe {
        libc::sigfillset(set.as_mut_ptr());
        set.assume_init()
    }
}

/// Makes every signal wait until it is asked for by [`next_signal`].
pub(crate) fn block_all() {
    let set = full_set();
    // SAFETY: the set lives until the call returns; the old mask is not asked for.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut()) };
}

/// Lets every signal through again.
pub(crate) fn unblock_all() {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set before it is used; it lives until the call returns.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, set.as_ptr(), std::ptr::null_mut());
    }
}

/// Undoes every handler and every "ignore", which programs would inherit: the Rust runtime ignores
/// SIGPIPE, and whoever started the engine may have ignored others.
pub(crate) fn default_all() {
    // The kernel's structure of handler, flags, restorer and mask; all zero means the default. The
    // C library would refuse the two signals that it keeps to itself.
    let default = [0u64; 4];
    let set_size = size_of::<u64>();
    for signal in 1..=LAST_SIGNAL {
        let none = std::ptr::null::<u64>();
        // SAFETY: the structure is complete and outlives the call. No handler is installed, only
        // removed; the two signals that have no disposition are refused, which is fine.
        unsafe {
            libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), none, set_size);
        }
    }
}

/// Waits for the next blocked signal.
pub(crate) fn next_signal() -> i32 {
    let set = full_set();
    loop {
        // SAFETY: the set lives until the call returns; no details are asked for.
        let signal = unsafe { libc::sigwaitinfo(&raw const set, std::ptr::null_mut()) };
        if signal > 0 {
            return signal;
        }
    }
}

/// A descriptor that can be read whenever a child has ended. SIGCHLD must be blocked.
pub(crate) fn watch_children() -> Result<OwnedFd, Errno> {
    // SAFETY: an all-zero set is a valid one to fill.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set lives until the calls return.
    let descriptor = unsafe {
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    if descriptor < 0 {
        return Err(last_error());
    }
    // SAFETY: the call has just made it, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
