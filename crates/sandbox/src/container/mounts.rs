//! Builds what a container sees as its file system.
//!
//! The root is not trusted: any name in it may be a link that a hostile image put there. So no path
//! in it is ever given to the kernel as a string to mount at. A path is resolved once, inside the root, to a
//! descriptor, and the mount goes onto that. Links in the places of `/proc`, `/dev` and `/sys` are refused.

use super::Descriptors;
use crate::sys;
use crate::wire::{Failure, MountEntry, MountKind, Run};
use crate::zygote::{Area, DEVICE_FOLDER, World, attach, become_root, clone_tree, new_mount};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, makedev};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, OpenTreeFlags, open_tree};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

const READ_ONLY: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_RDONLY;
const NO_DEVICES: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NODEV;
const NO_SET_ID: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID;
const NO_EXECUTION: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOEXEC;

/// How often a path is looked up again. The kernel does not say where `..` leads while anything on the machine is
/// renamed or mounted.
const TRIES: usize = 1000;

/// The kernel's file systems, put together in the root that the zygote left us. They are moved to the
/// container's root as soon as that is there.
pub(super) struct Staged {
    proc: OwnedFd,
    sys: OwnedFd,
    dev: OwnedFd,
}

impl Staged {
    /// The `/proc`.
    pub(super) fn proc(&self) -> BorrowedFd<'_> {
        self.proc.as_fd()
    }

    /// The `/dev`.
    pub(super) fn dev(&self) -> BorrowedFd<'_> {
        self.dev.as_fd()
    }
}

/// Makes what every container has.
pub(super) fn stage(world: &World) -> Result<Staged, Failure> {
    let none = NO_SET_ID | NO_DEVICES | NO_EXECUTION;
    let failed = Failure::mount("/proc");
    let proc = new_mount("proc", &[], none).map_err(&failed)?;
    attach(proc.as_fd(), CWD, "/proc").map_err(&failed)?;
    close_proc(world, proc.as_fd()).map_err(failed)?;
    let failed = Failure::mount("/sys");
    let sys = new_sys(world, none | READ_ONLY).map_err(&failed)?;
    attach(sys.as_fd(), CWD, "/sys").map_err(&failed)?;
    mask(world, Area::Sys, sys.as_fd()).map_err(failed)?;
    let dev = new_dev(world).map_err(Failure::mount("/dev"))?;
    Ok(Staged { proc, sys, dev })
}

/// Mounts everything and makes it the root of this process.
pub(super) fn build(
    world: &World,
    run: &Run,
    descriptors: &Descriptors,
    mut staged: Staged,
) -> Result<(), Failure> {
    let root = descriptors.root.as_fd();
    let attributes = if run.all_capabilities { MountAttrFlags::empty() } else { NO_DEVICES };
    sys::set_mount_attributes(root, u64::from(attributes.bits())).map_err(Failure::mount("/"))?;
    attach(root, CWD, "/").map_err(Failure::mount("/"))?;
    if run.all_capabilities {
        let none = NO_SET_ID | NO_DEVICES | NO_EXECUTION;
        staged.proc = new_mount("proc", &[], none).map_err(Failure::mount("/proc"))?;
        staged.sys = new_sys(world, none).map_err(Failure::mount("/sys"))?;
    }
    attach_system(&staged.proc, root, "/proc")?;
    attach_system(&staged.sys, root, "/sys")?;
    attach_system(&staged.dev, root, "/dev")?;
    mount_host_files(world, run, root)?;
    mount_given(run, descriptors)?;
    become_root(root).map_err(Failure::setup("change the root"))
}

/// Makes a root that everything but the kernel's file systems is mounted in the root of this process, with
/// those of the kernel as they come.
pub(super) fn visit(world: &World, root: BorrowedFd<'_>) -> Result<(), Failure> {
    let none = NO_SET_ID | NO_DEVICES | NO_EXECUTION;
    let proc = new_mount("proc", &[], none).map_err(Failure::mount("/proc"))?;
    let sys = new_sys(world, none | READ_ONLY).map_err(Failure::mount("/sys"))?;
    let dev = new_dev(world).map_err(Failure::mount("/dev"))?;
    attach_system(&proc, root, "/proc")?;
    attach_system(&sys, root, "/sys")?;
    attach_system(&dev, root, "/dev")?;
    become_root(root).map_err(Failure::setup("change the root"))
}

/// A `/sys` that shows the network of this container. The root of a user namespace gets none that
/// shows the host's network, so it takes the host's own, which is read-only.
fn new_sys(world: &World, attributes: MountAttrFlags) -> Result<OwnedFd, Errno> {
    match new_mount("sysfs", &[], attributes) {
        Err(Errno::PERM) if world.borrows => clone_tree("/sys"),
        made => made,
    }
}

/// Closes what root could change the host through, and hides what tells about it.
fn close_proc(world: &World, proc: BorrowedFd<'_>) -> Result<(), Errno> {
    let attributes = READ_ONLY | NO_SET_ID | NO_DEVICES | NO_EXECUTION;
    for path in &world.read_only {
        let part = clone_of(proc, path)?;
        sys::set_mount_attributes(part.as_fd(), u64::from(attributes.bits()))?;
        attach(part.as_fd(), proc, path)?;
    }
    mask(world, Area::Proc, proc)
}

/// Hides the parts of a kernel file system that tell about the host.
fn mask(world: &World, area: Area, tree: BorrowedFd<'_>) -> Result<(), Errno> {
    let cover = |what: &str, path: &str| attach(clone_of(CWD, what)?.as_fd(), tree, path);
    for (_, path) in world.masked_files.iter().filter(|(masked, _)| *masked == area) {
        cover("/null", path)?;
    }
    for (_, path) in world.masked_directories.iter().filter(|(masked, _)| *masked == area) {
        cover("/empty", path)?;
    }
    Ok(())
}

/// Name and numbers of the device nodes that every container has.
pub(crate) const DEVICES: [(&str, u32, u32); 6] = [
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("tty", 5, 0),
];

const DEVICE_LINKS: [(&str, &str); 5] = [
    ("ptmx", "pts/ptmx"),
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];

/// Name, file system, options.
type DeviceMount = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// What is mounted in `/dev`. Sizes are those that other engines give.
const DEVICE_MOUNTS: [DeviceMount; 3] = [
    ("pts", "devpts", &[("ptmxmode", "0666"), ("mode", "0620"), ("gid", "5")]),
    ("shm", "tmpfs", &[("mode", "1777"), ("size", "65536k")]),
    ("mqueue", "mqueue", &[]),
];

fn new_dev(world: &World) -> Result<OwnedFd, Errno> {
    let options = [("mode", "755"), ("size", "65536k")];
    let dev = new_mount("tmpfs", &options, NO_SET_ID | NO_EXECUTION)?;
    fill_dev(dev.as_fd(), world.borrows)?;
    attach(dev.as_fd(), CWD, "/dev")?;
    if world.borrows {
        for (name, ..) in DEVICES {
            let node = clone_of(CWD, &format!("{}/{DEVICE_FOLDER}/{name}", world.folder()))?;
            attach(node.as_fd(), dev.as_fd(), name)?;
        }
    }
    for (name, kind, options) in DEVICE_MOUNTS {
        let mut attributes = NO_SET_ID | NO_EXECUTION;
        if name != "pts" {
            attributes |= NO_DEVICES;
        }
        let mount = new_mount(kind, options, attributes)?;
        attach(mount.as_fd(), dev.as_fd(), name)?;
    }
    Ok(dev)
}

/// Puts the nodes and links there, or files in the places of nodes that are bound.
fn fill_dev(dev: BorrowedFd<'_>, bound: bool) -> Result<(), Errno> {
    let kind = if bound { FileType::RegularFile } else { FileType::CharacterDevice };
    // The file mode creation mask would take the write bits of the nodes away.
    let mask = rustix::process::umask(Mode::empty());
    for (name, major, minor) in DEVICES {
        let device = if bound { 0 } else { makedev(major, minor) };
        rustix::fs::mknodat(dev, name, kind, Mode::from_raw_mode(0o666), device)?;
    }
    rustix::process::umask(mask);
    for (name, target) in DEVICE_LINKS {
        rustix::fs::symlinkat(target, dev, name)?;
    }
    for (name, _, _) in DEVICE_MOUNTS {
        rustix::fs::mkdirat(dev, name, Mode::from_raw_mode(0o755))?;
    }
    Ok(())
}

/// Mounts what tells who and where the container is.
pub(super) fn mount_host_files(
    world: &World,
    run: &Run,
    root: BorrowedFd<'_>,
) -> Result<(), Failure> {
    // Who reaches nobody has nobody to ask for names.
    let wanted = |name: &&&str| run.resolves || **name != "resolv.conf";
    for name in world.host_files.iter().filter(wanted) {
        let target = format!("/etc/{name}");
        let failed = Failure::mount(&target);
        let place = find(root, &target, OFlags::empty(), ResolveFlags::empty()).map_err(&failed)?;
        let file = clone_of(CWD, &format!("{}/{name}", world.folder())).map_err(&failed)?;
        attach(file.as_fd(), place.as_fd(), "").map_err(&failed)?;
    }
    Ok(())
}

fn mount_given(run: &Run, descriptors: &Descriptors) -> Result<(), Failure> {
    let mut given = descriptors.mounts.iter();
    for entry in &run.mounts {
        let made;
        let mount = match &entry.kind {
            MountKind::Descriptor | MountKind::Device => {
                given.next().ok_or(Errno::BADMSG).map_err(Failure::mount(&entry.target))?
            }
            MountKind::Tmpfs(size) => {
                made = new_tmpfs(*size).map_err(Failure::mount(&entry.target))?;
                &made
            }
        };
        mount_one((run, entry), mount, descriptors.root.as_fd())?;
    }
    Ok(())
}

/// Mounts one of the things that a run brings.
pub(super) fn mount_one(
    (run, entry): (&Run, &MountEntry),
    mount: &OwnedFd,
    root: BorrowedFd<'_>,
) -> Result<(), Failure> {
    let failed = Failure::mount(&entry.target);
    let mut attributes = NO_SET_ID;
    if !run.all_capabilities && entry.kind != MountKind::Device {
        attributes |= NO_DEVICES;
    }
    if entry.read_only {
        attributes |= READ_ONLY;
    }
    let place = place_for(mount, root, &entry.target).map_err(&failed)?;
    sys::set_mount_attributes(mount.as_fd(), u64::from(attributes.bits())).map_err(&failed)?;
    attach(mount.as_fd(), place.as_fd(), "").map_err(&failed)
}

/// A file system in memory, for everybody.
pub(super) fn new_tmpfs(size: Option<u64>) -> Result<OwnedFd, Errno> {
    let none = MountAttrFlags::empty();
    match size {
        Some(size) => new_mount("tmpfs", &[("mode", "1777"), ("size", &size.to_string())], none),
        None => new_mount("tmpfs", &[("mode", "1777")], none),
    }
}

/// The place in the root for a mount, made if it is missing: a mount may lie in another one, whose
/// owner knew nothing of it.
fn place_for(mount: &OwnedFd, root: BorrowedFd<'_>, target: &str) -> Result<OwnedFd, Errno> {
    match find(root, target, OFlags::empty(), ResolveFlags::empty()) {
        Err(Errno::NOENT) => {}
        found => return found,
    }
    let kind = FileType::from_raw_mode(rustix::fs::fstat(mount)?.st_mode);
    let trimmed = target.trim_end_matches('/');
    let (parents, name) = trimmed.rsplit_once('/').ok_or(Errno::NOENT)?;
    let mut directory = find(root, "/", OFlags::DIRECTORY, ResolveFlags::empty())?;
    let mut path = String::new();
    for part in parents.split('/').filter(|part| !part.is_empty()) {
        path.push('/');
        path.push_str(part);
        directory = match find(root, &path, OFlags::DIRECTORY, ResolveFlags::empty()) {
            Err(Errno::NOENT) => {
                rustix::fs::mkdirat(&directory, part, Mode::from_raw_mode(0o755))?;
                find(root, &path, OFlags::DIRECTORY, ResolveFlags::empty())?
            }
            found => found?,
        };
    }
    if kind == FileType::Directory {
        rustix::fs::mkdirat(&directory, name, Mode::from_raw_mode(0o755))?;
    } else {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        rustix::fs::openat(&directory, name, flags, Mode::from_raw_mode(0o644))?;
    }
    find(root, target, OFlags::empty(), ResolveFlags::empty())
}

/// Attaches one of the kernel's file systems where it belongs.
fn attach_system(mount: &OwnedFd, root: BorrowedFd<'_>, target: &str) -> Result<(), Failure> {
    let failed = Failure::mount(target);
    let place =
        find(root, target, OFlags::DIRECTORY, ResolveFlags::NO_SYMLINKS).map_err(&failed)?;
    attach(mount.as_fd(), place.as_fd(), "").map_err(failed)
}

/// What is at `path` inside the root, by a descriptor that nothing can be read from.
fn find(
    root: BorrowedFd<'_>,
    path: &str,
    flags: OFlags,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::PATH | OFlags::CLOEXEC;
    let resolve = resolve | ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let mut tries = 0..TRIES;
    loop {
        match rustix::fs::openat2(root, path, flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN) if tries.next().is_some() => {}
            found => return found,
        }
    }
}

/// A detached mount of what is at a path that we made ourselves.
fn clone_of(at: BorrowedFd<'_>, path: &str) -> Result<OwnedFd, Errno> {
    open_tree(at, path, OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC)
}
