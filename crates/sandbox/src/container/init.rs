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
    let mut watch = Watch::new(None);
    watch.pass_on_to(command);
    watch.until(command, &mut |_, _| {})
}

/// What becomes of signals while a process is waited for.
pub(super) struct Watch {
    /// Who gets them.
    signalled: Option<Pid>,
    /// Those that came when there was nobody yet to get them.
    held: Vec<Signal>,
    /// The signal that says that whoever started this process is gone, upon which it kills instead.
    bequest: Option<Signal>,
}

impl Watch {
    /// Holds all signals, until there is somebody to pass them on to.
    pub(super) fn new(bequest: Option<Signal>) -> Watch {
        Watch { signalled: None, held: Vec::new(), bequest }
    }

    /// From now on signals go to this process, those first that came before.
    pub(super) fn pass_on_to(&mut self, process: Pid) {
        self.signalled = Some(process);
        for signal in std::mem::take(&mut self.held) {
            self.pass_on(signal);
        }
    }

    /// Buries until a process ends; the result is its exit code. The other ends go to `noted`.
    pub(super) fn until(&mut self, awaited: Pid, noted: &mut dyn FnMut(Pid, i32)) -> i32 {
        loop {
            match sys::next_signal() {
                libc::SIGCHLD => {
                    if let Some(code) = bury(awaited, noted) {
                        return code;
                    }
                }
                // It may have ended this instant; its SIGCHLD is then already waiting.
                signal => match Signal::from_named_raw(signal) {
                    Some(signal) if self.bequest == Some(signal) => self.pass_on(Signal::KILL),
                    Some(signal) => self.pass_on(signal),
                    None => {}
                },
            }
        }
    }

    fn pass_on(&mut self, signal: Signal) {
        match self.signalled {
            Some(process) => {
                let _ = kill_process(process, signal);
            }
            None => self.held.push(signal),
        }
    }
}

/// Buries every process that has ended; the exit code of the awaited one if it was among them.
fn bury(awaited: Pid, noted: &mut dyn FnMut(Pid, i32)) -> Option<i32> {
    let mut found = None;
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        let signalled = || status.terminating_signal().map(|signal| 128 + signal);
        let Some(code) = status.exit_status().or_else(signalled) else { continue };
        match pid == awaited {
            true => found = Some(code),
            false => noted(pid, code),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt as _;

    #[test]
    fn signals_are_held_until_there_is_somebody_to_get_them() {
        let mut watch = Watch::new(None);
        watch.pass_on(Signal::TERM);
        let mut command = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        watch.pass_on_to(Pid::from_child(&command));
        assert_eq!(command.wait().unwrap().signal(), Some(libc::SIGTERM));
    }
}
