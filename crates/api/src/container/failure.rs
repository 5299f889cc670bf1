//! What is said about commands that failed: they ended in an unwanted way, or never began.

use super::Container;
use super::captures::Captures;
use super::run::Command;
use protocol::{Error, ErrorKind, ExecFailure};
use redact::Redactor;
use store::Full;

/// All that a client is told of it.
pub(super) fn failure(command: &Command, code: i32, captures: &Captures) -> ExecFailure {
    ExecFailure {
        cmd: command.args.clone(),
        exit_code: code,
        stdout: captures.stdout.excerpt(),
        stderr: captures.stderr.excerpt(),
    }
}

/// A command that was stopped because there is no room for what it writes.
pub(super) fn stopped(full: Full, line: &str) -> Error {
    let message = format!("command `{line}` was stopped: {full}");
    Error::environment(message).with_hint(Full::HINT)
}

/// A command that ended, but not as it was expected to.
pub(super) fn unexpected_exit(
    exit: &sandbox::Exit,
    line: &str,
    failure: ExecFailure,
    full: Option<Full>,
) -> Error {
    let mut message = format!("command `{line}` failed: exit code: {}", exit.code);
    if let Some(oom) = &exit.oom {
        message.push_str(&format!(" (out of memory: the limit is {} MiB", oom.limit >> 20));
        if let Some(peak) = oom.peak {
            message.push_str(&format!(", {} MiB were in use", peak >> 20));
        }
        message.push(')');
    }
    match full {
        // Whatever it says itself, this is the likely reason.
        Some(full) => {
            let error = Error::user(format!("{message} ({full})")).with_exec(failure);
            error.with_hint(Full::HINT)
        }
        None => Error::user(message).with_exec(failure),
    }
}

/// A command that never began: the user's where it is the program or a path, else ours.
pub(super) fn failed_to_run(
    error: sandbox::Error,
    container: &Container,
    (command, captures): (&Command, &Captures),
) -> Error {
    match &error {
        sandbox::Error::Program { code, reason, .. } => {
            let exec = failure(command, *code, captures);
            let foreign = reason == sandbox::NO_PROGRAM;
            let hint = foreign.then(|| emulation(&container.platform)).flatten();
            let failed = not_begun(error).with_exec(exec);
            match hint {
                Some(hint) => failed.with_hint(hint),
                None => failed,
            }
        }
        _ => not_begun(error),
    }
}

/// What is missing where a program is for another machine: a handler of the kernel's for it.
fn emulation(platform: &str) -> Option<String> {
    let own = crate::platform::current();
    (platform != own).then(|| {
        format!(
            "the container is for {platform} and this machine is {own}: install `qemu-user-static` where \
             the engine runs, which has the kernel run such programs"
        )
    })
}

/// Why a command never began, in words.
pub(super) fn not_begun(error: sandbox::Error) -> Error {
    use sandbox::Error as Failure;
    let message = error.to_string();
    match error {
        Failure::Program { code, .. } => Error::user(format!("{message}: exit code: {code}")),
        Failure::Workdir { .. }
        | Failure::Redirect { .. }
        | Failure::Stdin { .. }
        | Failure::Mount { .. }
        | Failure::Invalid(_) => Error::user(message),
        Failure::Closed => Error::new(ErrorKind::Cancelled, message),
        Failure::Limit { .. } => Error::environment(message).with_hint(
            "take the limits out of engine.toml, or run the engine where it may use them",
        ),
        _ => Error::environment(message),
    }
}

/// The command for a message: long ones are cut, without secrets, so that none of them is cut in half.
pub(super) fn display(command: &Command, shown: &Redactor) -> String {
    const LONGEST: usize = 120;
    let line = command.args.join(" ");
    let line = shown.text(&line).into_owned();
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}
