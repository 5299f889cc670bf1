//! Process 1 of a container, when it is ours.
//!
//! It is a clone of the zygote that never executes anything: it starts the command, passes signals on, buries
//! orphans, and ends with the command's exit code, whereupon the kernel kills whatever is left.
//! It is not dumpable (the zygote is not, and clones inherit it), so nobody in the container can look into it.

use super::command::Command;
use super::report;
use crate::sys;
use crate::wire::Failure;
use crate::zygote::process;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};
use std::os::fd::OwnedFd;

/// Runs the command to its end; the result is its exit code. All signals must be blocked.
pub(super) fn run(command: &Command, status: &OwnedFd) -> i32 {
    let mut failure = None;
    let mut become_command = || {
        failure = Some(command.execute(status));
        super::NOT_BEGUN
    };
    let spawned = sys::spawn_in_shared_memory(&mut become_command);
    let pid = match spawned {
        Ok(pid) => process(pid),
        Err(error) => return report(status, Failure::setup("start the command")(error)),
    };
    match (failure, pid) {
        (Some(failure), _) => report(status, failure),
        (None, None) => super::NOT_BEGUN,
        (None, Some(pid)) => {
            // The engine waits for the end of its pipes, and nothing of the zygote's is needed here.
            // From here on descriptors have owners that do not know, so nothing may be dropped.
            sys::close_range(0);
            sys::exit_now(attend(pid))
        }
    }
}

/// Buries, and passes signals on to the command, until that ends; the result is its exit code.
pub(super) fn attend(command: Pid) -> i32 {
    loop {
        match sys::next_signal() {
            libc::SIGCHLD => {
                if let Some(code) = bury(command) {
                    return code;
                }
            }
            signal => {
                // The command may have ended this instant; its SIGCHLD is then already waiting.
                if let Some(signal) = Signal::from_named_raw(signal) {
                    let _ = kill_process(command, signal);
                }
            }
        }
    }
}

/// Buries every process that has ended; the command's exit code if it was among them.
fn bury(command: Pid) -> Option<i32> {
    let mut code = None;
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        if pid == command {
            let signalled = || status.terminating_signal().map(|signal| 128 + signal);
            code = status.exit_status().or_else(signalled);
        }
    }
    code
}
