//! A process that goes ahead of a command: it opens the files that the user named, as the user and where the
//! command will be, and tries whether the program can be executed.
//!
//! The program that makes containers can do neither as we do: it inherits its streams from us, makes working
//! directories that are missing, and tells what it cannot execute on the streams of the command.

use super::super::command::Command;
use super::super::{confine, enter_directory, mounts};
use crate::wire::{self, Failure, Run, Stage};
use crate::zygote::World;
use crate::{packet, sys};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::MountAttrFlags;
use rustix::process::{Pid, PidfdFlags};
use rustix::thread::ThreadNameSpaceType;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// Longest path that the kernel knows.
const PATH: usize = 4096;

/// Where a command will be.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    /// In a root that is there but for the kernel's file systems.
    Assembled(&'a Path),
    /// In the container of this process.
    Inside(Pid),
}

/// What a scout found.
pub(super) struct Found {
    /// The path of the program; empty where it could not be tried.
    pub(super) program: String,
    /// The file for the standard input, if the run names one.
    pub(super) input: Option<OwnedFd>,
}

/// Sends the scout.
pub(super) fn send(
    (world, run): (&World, &Run),
    place: Place<'_>,
    status: &OwnedFd,
) -> Result<Found, Failure> {
    let failed = Failure::setup("look into the container");
    let (ours, theirs) = packet::pair().map_err(&failed)?;
    match sys::clone_process(libc::CLONE_NEWNS as u64, None).map_err(&failed)? {
        sys::Clone3::Child => {
            answer(&theirs, look((world, run), place, status));
            sys::exit_now(0)
        }
        sys::Clone3::Parent { .. } => {
            drop(theirs);
            hear(&ours).map_err(failed)?
        }
    }
}

fn look(
    (world, run): (&World, &Run),
    place: Place<'_>,
    status: &OwnedFd,
) -> Result<(String, Option<OwnedFd>), Failure> {
    let command = Command::new(run, world, None)?;
    match place {
        Place::Assembled(root) => mounts::visit(world, folder(root)?.as_fd())?,
        Place::Inside(process) => enter(process).map_err(Failure::setup("enter the container"))?,
    }
    enter_directory(&run.workdir)
        .map_err(|error| Failure { stage: Stage::Workdir, errno: error.raw_os_error() })?;
    confine::confine(world, run.all_capabilities)?;
    command.rehearse(status)
}

fn folder(path: &Path) -> Result<OwnedFd, Failure> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(Failure::setup("open the root"))
}

/// Enters the mounts of a process, whose root becomes ours.
fn enter(process: Pid) -> Result<(), Errno> {
    let flags = PidfdFlags::empty();
    let process = rustix::process::pidfd_open(process, flags)?;
    rustix::thread::move_into_thread_name_spaces(process.as_fd(), ThreadNameSpaceType::MOUNT)
}

/// Takes the use of device nodes from the root of a container, which the program may have given back.
pub(super) fn refuse_devices(process: Pid) -> Result<(), Failure> {
    let failed = Failure::setup("refuse device nodes");
    let (ours, theirs) = packet::pair().map_err(&failed)?;
    match sys::clone_process(0, None).map_err(&failed)? {
        sys::Clone3::Child => {
            let nodes = u64::from(MountAttrFlags::MOUNT_ATTR_NODEV.bits());
            let refused = enter(process).map_err(&failed).and_then(|()| {
                let root = folder(Path::new("/"))?;
                sys::set_own_mount_attributes(root.as_fd(), nodes).map_err(&failed)
            });
            answer(&theirs, refused.map(|()| (String::new(), None)));
            sys::exit_now(0)
        }
        sys::Clone3::Parent { .. } => {
            drop(theirs);
            hear(&ours).map_err(&failed)?.map(drop)
        }
    }
}

/// The program or the failure in postcard, and perhaps a file.
fn answer(socket: &OwnedFd, found: Result<(String, Option<OwnedFd>), Failure>) {
    let (told, file) = match found {
        Ok((program, file)) => (Ok(program), file),
        Err(failure) => (Err(failure), None),
    };
    let descriptors: Vec<BorrowedFd<'_>> = file.iter().map(AsFd::as_fd).collect();
    if let Ok(bytes) = postcard::to_stdvec(&told) {
        // Who does not hear it sees the end of the socket.
        let _ = packet::send(socket, &bytes, &descriptors);
    }
}

fn hear(socket: &OwnedFd) -> Result<Result<Found, Failure>, Errno> {
    let mut buffer = [0; PATH + wire::MAX_STATUS];
    let packet = packet::wait(socket, &mut buffer)?;
    let told: Result<String, Failure> =
        postcard::from_bytes(&buffer[..packet.length]).map_err(|_| Errno::BADMSG)?;
    let input = packet.descriptors.into_iter().next();
    Ok(told.map(|program| Found { program, input }))
}
