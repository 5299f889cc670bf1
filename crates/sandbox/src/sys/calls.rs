//! Calls about mounts, descriptors, filters and the little rest.
#![expect(unsafe_code, reason = "these calls have no safe wrappers")]

use super::last_error;
use rustix::io::Errno;
use rustix::thread::{LinkNameSpaceType, ThreadNameSpaceType, UnshareFlags};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// One instruction of a system call filter.
pub(crate) type FilterInstruction = libc::sock_filter;

/// `struct mount_attr` of the kernel, first version.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Adds attributes (`MOUNT_ATTR_*`) to a mount and all below it, and cuts them off from whatever
/// mounts they share events with.
pub(crate) fn set_mount_attributes(mount: BorrowedFd<'_>, set: u64) -> Result<(), Errno> {
    change_mount(mount, set, libc::AT_RECURSIVE)
}

/// Does the same to one mount, and to none below it.
pub(crate) fn set_own_mount_attributes(mount: BorrowedFd<'_>, set: u64) -> Result<(), Errno> {
    change_mount(mount, set, 0)
}

fn change_mount(mount: BorrowedFd<'_>, set: u64, reach: libc::c_int) -> Result<(), Errno> {
    let attributes =
        MountAttributes { set, clear: 0, propagation: libc::MS_PRIVATE, user_namespace: 0 };
    // SAFETY: the path is an empty C string, the structure is the kernel's first version and its
    // size is passed along; both live until the call returns.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | reach,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(last_error()) }
}

/// Takes over a descriptor that this process was started with.
pub(crate) fn take_descriptor(number: RawFd) -> Result<OwnedFd, Errno> {
    // SAFETY: fcntl with F_SETFD touches no memory.
    if unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } == -1 {
        return Err(last_error());
    }
    // SAFETY: the descriptor is open and was handed to this process for this purpose, so nothing
    // else in it owns the number.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Closes every descriptor from `first` on, owners or not. Only for a process that is past using any
/// of them and will end by [`super::exit_now`].
pub(crate) fn close_range(first: u32) {
    // SAFETY: touches no memory; see above for what owners may still do.
    unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) };
}

/// Closes every descriptor above the standard streams but these, owners or not. Only for a process
/// that uses no other from here on and will end by [`super::exit_now`].
pub(crate) fn close_all_but(kept: &[BorrowedFd<'_>]) {
    let mut kept: Vec<u32> = kept.iter().map(|kept| kept.as_raw_fd() as u32).collect();
    kept.sort_unstable();
    let mut first = 3;
    for kept in kept {
        if first < kept {
            // SAFETY: touches no memory; see above for what owners may still do.
            unsafe { libc::syscall(libc::SYS_close_range, first, kept - 1, 0) };
        }
        first = first.max(kept + 1);
    }
    close_range(first);
}

/// Marks every descriptor from `first` on to be closed when a program is executed.
pub(crate) fn close_on_exec_from(first: u32) {
    // SAFETY: touches no memory.
    unsafe {
        libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
    }
}

/// Puts a filter before every system call of this process and its descendants, for ever.
pub(crate) fn install_filter(filter: &[FilterInstruction]) -> Result<(), Errno> {
    let length = u16::try_from(filter.len()).map_err(|_| Errno::INVAL)?;
    let program = libc::sock_fprog { len: length, filter: filter.as_ptr().cast_mut() };
    // SAFETY: the kernel reads `length` instructions and keeps a copy; it writes nothing.
    let result = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program)
    };
    if result == 0 { Ok(()) } else { Err(last_error()) }
}

/// Leaves the session keyring that was inherited for a new, empty one.
pub(crate) fn join_new_session_keyring() -> Result<(), Errno> {
    const KEYCTL_JOIN_SESSION_KEYRING: libc::c_int = 1;
    // SAFETY: a null name asks for an anonymous keyring.
    let result = unsafe {
        libc::syscall(libc::SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, std::ptr::null::<u8>())
    };
    if result == -1 { Err(last_error()) } else { Ok(()) }
}

/// Makes the control group that this process is in look like the top of its hierarchy.
pub(crate) fn hide_control_groups() -> Result<(), Errno> {
    // SAFETY: this flag unshares neither memory nor the descriptor table.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWCGROUP) }
}

/// Enters a network namespace with this thread.
pub(crate) fn enter_network(namespace: BorrowedFd<'_>) -> Result<(), Errno> {
    rustix::thread::move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network))
}

/// Enters all namespaces of a container but that of users with this process: those of its mounts, processes
/// (for children), network, messages, name and control groups. By the descriptor of a process in it.
pub(crate) fn enter_container(process: BorrowedFd<'_>) -> Result<(), Errno> {
    let namespaces = ThreadNameSpaceType::MOUNT
        | ThreadNameSpaceType::PROCESS_ID
        | ThreadNameSpaceType::NETWORK
        | ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION
        | ThreadNameSpaceType::HOST_NAME_AND_NIS_DOMAIN_NAME
        | ThreadNameSpaceType::CONTROL_GROUP;
    rustix::thread::move_into_thread_name_spaces(process, namespaces)
}

/// Leaves namespaces for new ones. Call this while there is only one thread: others would stay behind.
pub(crate) fn unshare(namespaces: UnshareFlags) -> Result<(), Errno> {
    // SAFETY: callers unshare namespaces, neither memory nor the descriptor table.
    unsafe { rustix::thread::unshare_unsafe(namespaces) }
}

/// Lets the runtime watch a descriptor. Must be called inside a tokio runtime.
pub(crate) fn watched(descriptor: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the watch owns the descriptor, so it stays open, and the same, as long as it is watched.
    unsafe { AsyncFd::register_with_interest(descriptor, interest) }.map_err(io::Error::from)
}

/// Brings the loopback interface of this network namespace up.
pub(crate) fn loopback_up() -> Result<(), Errno> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: an all-zero ifreq is a valid one.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(b"lo") {
        *place = *byte as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request is a complete ifreq, as SIOCSIFFLAGS expects, and outlives the call.
    match unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) } {
        -1 => Err(last_error()),
        _ => Ok(()),
    }
}

/// Leaves only the first argument in what `/proc/<pid>/cmdline` shows of this process.
///
/// `stat` is the text of `/proc/self/stat`. Arguments must have been read before.
pub(crate) fn erase_arguments(stat: &str) {
    // Fields are counted after the name, which may itself contain spaces and parentheses.
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let mut fields = after_name.split_ascii_whitespace().skip(45);
    let mut next = || fields.next().and_then(|field| field.parse::<usize>().ok());
    let (Some(start), Some(end)) = (next(), next()) else { return };
    if start == 0 || end <= start {
        return;
    }
    // SAFETY: the kernel says that the process's own argument strings lie here; they are writable
    // memory of this process. Nothing refers to them any more: this runs after the arguments were read.
    let arguments = unsafe {
        std::slice::from_raw_parts_mut(
            std::ptr::with_exposed_provenance_mut::<u8>(start),
            end - start,
        )
    };
    let first = arguments.iter().position(|byte| *byte == 0).unwrap_or(arguments.len());
    if first + 1 >= arguments.len() {
        return;
    }
    arguments[first..].fill(0);
    // The kernel shows just the first string when the last byte is not a zero.
    if let Some(last) = arguments.last_mut() {
        *last = 1;
    }
}
