//! What the zygote prepares once, so that a container only has to take it.
//!
//! The zygote lives in a root of its own, a small file system in memory:
//!
//! ```text
//! /null                          the null device, mounted over files that containers may not see
//! /empty/                        mounted over directories that containers may not see
//! /hosts /hostname /resolv.conf  mounted in every container
//! /proc /sys /dev                where a container puts these together before it has its root
//! /devices/                      in a user namespace: the host's device nodes
//! ```
//!
//! So a clone copies a mount table of five lines and not the host's, which may have hundreds, and
//! nothing of the host is left to be found in it.

use super::borrowed::Borrowed;
use crate::network::Outlet;
use crate::sys::{self, FilterInstruction};
use crate::wire::{self, Dialect};
use crate::{capabilities, packet, rootless, seccomp};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, makedev, open};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, UnmountFlags,
    fsconfig_create, fsconfig_set_string, fsmount, fsopen, mount_change, move_mount, unmount,
};
use rustix::thread::CapabilitySet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What is the same for every container.
pub(crate) struct World {
    /// The null device, open for reading and writing.
    pub(crate) null: OwnedFd,
    /// Byte 2 of most runs.
    pub(crate) network: u8,
    /// The host's network namespace.
    pub(crate) host_network: OwnedFd,
    /// What containers are plugged into, if there is anything. Its network namespace is the zygote's then.
    pub(crate) outlet: Option<Outlet>,
    /// The program that makes containers, if it is not us.
    pub(crate) runtime: Option<wire::Runtime>,
    /// Whether this is a user namespace, where device nodes and file systems of the kernel are borrowed.
    pub(crate) borrows: bool,
    /// Files in the zygote's root that are mounted in `/etc` of every container.
    pub(crate) host_files: Vec<&'static str>,
    /// Files that containers may not see.
    pub(crate) masked_files: Vec<(Area, &'static str)>,
    /// Directories that containers may not see.
    pub(crate) masked_directories: Vec<(Area, &'static str)>,
    /// What containers may not write, although they are root.
    pub(crate) read_only: Vec<&'static str>,
    /// The system call filter.
    pub(crate) filter: Vec<FilterInstruction>,
    /// The capabilities that we have ourselves.
    pub(crate) held: CapabilitySet,
    /// Whether we may make a process idle and usual again.
    pub(crate) paces: bool,
    /// Those that programs of a container must not gain by being executed.
    pub(crate) unbound: Vec<CapabilitySet>,
}

/// Which of the kernel's file systems a path is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Area {
    /// `/proc`
    Proc,
    /// `/sys`
    Sys,
}

/// What tells about the host, or lets root change it.
const MASKED: &[(Area, &str)] = &[
    (Area::Proc, "acpi"),
    (Area::Proc, "asound"),
    (Area::Proc, "interrupts"),
    (Area::Proc, "kcore"),
    (Area::Proc, "keys"),
    (Area::Proc, "latency_stats"),
    (Area::Proc, "sched_debug"),
    (Area::Proc, "scsi"),
    (Area::Proc, "sysrq-trigger"),
    (Area::Proc, "timer_list"),
    (Area::Proc, "timer_stats"),
    (Area::Sys, "devices/virtual/powercap"),
    (Area::Sys, "firmware"),
];

/// Where the host's `/sys` has its control groups, when it had to be borrowed.
const BORROWED_GROUPS: &str = "fs/cgroup";

/// Where a host has its control groups.
const CONTROL_GROUPS: &str = "/sys/fs/cgroup";

/// Parts of `/proc` that root could change the host through.
const READ_ONLY: &[&str] = &["bus", "fs", "irq", "sys"];

/// The name that every container has.
pub(crate) const HOSTNAME: &str = "ci-tool";

impl World {
    /// Where what the zygote prepared is: in its root, or in the host's, which it shares with a program that
    /// makes containers.
    pub(crate) fn folder(&self) -> &str {
        self.runtime.as_ref().map_or("", |runtime| &runtime.place)
    }

    /// Leaves the host's mounts behind and prepares everything. The zygote must already be in a mount
    /// namespace of its own.
    pub(super) fn prepare(setup: &wire::Setup, mut files: Vec<OwnedFd>) -> Result<World, String> {
        rustix::system::sethostname(HOSTNAME.as_bytes()).map_err(during("set the host name"))?;
        rustix::system::setdomainname(b"").map_err(during("set the domain name"))?;
        let host_network = enter_network(setup, &mut files).map_err(during("enter a network"))?;
        let borrows = rootless::inside();
        let borrow = || Borrowed::take(setup.network == wire::NETWORK_HOST);
        let borrowed = borrows.then(borrow).transpose().map_err(during("borrow devices"))?;
        let root = match &setup.runtime {
            None => enter_own_root().map_err(during("enter an own root"))?,
            Some(runtime) => beside_host(runtime).map_err(during("prepare for the runtime"))?,
        };
        for name in ["empty", "proc", "sys", "dev", "bundle"] {
            rustix::fs::mkdirat(&root, name, Mode::from_raw_mode(0o755))
                .map_err(during("make an empty directory"))?;
        }
        match borrowed {
            Some(borrowed) => borrowed.attach(root.as_fd()).map_err(during("attach devices"))?,
            None => make_null(root.as_fd()).map_err(during("make the null device"))?,
        }
        let null = rustix::fs::openat(&root, "null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
            .map_err(during("open the null device"))?;
        let host_files = attach_files(root.as_fd(), files).map_err(during("attach host files"))?;
        let closed = MountAttrFlags::MOUNT_ATTR_RDONLY | NO_SET_ID | NO_EXECUTION;
        sys::set_mount_attributes(root.as_fd(), u64::from(closed.bits()))
            .map_err(during("close the root"))?;
        let (masked_files, masked_directories, read_only) =
            present_paths(borrows).map_err(during("look at /proc and /sys"))?;
        let held = rustix::thread::capabilities(None).map_err(during("read capabilities"))?;
        Ok(World {
            null,
            network: setup.network,
            host_network,
            outlet: setup.outlet,
            runtime: setup.runtime.clone(),
            borrows,
            host_files,
            masked_files,
            masked_directories,
            read_only,
            filter: seccomp::compile(),
            held: held.permitted,
            paces: !borrows && held.effective.contains(CapabilitySet::SYS_NICE),
            unbound: bounded_capabilities(),
        })
    }
}

const NO_SET_ID: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID;
const NO_EXECUTION: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOEXEC;

fn during(action: &'static str) -> impl Fn(Errno) -> String {
    move |errno| format!("cannot {action}: {errno}")
}

/// A new instance of a file system, attached nowhere.
pub(crate) fn new_mount(
    kind: &str,
    options: &[(&str, &str)],
    attributes: MountAttrFlags,
) -> Result<OwnedFd, Errno> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in options {
        fsconfig_set_string(&context, *name, *value)?;
    }
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// Attaches a detached mount at a path below a directory.
pub(crate) fn attach(mount: BorrowedFd<'_>, at: BorrowedFd<'_>, path: &str) -> Result<(), Errno> {
    let empty_target = if path.is_empty() {
        MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH
    } else {
        MoveMountFlags::empty()
    };
    move_mount(mount, "", at, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | empty_target)
}

/// Makes `root` the root of this mount namespace and lets go of everything else in it.
pub(crate) fn become_root(root: BorrowedFd<'_>) -> Result<(), Errno> {
    rustix::process::fchdir(root)?;
    // The old root ends up on top of the new one, where it can be taken off without a place of its own.
    rustix::process::pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    rustix::process::chdir("/")
}

/// Enters the engine's network, if it has one: what is cloned there can plug itself in. Gives the host's.
fn enter_network(setup: &wire::Setup, files: &mut Vec<OwnedFd>) -> Result<OwnedFd, Errno> {
    let host = open("/proc/self/ns/net", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    if setup.outlet.is_some() {
        let engine = files.pop().ok_or(Errno::BADMSG)?;
        sys::enter_network(engine.as_fd())?;
    }
    Ok(host)
}

fn enter_own_root() -> Result<OwnedFd, Errno> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let root = new_mount("tmpfs", &[("mode", "755")], MountAttrFlags::empty())?;
    attach(root.as_fd(), CWD, "/")?;
    become_root(root.as_fd())?;
    Ok(root)
}

/// Stays in the host's root, where the runtime and its libraries are, with a place of our own in it. None of
/// what is mounted from here on is seen by anybody else.
fn beside_host(runtime: &wire::Runtime) -> Result<OwnedFd, Errno> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let place = new_mount("tmpfs", &[("mode", "700")], MountAttrFlags::empty())?;
    attach(place.as_fd(), CWD, &runtime.place)?;
    // Control groups are ours to give; a runtime that sees them may refuse how they are arranged.
    let hidden = match runtime.dialect {
        Dialect::Crun => new_mount("tmpfs", &[("mode", "755")], MountAttrFlags::empty())?,
        // It does without only where it finds some and may not change them.
        Dialect::Runc => new_mount("cgroup2", &[], MountAttrFlags::MOUNT_ATTR_RDONLY)?,
    };
    match attach(hidden.as_fd(), CWD, CONTROL_GROUPS) {
        Ok(()) | Err(Errno::NOENT) => Ok(place),
        Err(error) => Err(error),
    }
}

fn make_null(root: BorrowedFd<'_>) -> Result<(), Errno> {
    let (kind, mode) = (FileType::CharacterDevice, Mode::from_raw_mode(0o666));
    rustix::fs::mknodat(root, "null", kind, mode, makedev(1, 3))?;
    // What the file mode creation mask took away at `mknodat`.
    rustix::fs::chmodat(root, "null", mode, AtFlags::empty())
}

fn attach_files(root: BorrowedFd<'_>, files: Vec<OwnedFd>) -> Result<Vec<&'static str>, Errno> {
    let names = ["hosts", "hostname", "resolv.conf"];
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | NO_SET_ID
        | NO_EXECUTION;
    let mut attached = Vec::new();
    for (name, file) in names.into_iter().zip(files) {
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
        rustix::fs::openat(root, name, flags, Mode::from_raw_mode(0o644))?;
        sys::set_mount_attributes(file.as_fd(), u64::from(attributes.bits()))?;
        attach(file.as_fd(), root, name)?;
        attached.push(name);
    }
    Ok(attached)
}

type Paths = Vec<(Area, &'static str)>;

/// The paths of the lists above that this kernel has. What was borrowed is in our root already.
fn present_paths(borrows: bool) -> Result<(Paths, Paths, Vec<&'static str>), Errno> {
    let look = |kind: &str, path: &str| match borrows {
        true => open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()),
        false => new_mount(kind, &[], MountAttrFlags::empty()),
    };
    let (proc, sys) = (look("proc", "/proc")?, look("sysfs", "/sys")?);
    let (mut files, mut directories) = (Vec::new(), Vec::new());
    for (area, path) in MASKED {
        let tree = if *area == Area::Proc { &proc } else { &sys };
        let Ok(found) = rustix::fs::statat(tree, *path, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => directories.push((*area, *path)),
            _ => files.push((*area, *path)),
        }
    }
    if borrows {
        directories.push((Area::Sys, BORROWED_GROUPS));
    }
    let present = |path: &&&str| rustix::fs::statat(&proc, **path, AtFlags::empty()).is_ok();
    let read_only = READ_ONLY.iter().filter(present).copied().collect();
    Ok((files, directories, read_only))
}

/// Everything in the bounding set beyond the default capabilities.
fn bounded_capabilities() -> Vec<CapabilitySet> {
    let every = CapabilitySet::from_bits_retain(u64::MAX).difference(capabilities::DEFAULT);
    let bounded = |single: &CapabilitySet| {
        rustix::thread::capability_is_in_bounding_set(*single).unwrap_or(false)
    };
    capabilities::singles(every).filter(bounded).collect()
}

/// How many files a [`wire::Setup`] may bring.
pub(super) fn acceptable(descriptors: &[OwnedFd]) -> bool {
    descriptors.len() <= packet::MAX_DESCRIPTORS.min(4)
}
