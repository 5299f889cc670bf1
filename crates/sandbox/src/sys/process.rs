//! Making, becoming and burying processes.
#![expect(unsafe_code, reason = "clone3, clone, execve and wait4 have no safe wrappers")]

use super::last_error;
use crate::spec::Usage;
use rustix::io::Errno;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// When a process runs that could.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// As others do.
    Usual,
    /// Only where a processor would idle, and never before who wakes up.
    Idle,
}

/// Sets the pace of a process; 0 is the caller itself. Only who may set any can go back to the usual one.
pub(crate) fn set_pace(pid: i32, pace: Pace) -> Result<(), Errno> {
    let policy = match pace {
        Pace::Usual => libc::SCHED_OTHER,
        Pace::Idle => libc::SCHED_IDLE,
    };
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters are read during the call only.
    match unsafe { libc::sched_setscheduler(pid, policy, &parameters) } {
        -1 => Err(last_error()),
        _ => Ok(()),
    }
}

/// Which of the two processes returns from [`clone_process`].
pub(crate) enum Clone3 {
    /// The new one.
    Child,
    /// The calling one.
    Parent {
        /// Process id of the child in the caller's pid namespace.
        pid: i32,
        /// A descriptor of the child.
        pidfd: OwnedFd,
    },
}

/// `struct clone_args` of the kernel, as of version 5.7.
#[repr(C)]
#[derive(Default)]
struct CloneArguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// `CLONE_INTO_CGROUP`, which does not fit the C library's `int`.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Forks into new namespaces, and into a version 2 control group if one is given.
///
/// Call this only from a process of one thread: the child has a copy of every lock as it was at that
/// moment, and a lock that another thread held stays held for ever.
pub(crate) fn clone_process(flags: u64, group: Option<BorrowedFd<'_>>) -> Result<Clone3, Errno> {
    let mut pidfd: c_int = -1;
    let mut arguments = CloneArguments {
        flags: flags | libc::CLONE_PIDFD as u64,
        pidfd: (&raw mut pidfd).expose_provenance() as u64,
        exit_signal: libc::SIGCHLD as u64,
        ..CloneArguments::default()
    };
    if let Some(group) = group {
        arguments.flags |= CLONE_INTO_CGROUP;
        arguments.cgroup = group.as_raw_fd() as u64;
    }
    // SAFETY: the structure is the kernel's, its size is passed along and `pidfd` outlives the call.
    // Without CLONE_VM the child has memory of its own, so no reference is shared between the two.
    let pid = unsafe {
        libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<CloneArguments>())
    };
    match pid {
        -1 => Err(last_error()),
        0 => Ok(Clone3::Child),
        // SAFETY: the kernel has just made this descriptor for us alone.
        pid => {
            Ok(Clone3::Parent { pid: pid as i32, pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) } })
        }
    }
}

/// Bytes of stack for the code between clone and exec.
const SPAWN_STACK: usize = 128 * 1024;

/// Runs `work` in a new process that shares this one's memory, while this one stands still until the
/// new one executes a program or ends. What `work` returns is the new process's exit code. This
/// spares the copy of the page tables that a fork makes.
pub(crate) fn spawn_in_shared_memory(work: &mut dyn FnMut() -> i32) -> Result<i32, Errno> {
    extern "C" fn enter(argument: *mut c_void) -> c_int {
        // SAFETY: `argument` is the address of the caller's reference below, which lives until the
        // caller goes on, and the caller stands still as long as this runs.
        let work = unsafe { &mut *argument.cast::<&mut dyn FnMut() -> i32>() };
        work()
    }
    let mut stack: Vec<u128> = Vec::with_capacity(SPAWN_STACK / size_of::<u128>());
    let mut work = work;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the stack is ours, aligned to 16 bytes, used by nobody else, and is freed only after
    // CLONE_VFORK has let us go on, when the child is no longer on it. This is a process of one
    // thread, so nobody else observes what the child does to the memory meanwhile.
    let pid = unsafe {
        let top = stack.as_mut_ptr().add(stack.capacity()).cast::<c_void>();
        libc::clone(enter, top, flags, (&raw mut work).cast::<c_void>())
    };
    if pid == -1 { Err(last_error()) } else { Ok(pid) }
}

/// Strings as `execve` wants them: pointers to each, then a null.
pub(crate) struct Strings {
    pointers: Vec<*const c_char>,
    /// What the pointers point to; moving the vector does not move the strings.
    _owned: Vec<CString>,
}

impl Strings {
    /// Lists the strings.
    pub(crate) fn new(owned: Vec<CString>) -> Self {
        let mut pointers: Vec<*const c_char> = owned.iter().map(|text| text.as_ptr()).collect();
        pointers.push(std::ptr::null());
        Self { pointers, _owned: owned }
    }
}

/// Makes the next program that this process becomes stop before it does anything.
pub(crate) fn trace_me() -> Result<(), Errno> {
    let none = std::ptr::null_mut::<c_void>();
    // SAFETY: this request reads none of its other arguments.
    match unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, none, none) } {
        -1 => Err(last_error()),
        _ => Ok(()),
    }
}

/// Becomes the program at `path`; returns only when that failed.
pub(crate) fn execute(path: &CStr, arguments: &Strings, environment: &Strings) -> Errno {
    // SAFETY: both lists end with a null and point to C strings that they own.
    unsafe {
        libc::execve(path.as_ptr(), arguments.pointers.as_ptr(), environment.pointers.as_ptr());
    }
    last_error()
}

/// Becomes the program behind a descriptor; returns only when that failed.
pub(crate) fn execute_descriptor(
    program: BorrowedFd<'_>,
    arguments: &Strings,
    environment: &Strings,
) -> Errno {
    // SAFETY: as in `execute`; the path is an empty C string.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            program.as_raw_fd(),
            c"".as_ptr(),
            arguments.pointers.as_ptr(),
            environment.pointers.as_ptr(),
            libc::AT_EMPTY_PATH,
        );
    }
    last_error()
}

/// Puts a descriptor at a number of our choice, to be inherited by the next program.
///
/// Only for use between clone and exec: whatever was open at `number` is gone.
pub(crate) fn place_descriptor(descriptor: BorrowedFd<'_>, number: RawFd) -> Result<(), Errno> {
    // SAFETY: dup2 touches no memory; the caller is about to execute another program, so nothing in
    // this process owns `number` any more.
    match unsafe { libc::dup2(descriptor.as_raw_fd(), number) } {
        -1 => Err(last_error()),
        _ => Ok(()),
    }
}

/// Ends this process at once, without running anything that was registered for its end.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: no memory is touched and it does not return.
    unsafe { libc::_exit(code) }
}

/// A child that has ended and is buried.
pub(crate) struct Buried {
    pub(crate) pid: i32,
    /// Its exit code, or 128 plus the signal that ended it.
    pub(crate) code: i32,
    /// What it and all that it waited for have used.
    pub(crate) usage: Usage,
}

/// Buries a child; none if it has not ended.
pub(crate) fn wait_for(pid: i32) -> Result<Option<Buried>, Errno> {
    wait4(pid)
}

/// Buries any child that has ended.
pub(crate) fn wait_for_any() -> Result<Option<Buried>, Errno> {
    wait4(-1)
}

fn wait4(which: i32) -> Result<Option<Buried>, Errno> {
    let mut status: c_int = 0;
    // SAFETY: an all-zero rusage is a valid one.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both out-parameters live until the call returns.
    let pid = unsafe { libc::wait4(which, &raw mut status, libc::WNOHANG, &raw mut usage) };
    match pid {
        -1 => return Err(last_error()),
        0 => return Ok(None),
        _ => {}
    }
    let code = if libc::WIFEXITED(status) {
        libc::WEXITSTATUS(status)
    } else {
        128 + libc::WTERMSIG(status)
    };
    let usage = Usage {
        user: duration(usage.ru_utime),
        system: duration(usage.ru_stime),
        max_resident: usage.ru_maxrss as u64 * 1024,
    };
    Ok(Some(Buried { pid, code, usage }))
}

fn duration(time: libc::timeval) -> Duration {
    Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000)
}
