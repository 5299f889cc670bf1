//! Containers that an installed program makes from a bundle, instead of us.
//!
//! What is ours stays ours: process 1 that buries and passes signals on, the control group and the
//! network, which the program finds around itself and leaves alone, the mounts, and the files of redirected streams. All of
//! the bundle is in memory, in a mount namespace of this run, so nothing of it is left whatever happens:
//!
//! ```text
//! <place>/hosts hostname resolv.conf   the same for all
//! <place>/bundle/config.json           what to run
//!                rootfs/               what it runs in, with all mounts of this run but those
//!                m0 m1 ...             in /dev, /proc and /sys, which the program still has to make
//!                state/  log  pid      the program's own
//!                b7.json b7.log b7.pid the same for a command beside the container's own
//! ```
//!
//! A container is made first and started then: between the two its root and its terminal are there, and nothing
//! of the user's has run.

mod beside;
mod call;
mod config;
mod console;
mod scout;

use super::init::Watch;
use super::{
    Descriptors, NOT_BEGUN, Reach, connect, connect_streams, endpoint, enter_groups, mounts,
    released, report,
};
use crate::sys;
use crate::wire::{self, Failure, MountKind, Run, Runtime, Stage, Status};
use crate::zygote::{World, attach, new_mount, process, tell};
use call::{Program, Streams};
use console::Console;
use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::MountAttrFlags;
use rustix::process::Pid;
use scout::{Found, Place};
use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// What the program calls the container. Nobody else sees the name.
const NAME: &str = "container";

/// Does everything, in the cloned process; the result is its exit code.
pub(super) fn begin(
    (world, runtime): (&World, &Runtime),
    reach: Reach<'_>,
    packet: &[u8],
    (status, descriptors): (&OwnedFd, Vec<OwnedFd>),
) -> i32 {
    let split = Descriptors::split(packet, descriptors).and_then(|(run, descriptors)| {
        if packet.get(1) == Some(&wire::GROUP_FILES) {
            enter_groups(&descriptors.group_files)?;
        }
        Ok((run, descriptors))
    });
    let (run, descriptors) = match split {
        Ok(split) => split,
        Err(failure) => return report(status, failure),
    };
    if run.beside {
        return beside::begin((world, runtime), run, status, descriptors);
    }
    let made = prepare((world, runtime), reach, run, (status, descriptors));
    match made {
        Ok(ready) if ready.held && !released(status) => NOT_BEGUN,
        Ok(ready) => ready.run(world, status).unwrap_or_else(|failure| report(status, failure)),
        Err(failure) => report(status, failure),
    }
}

/// A container that only has to be made.
struct Ready {
    program: Program,
    bundle: PathBuf,
    console: Option<Console>,
    /// A port for the engine to answer.
    listener: Option<OwnedFd>,
    held: bool,
    /// Whether device nodes of the root are not to be used.
    closed: bool,
}

fn prepare(
    (world, runtime): (&World, &Runtime),
    reach: Reach<'_>,
    mut run: Run,
    (status, mut descriptors): (&OwnedFd, Descriptors),
) -> Result<Ready, Failure> {
    connect(world, reach)?;
    let none = MountAttrFlags::empty();
    let proc = new_mount("proc", &[], none).map_err(Failure::mount("/proc"))?;
    attach(proc.as_fd(), CWD, "/proc").map_err(Failure::mount("/proc"))?;
    let bundle = bundle(runtime);
    fill(world, &bundle, &run, &descriptors)?;
    rustix::process::chdir(&bundle).map_err(Failure::setup("enter the bundle"))?;
    let listener = endpoint::reserve(&mut run)?;
    rustix::process::setsid().map_err(Failure::setup("begin a session"))?;
    let rootfs = bundle.join("rootfs");
    let found = scout::send((world, &run), Place::Assembled(&rootfs), status)?;
    take(found, &mut run, &mut descriptors);
    write("config.json", &config::of(world, &run, runtime).to_string())?;
    connect_streams(world, &descriptors).map_err(Failure::setup("connect the streams"))?;
    let console = Console::listen("console".to_owned(), run.terminal)?;
    let program = Program::new(runtime, "log".to_owned());
    let (held, closed) = (run.held, !run.all_capabilities);
    Ok(Ready { program, bundle, console, listener, held, closed })
}

impl Ready {
    /// Runs the command to its end.
    fn run(self, world: &World, status: &OwnedFd) -> Result<i32, Failure> {
        // The program itself gets no signals: it would swallow them.
        let mut watch = Watch::new(None);
        let pid = self.create(world, &mut watch, status)?;
        // The engine waits for the end of its pipes.
        connect_nothing(world).map_err(Failure::setup("let go of the streams"))?;
        if self.closed {
            scout::refuse_devices(pid)?;
        }
        if let Some(console) = self.console {
            console.hand_on(status)?;
        }
        if let Some(listener) = self.listener {
            endpoint::offer(&listener, &format!("/proc/{}/root", pid.as_raw_nonzero()), status)?;
        }
        let words = ["start".to_owned(), NAME.to_owned()];
        let start = self.program.spawn(&words, (world, Streams::Nothing), status)?;
        let mut ended = None;
        let started = watch.until(start, &mut |other, code| {
            ended = ended.or((other == pid).then_some(code));
        });
        if started != 0 {
            return Err(self.program.failure());
        }
        tell(status.as_fd(), &Status::Begun, &[]);
        Ok(ended.unwrap_or_else(|| {
            watch.pass_on_to(pid);
            watch.until(pid, &mut |_, _| {})
        }))
    }

    /// Has the container made, with a process in it that waits for the start.
    fn create(&self, world: &World, watch: &mut Watch, status: &OwnedFd) -> Result<Pid, Failure> {
        let mut words = vec!["create".to_owned(), format!("--bundle={}", self.bundle.display())];
        words.push("--pid-file=pid".to_owned());
        words.extend(self.console.as_ref().map(Console::flag));
        words.push(NAME.to_owned());
        let create = self.program.spawn(&words, (world, Streams::Given), status)?;
        match watch.until(create, &mut |_, _| {}) {
            0 => made("pid"),
            _ => Err(self.program.failure()),
        }
    }
}

/// Takes over what a scout found. The program that makes containers searches only where a variable says.
fn take(found: Found, run: &mut Run, descriptors: &mut Descriptors) {
    if let Some(input) = found.input {
        descriptors.stdin = Some(input);
    }
    let searched = run.env.iter().any(|entry| entry.starts_with("PATH="));
    if let Some(program) = run.args.first_mut()
        && !searched
        && !found.program.is_empty()
    {
        *program = found.program;
    }
}

/// Where the bundle of this run is.
fn bundle(runtime: &Runtime) -> PathBuf {
    PathBuf::from(&runtime.place).join("bundle")
}

/// Puts the mounts of a run where they belong, or where the configuration says they are.
fn fill(world: &World, bundle: &Path, run: &Run, descriptors: &Descriptors) -> Result<(), Failure> {
    let failed = Failure::setup("make the bundle");
    let memory =
        new_mount("tmpfs", &[("mode", "700")], MountAttrFlags::empty()).map_err(&failed)?;
    attach(memory.as_fd(), CWD, &bundle.to_string_lossy()).map_err(&failed)?;
    let attributes = match run.all_capabilities {
        true => MountAttrFlags::empty(),
        false => MountAttrFlags::MOUNT_ATTR_NODEV,
    };
    let root = descriptors.root.as_fd();
    sys::set_mount_attributes(root, u64::from(attributes.bits())).map_err(Failure::mount("/"))?;
    rustix::fs::mkdirat(&memory, "rootfs", Mode::from_raw_mode(0o700)).map_err(&failed)?;
    attach(root, memory.as_fd(), "rootfs").map_err(Failure::mount("/"))?;
    mounts::mount_host_files(world, run, root)?;
    let (mut given, mut number) = (descriptors.mounts.iter(), 0);
    for entry in &run.mounts {
        let made;
        let mount = match &entry.kind {
            MountKind::Descriptor | MountKind::Device => {
                given.next().ok_or(Errno::BADMSG).map_err(Failure::mount(&entry.target))?
            }
            MountKind::Tmpfs(size) => {
                made = mounts::new_tmpfs(*size).map_err(Failure::mount(&entry.target))?;
                &made
            }
        };
        if config::in_kernel_files(&entry.target) {
            keep(memory.as_fd(), &config::mount_name(number), mount)
                .map_err(Failure::mount(&entry.target))?;
            number += 1;
        } else {
            mounts::mount_one((run, entry), mount, root)?;
        }
    }
    Ok(())
}

/// Keeps a mount in the bundle, for the program to bind.
fn keep(bundle: BorrowedFd<'_>, name: &str, mount: &OwnedFd) -> Result<(), Errno> {
    let kind = FileType::from_raw_mode(rustix::fs::fstat(mount)?.st_mode);
    if kind == FileType::Directory {
        rustix::fs::mkdirat(bundle, name, Mode::from_raw_mode(0o700))?;
    } else {
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
        rustix::fs::openat(bundle, name, flags, Mode::from_raw_mode(0o600))?;
    }
    attach(mount.as_fd(), bundle, name)
}

/// Writes a file of the bundle, which we are in.
fn write(name: &str, text: &str) -> Result<(), Failure> {
    fs::write(name, text).map_err(|error| {
        Failure::setup("write the bundle")(Errno::from_io_error(&error).unwrap_or(Errno::IO))
    })
}

/// The process that the program says it made.
fn made(file: &str) -> Result<Pid, Failure> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let pid = text.trim().parse().ok().and_then(process);
    let untold = || Stage::Runtime("it did not tell what process it made".to_owned());
    pid.ok_or_else(|| Failure::told(untold()))
}

fn connect_nothing(world: &World) -> Result<(), Errno> {
    rustix::stdio::dup2_stdin(&world.null)?;
    rustix::stdio::dup2_stdout(&world.null)?;
    rustix::stdio::dup2_stderr(&world.null)
}
