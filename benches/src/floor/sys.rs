//! System calls of the floor program: an overlay that no other process sees, and a clone that
//! becomes process 1 of new namespaces.
//!
//! Only for a process with one thread: what runs after the clone may allocate.

#![expect(unsafe_code, reason = "clone3, execve and _exit have no safe form")]

use anyhow::{Context as _, Result, bail};
use rustix::fs::{CWD, FileType, Mode, OFlags, makedev, mkdirat, mknodat, openat, symlinkat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, UnmountFlags,
    fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, mount_change,
    move_mount, unmount,
};
use rustix::process::{Pid, WaitOptions, chdir, pivot_root, waitpid};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};
use std::ffi::CStr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

/// What is executed in the container.
const PROGRAM: &CStr = c"/bin/true";

/// Exit code of a container that could not be set up.
const SETUP_FAILED: i32 = 100;

const NAMESPACES: i32 = libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWCGROUP;

/// A `volatile` overlay over one lower, mounted nowhere.
pub(super) fn overlay(lower: &Path, upper: &Path, work: &Path) -> rustix::io::Result<OwnedFd> {
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(context.as_fd(), "lowerdir+", lower)?;
    fsconfig_set_string(context.as_fd(), "upperdir", upper)?;
    fsconfig_set_string(context.as_fd(), "workdir", work)?;
    fsconfig_set_flag(context.as_fd(), "volatile")?;
    fsconfig_create(context.as_fd())?;
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
}

/// Runs the program in new namespaces on this root, waits for it and lets the root go.
/// A network that was made before is entered instead of making one.
pub(super) fn run(
    root: OwnedFd,
    stage: &Path,
    furnished: bool,
    network: Option<&OwnedFd>,
) -> Result<()> {
    let namespaces = if network.is_some() { NAMESPACES & !libc::CLONE_NEWNET } else { NAMESPACES };
    let pid = clone(namespaces).context("cannot clone")?;
    let Some(pid) = pid else { become_container(&root, stage, furnished, network) };
    let (_, status) = waitpid(Some(pid), WaitOptions::empty())?.context("the child has ended")?;
    match status.exit_status() {
        Some(0) => Ok(()),
        other => bail!("the container ended with {other:?}"),
    }
}

/// A network namespace in which nobody is, with its loopback up.
pub(super) fn network() -> Result<OwnedFd> {
    let made = std::thread::scope(|scope| {
        let maker = scope.spawn(|| -> Result<OwnedFd> {
            // SAFETY: this flag unshares neither memory nor the descriptor table.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
            let up = std::process::Command::new("ip").args(["link", "set", "lo", "up"]).status()?;
            anyhow::ensure!(up.success(), "the loopback cannot be brought up");
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            Ok(openat(CWD, "/proc/thread-self/ns/net", flags, Mode::empty())?)
        });
        maker.join().map_err(|_| anyhow::anyhow!("the thread that makes it panicked"))
    });
    made?
}

/// A child in new namespaces: nothing in the child, its number in the parent.
fn clone(namespaces: i32) -> std::io::Result<Option<Pid>> {
    // SAFETY: all fields of these arguments are numbers, for which zero means "not used".
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.flags = namespaces.unsigned_abs().into();
    arguments.exit_signal = libc::SIGCHLD.unsigned_abs().into();
    // SAFETY: without CLONE_VM and without a stack of its own this is a fork; the process has one
    // thread, so the child's copy of the memory is consistent.
    let result = unsafe {
        libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<libc::clone_args>())
    };
    match result {
        -1 => Err(std::io::Error::last_os_error()),
        number => Ok(Pid::from_raw(number as i32)),
    }
}

/// Makes the overlay the root of this process.
fn enter(root: &OwnedFd, stage: &Path, furnished: bool) -> rustix::io::Result<()> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    place(root, stage)?;
    chdir(stage)?;
    if furnished {
        furnish()?;
    }
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    chdir("/")
}

/// The mounts every container has, below the working directory.
fn furnish() -> rustix::io::Result<()> {
    let plain = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let proc = file_system("proc", &[], plain | MountAttrFlags::MOUNT_ATTR_NODEV)?;
    place(&proc, Path::new("proc"))?;
    let options = [("mode", "755"), ("size", "65536k")];
    let dev = file_system("tmpfs", &options, MountAttrFlags::MOUNT_ATTR_NOSUID)?;
    let nodes =
        [("null", 1, 3), ("zero", 1, 5), ("full", 1, 7), ("random", 1, 8), ("urandom", 1, 9)];
    for (name, major, minor) in nodes.into_iter().chain([("tty", 5, 0)]) {
        let mode = Mode::from_raw_mode(0o666);
        mknodat(&dev, name, FileType::CharacterDevice, mode, makedev(major, minor))?;
    }
    for (name, target) in [("fd", "/proc/self/fd"), ("ptmx", "pts/ptmx")] {
        symlinkat(target, &dev, name)?;
    }
    mkdirat(&dev, "pts", Mode::from_raw_mode(0o755))?;
    mkdirat(&dev, "shm", Mode::from_raw_mode(0o1777))?;
    place(&dev, Path::new("dev"))?;
    let pts = file_system("devpts", &[("ptmxmode", "0666"), ("mode", "0620")], plain)?;
    place(&pts, Path::new("dev/pts"))?;
    let shm = file_system("tmpfs", &[("mode", "1777"), ("size", "65536k")], plain)?;
    place(&shm, Path::new("dev/shm"))?;
    let sys = file_system("sysfs", &[], plain | MountAttrFlags::MOUNT_ATTR_RDONLY)?;
    place(&sys, Path::new("sys"))
}

fn file_system(
    name: &str,
    options: &[(&str, &str)],
    attributes: MountAttrFlags,
) -> rustix::io::Result<OwnedFd> {
    let context = fsopen(name, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        fsconfig_set_string(context.as_fd(), *key, *value)?;
    }
    fsconfig_create(context.as_fd())?;
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

fn place(mount: &OwnedFd, target: &Path) -> rustix::io::Result<()> {
    move_mount(mount.as_fd(), "", CWD, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}

/// Becomes the program on its root, or ends. Never returns into the parent's code.
fn become_container(root: &OwnedFd, stage: &Path, furnished: bool, network: Option<&OwnedFd>) -> ! {
    let joined = network.map_or(Ok(()), |network| {
        move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))
    });
    let entered = joined.and_then(|()| enter(root, stage, furnished));
    let arguments = [PROGRAM.as_ptr(), std::ptr::null()];
    let environment = [c"PATH=/bin".as_ptr(), std::ptr::null()];
    // SAFETY: both lists end with null and point to texts that live as long as the program; `_exit`
    // ends this copy of the process without running anything of the parent's.
    unsafe {
        if entered.is_ok() {
            libc::execve(PROGRAM.as_ptr(), arguments.as_ptr(), environment.as_ptr());
        }
        libc::_exit(SETUP_FAILED)
    }
}
