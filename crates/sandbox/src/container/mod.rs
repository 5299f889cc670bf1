//! What happens in a new container before its command begins.
//!
//! This code runs in a clone of the zygote, as root in fresh namespaces: it makes what every container has,
//! often before there is anything to run ([`wait_and_enter`]), enters its control groups, builds the
//! mounts (`mounts`), gives up powers (`confine`), and then either becomes process 1 for
//! good with the command as its child (`init`) or becomes the command itself (`command`). Failures go to the engine
//! over the status socket. Nothing here may wait for anybody once there is a request.

mod command;
mod confine;
mod endpoint;
mod init;
mod mounts;
mod runtime;
mod terminal;

use crate::network::plug;
use crate::wire::{self, Failure, Input, Run, Status};
use crate::zygote::{Line, World, speed_up, tell};
use crate::{packet, sys};
use command::Command;
pub(crate) use mounts::DEVICES;
use mounts::Staged;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use terminal::Ends;

/// Which descriptor of a run is the control group's directory, if it has one.
pub(crate) const GROUP_PLACE: usize = 1;

/// Exit code of a process 1 whose command never began; the engine goes by the status, not by this.
const NOT_BEGUN: i32 = 125;

/// What a container can reach.
#[derive(Clone, Copy)]
pub(crate) enum Reach<'a> {
    /// Itself; it was cloned into a network namespace of its own.
    Itself,
    /// What the host reaches.
    Host,
    /// What the engine's network reaches, from this place in it.
    Bridge(u32),
    /// What the container before it reached.
    Again(&'a Line),
    /// All that another container has: it has no namespaces of its own.
    Beside,
}

impl Reach<'_> {
    /// Its place in the engine's network.
    pub(crate) fn place(self) -> Option<u32> {
        match self {
            Reach::Bridge(place) => Some(place),
            Reach::Again(line) => line.place(),
            Reach::Itself | Reach::Host | Reach::Beside => None,
        }
    }
}

/// Does everything, in the cloned process. It never returns to the zygote's code.
pub(crate) fn enter(
    world: &World,
    reach: Reach<'_>,
    packet: &[u8],
    descriptors: Vec<OwnedFd>,
) -> ! {
    let code =
        catch_unwind(AssertUnwindSafe(|| begin(world, Waited::No(reach), packet, descriptors)));
    sys::exit_now(code.unwrap_or(NOT_BEGUN))
}

/// Does what needs no request, waits for one at `control` and does the rest.
pub(crate) fn wait_and_enter(
    world: &World,
    reach: Reach<'_>,
    control: &OwnedFd,
    buffer: &mut [u8],
) -> ! {
    // Whatever else is open belongs to the zygote and to other containers.
    let mut kept = vec![world.null.as_fd(), world.host_network.as_fd(), control.as_fd()];
    if let Reach::Again(line) = reach {
        kept.push(line.namespace());
    }
    sys::close_all_but(&kept);
    let work = || {
        // What fails here fails again, and is told, in the container that is made instead.
        let Ok(staged) = stage(world, reach) else { return NOT_BEGUN };
        if matches!(reach, Reach::Itself | Reach::Bridge(_)) {
            offer(control, &staged);
        }
        let Ok(packet) = packet::wait(control, buffer) else { return NOT_BEGUN };
        speed_up(world);
        begin(world, Waited::Yes(staged), &buffer[..packet.length], packet.descriptors)
    };
    let code = catch_unwind(AssertUnwindSafe(work));
    sys::exit_now(code.unwrap_or(NOT_BEGUN))
}

/// Tells the zygote about this network namespace, for a container after this one. Who cannot has one that
/// goes with it.
fn offer(control: &OwnedFd, staged: &Staged) {
    let files = Line::files(staged.proc());
    let descriptors: Vec<BorrowedFd<'_>> = files.iter().map(AsFd::as_fd).collect();
    let _ = packet::send(control, &[0], &descriptors);
}

/// Whether a container was made before there was a request.
enum Waited<'a> {
    Yes(Staged),
    No(Reach<'a>),
}

fn begin(world: &World, waited: Waited<'_>, packet: &[u8], descriptors: Vec<OwnedFd>) -> i32 {
    let mut descriptors = descriptors.into_iter();
    let Some(status) = descriptors.next() else { return NOT_BEGUN };
    if let (Some(runtime), Waited::No(reach)) = (&world.runtime, &waited) {
        let given = (&status, descriptors.collect());
        return runtime::begin((world, runtime), *reach, packet, given);
    }
    match prepare((world, &status), waited, packet, descriptors.collect()) {
        Ok((run, _)) if run.held && !released(&status) => NOT_BEGUN,
        Ok((run, command)) => {
            // Not before: who enters a container that is not whole finds another root.
            if run.led {
                tell(status.as_fd(), &Status::Begun, &[]);
            }
            match run.init {
                true => init::run(&command, &status),
                false => report(&status, command.execute(&status)),
            }
        }
        Err(failure) => report(&status, failure),
    }
}

/// Waits for the engine's word that the command may begin; false if there will be none.
fn released(status: &OwnedFd) -> bool {
    packet::wait(status, &mut [0]).is_ok_and(|packet| packet.length > 0)
}

/// Tells the engine why the command did not begin; the result is our exit code.
fn report(status: &OwnedFd, failure: Failure) -> i32 {
    tell(status.as_fd(), &Status::Failed(failure), &[]);
    NOT_BEGUN
}

/// Gives this container the network that it is to have.
fn connect(world: &World, reach: Reach<'_>) -> Result<(), Failure> {
    match (reach, &world.outlet) {
        (Reach::Itself, _) => {
            sys::loopback_up().map_err(Failure::setup("bring the loopback up"))?
        }
        (Reach::Bridge(place), Some(outlet)) => {
            plug(outlet, place).map_err(Failure::setup("connect to the network"))?;
        }
        (Reach::Again(line), _) => {
            sys::enter_network(line.namespace()).map_err(Failure::setup("enter the network"))?
        }
        (Reach::Bridge(_), None) | (Reach::Host, None) | (Reach::Beside, _) => {}
        (Reach::Host, Some(_)) => sys::enter_network(world.host_network.as_fd())
            .map_err(Failure::setup("enter the host's network"))?,
    }
    Ok(())
}

/// What every container has, whatever it runs.
fn stage(world: &World, reach: Reach<'_>) -> Result<Staged, Failure> {
    connect(world, reach)?;
    mounts::stage(world)
}

fn prepare(
    (world, status): (&World, &OwnedFd),
    waited: Waited<'_>,
    packet: &[u8],
    descriptors: Vec<OwnedFd>,
) -> Result<(Run, Command), Failure> {
    let (mut run, descriptors) = Descriptors::split(packet, descriptors)?;
    if packet.get(1) == Some(&wire::GROUP_FILES) {
        enter_groups(&descriptors.group_files)?;
    }
    if run.beside {
        return prepare_beside(world, run, &descriptors);
    }
    let staged = match waited {
        Waited::Yes(staged) => staged,
        Waited::No(reach) => stage(world, reach)?,
    };
    let terminal = Ends::make(staged.dev(), &run)?;
    mounts::build(world, &run, &descriptors, staged)?;
    endpoint::open(&mut run, status)?;
    rustix::process::setsid().map_err(Failure::setup("begin a session"))?;
    connect_streams(world, &descriptors).map_err(Failure::setup("connect the streams"))?;
    enter_directory(&run.workdir)
        .map_err(|error| Failure { stage: wire::Stage::Workdir, errno: error.raw_os_error() })?;
    let command = Command::new(&run, world, terminal)?;
    confine::confine(world, run.all_capabilities)?;
    Ok((run, command))
}

/// Does the same in the namespaces of another container, as it is now.
fn prepare_beside(
    world: &World,
    run: Run,
    descriptors: &Descriptors,
) -> Result<(Run, Command), Failure> {
    sys::enter_container(descriptors.root.as_fd())
        .map_err(Failure::setup("enter the container"))?;
    let terminal = match run.terminal {
        None => None,
        Some(_) => {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let dev = rustix::fs::openat(CWD, "/dev", flags, Mode::empty());
            Ends::make(dev.map_err(Failure::mount("/dev"))?.as_fd(), &run)?
        }
    };
    rustix::process::setsid().map_err(Failure::setup("begin a session"))?;
    connect_streams(world, descriptors).map_err(Failure::setup("connect the streams"))?;
    enter_directory(&run.workdir)
        .map_err(|error| Failure { stage: wire::Stage::Workdir, errno: error.raw_os_error() })?;
    let command = Command::new(&run, world, terminal)?;
    confine::confine(world, run.all_capabilities)?;
    Ok((run, command))
}

/// The descriptors of a run by their meaning; see `wire` for the order they come in.
struct Descriptors {
    group_files: Vec<OwnedFd>,
    stdout: OwnedFd,
    stderr: OwnedFd,
    stdin: Option<OwnedFd>,
    root: OwnedFd,
    mounts: Vec<OwnedFd>,
}

impl Descriptors {
    /// Decodes a request and gives each descriptor its meaning.
    fn split(packet: &[u8], mut given: Vec<OwnedFd>) -> Result<(Run, Descriptors), Failure> {
        let malformed = || Failure::setup("read the request")(Errno::BADMSG);
        let run: Run = match packet.split_at_checked(wire::HEAD) {
            Some(([wire::RUN_IN_FILE, ..], _)) => {
                let body = read_file(given.pop().ok_or_else(malformed)?);
                postcard::from_bytes(&body.map_err(|_| malformed())?)
            }
            Some((_, body)) => postcard::from_bytes(body),
            None => return Err(malformed()),
        }
        .map_err(|_| malformed())?;
        let mut given = given.into_iter();
        let group_files = given.by_ref().take(usize::from(run.group_files)).collect();
        let stdout = given.next().ok_or_else(malformed)?;
        let stderr = given.next().ok_or_else(malformed)?;
        let stdin = match run.stdin {
            Input::Pipe => Some(given.next().ok_or_else(malformed)?),
            Input::Null | Input::File(_) => None,
        };
        let root = given.next().ok_or_else(malformed)?;
        let mounts = given.collect();
        Ok((run, Descriptors { group_files, stdout, stderr, stdin, root, mounts }))
    }
}

fn read_file(descriptor: OwnedFd) -> std::io::Result<Vec<u8>> {
    let mut file = File::from(descriptor);
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Moves this process into version 1 groups and makes them look like the top.
fn enter_groups(files: &[OwnedFd]) -> Result<(), Failure> {
    for file in files {
        rustix::io::write(file, b"0").map_err(Failure::setup("enter the control group"))?;
    }
    sys::hide_control_groups().map_err(Failure::setup("hide the control group"))
}

/// Enters a directory of the container. Links such as those in `/proc/self/fd` could lead to something
/// that this process still holds open and that lies outside.
fn enter_directory(path: &str) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory =
        rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS)?;
    rustix::process::fchdir(directory)
}

fn connect_streams(world: &World, descriptors: &Descriptors) -> Result<(), Errno> {
    rustix::stdio::dup2_stdin(descriptors.stdin.as_ref().unwrap_or(&world.null))?;
    rustix::stdio::dup2_stdout(&descriptors.stdout)?;
    rustix::stdio::dup2_stderr(&descriptors.stderr)
}
