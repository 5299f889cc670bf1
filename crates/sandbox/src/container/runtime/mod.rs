//! Containers that an installed program makes from a bundle, instead of us.
//!
//! What is ours stays ours: process 1 that buries and passes signals on, the control group and the
//! network, which the program finds around itself and leaves alone, and the mounts. All of the bundle is
//! in memory, in a mount namespace of this run, so nothing of it is left whatever happens:
//!
//! ```text
//! <place>/hosts hostname resolv.conf   the same for all
//! <place>/bundle/config.json           what to run
//!                rootfs/  m0 m1 ...    the mounts of this run
//!                state/  log           the program's own
//! ```

mod config;

use super::command::Command;
use super::{
    Descriptors, NOT_BEGUN, connect, connect_streams, enter_groups, init, released, report,
};
use crate::wire::{self, Failure, Input, MountKind, Run, Runtime, Stage, Status};
use crate::zygote::{World, attach, new_mount, process, tell};
use crate::{container::Reach, sys};
use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::MountAttrFlags;
use serde::Deserialize;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

/// Where the program itself finds programs that it needs.
const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// What it calls the container. Nobody else sees the name.
const NAME: &str = "container";
/// Exit code of a shell that does not find a program, and of one that cannot execute it.
const NOT_FOUND: i32 = 127;
const NOT_EXECUTABLE: i32 = 126;

/// Does everything, in the cloned process; the result is its exit code.
pub(super) fn begin(
    (world, runtime): (&World, &Runtime),
    reach: Reach,
    packet: &[u8],
    (status, descriptors): (&OwnedFd, Vec<OwnedFd>),
) -> i32 {
    match prepare((world, runtime), reach, packet, descriptors) {
        Ok((held, ..)) if held && !released(status) => NOT_BEGUN,
        Ok((_, command, log)) => run(world, &command, status, &log),
        Err(failure) => report(status, failure),
    }
}

fn prepare(
    (world, runtime): (&World, &Runtime),
    reach: Reach,
    packet: &[u8],
    descriptors: Vec<OwnedFd>,
) -> Result<(bool, Command, PathBuf), Failure> {
    let (run, descriptors) = Descriptors::split(packet, descriptors)?;
    if packet.get(1) == Some(&wire::GROUP_FILES) {
        enter_groups(&descriptors.group_files)?;
    }
    connect(world, reach)?;
    let none = MountAttrFlags::empty();
    let proc = new_mount("proc", &[], none).map_err(Failure::mount("/proc"))?;
    attach(proc.as_fd(), CWD, "/proc").map_err(Failure::mount("/proc"))?;
    let bundle = PathBuf::from(&runtime.place).join("bundle");
    fill(&bundle, &run, &descriptors).map_err(Failure::setup("make the bundle"))?;
    let config = config::of(world, &run, runtime).to_string();
    let failed = |error: std::io::Error| {
        Failure::setup("write the bundle")(Errno::from_io_error(&error).unwrap_or(Errno::IO))
    };
    fs::write(bundle.join("config.json"), config).map_err(failed)?;
    rustix::process::setsid().map_err(Failure::setup("begin a session"))?;
    connect_streams(world, &descriptors).map_err(Failure::setup("connect the streams"))?;
    let (log, held) = (bundle.join("log"), run.held);
    let command = Command::new(&invocation(runtime, &bundle, run.stdin), world, None)?;
    Ok((held, command, log))
}

/// Puts the mounts of a run where the configuration says they are.
fn fill(bundle: &std::path::Path, run: &Run, descriptors: &Descriptors) -> Result<(), Errno> {
    let memory = new_mount("tmpfs", &[("mode", "700")], MountAttrFlags::empty())?;
    attach(memory.as_fd(), CWD, &bundle.to_string_lossy())?;
    let attributes = match run.all_capabilities {
        true => MountAttrFlags::empty(),
        false => MountAttrFlags::MOUNT_ATTR_NODEV,
    };
    sys::set_mount_attributes(descriptors.root.as_fd(), u64::from(attributes.bits()))?;
    rustix::fs::mkdirat(&memory, "rootfs", Mode::from_raw_mode(0o700))?;
    attach(descriptors.root.as_fd(), memory.as_fd(), "rootfs")?;
    let wanted = run.mounts.iter().filter(|entry| !matches!(entry.kind, MountKind::Tmpfs(_)));
    for (number, (_, mount)) in wanted.zip(&descriptors.mounts).enumerate() {
        let name = config::mount_name(number);
        let kind = FileType::from_raw_mode(rustix::fs::fstat(mount)?.st_mode);
        if kind == FileType::Directory {
            rustix::fs::mkdirat(&memory, &name, Mode::from_raw_mode(0o700))?;
        } else {
            let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
            rustix::fs::openat(&memory, &name, flags, Mode::from_raw_mode(0o600))?;
        }
        attach(mount.as_fd(), memory.as_fd(), &name)?;
    }
    Ok(())
}

/// How the program is called.
fn invocation(runtime: &Runtime, bundle: &std::path::Path, stdin: Input) -> Run {
    let path = |name: &str| bundle.join(name).to_string_lossy().into_owned();
    let args = [
        runtime.program.clone(),
        format!("--root={}", path("state")),
        format!("--log={}", path("log")),
        "--log-format=json".to_owned(),
        "--cgroup-manager=disabled".to_owned(),
        "run".to_owned(),
        format!("--bundle={}", bundle.to_string_lossy()),
        NAME.to_owned(),
    ];
    Run {
        args: args.to_vec(),
        env: vec![PATH.to_owned()],
        workdir: "/".to_owned(),
        uid: 0,
        gid: 0,
        groups: vec![],
        init: true,
        all_capabilities: false,
        stdin,
        redirect_stdout: None,
        redirect_stderr: None,
        mounts: vec![],
        group_files: 0,
        held: false,
        beside: false,
        resolves: false,
        terminal: None,
        endpoint: vec![],
    }
}

/// Runs the program to its end. What it has to say about a container that it could not start is in its
/// log, and the command's own words are in the streams.
fn run(world: &World, command: &Command, status: &OwnedFd, log: &std::path::Path) -> i32 {
    let mut failure = None;
    let mut become_program = || {
        failure = Some(command.execute(status));
        NOT_BEGUN
    };
    let spawned = sys::spawn_in_shared_memory(&mut become_program);
    let pid = match (failure, spawned) {
        (Some(failure), _) => return report(status, failure),
        (None, Err(error)) => return report(status, Failure::setup("start the runtime")(error)),
        (None, Ok(pid)) => process(pid),
    };
    let Some(pid) = pid else { return NOT_BEGUN };
    // The engine waits for the end of its pipes.
    let _ = connect_nothing(world);
    let code = init::attend(pid);
    if let Some(message) = last_error(&fs::read_to_string(log).unwrap_or_default()) {
        tell(status.as_fd(), &Status::Failed(Failure::told(stage(message))), &[]);
    }
    code
}

fn connect_nothing(world: &World) -> Result<(), Errno> {
    rustix::stdio::dup2_stdin(&world.null)?;
    rustix::stdio::dup2_stdout(&world.null)?;
    rustix::stdio::dup2_stderr(&world.null)
}

/// One line of the program's log.
#[derive(Deserialize)]
struct Line {
    msg: String,
    level: String,
}

/// The last error in a log.
fn last_error(log: &str) -> Option<String> {
    let lines = log.lines().rev().filter_map(|line| serde_json::from_str::<Line>(line).ok());
    lines.filter(|line| line.level == "error").map(|line| line.msg).next()
}

/// What the program could not do. Of a command that does not exist it says so in words.
fn stage(message: String) -> Stage {
    let message = wire::shorten(&message);
    let has = |text: &str| message.contains(text);
    if has("not found in $PATH") {
        return Stage::Program(NOT_FOUND, "not found in any directory of PATH".to_owned());
    }
    match has("executable") || has("exec") {
        true if has("No such file") => Stage::Program(NOT_FOUND, "no such file".to_owned()),
        true => Stage::Program(NOT_EXECUTABLE, message),
        false => Stage::Runtime(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_of_the_program_are_failures() {
        let line =
            |level: &str, text: &str| format!("{{\"msg\":\"{text}\",\"level\":\"{level}\"}}\n");
        assert_eq!(last_error(""), None);
        assert_eq!(last_error(&line("warning", "odd")), None);
        let log = line("error", "first") + &line("error", "second") + "torn {";
        assert_eq!(last_error(&log).as_deref(), Some("second"));
    }

    #[test]
    fn a_missing_command_is_told_from_a_container_that_cannot_be_made() {
        let missing = stage("executable file `x` not found in $PATH: No such file".to_owned());
        assert!(matches!(missing, Stage::Program(NOT_FOUND, _)), "{missing:?}");
        let refused = stage("open executable: Permission denied".to_owned());
        assert!(matches!(refused, Stage::Program(NOT_EXECUTABLE, _)), "{refused:?}");
        let broken = stage("mount `proc` to `/proc`: Operation not permitted".to_owned());
        assert!(matches!(broken, Stage::Runtime(_)), "{broken:?}");
    }
}
