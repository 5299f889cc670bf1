//! Calls of the program that makes containers, and what it has to say for itself.

use super::super::NOT_BEGUN;
use super::super::command::Command;
use super::connect_nothing;
use crate::sys;
use crate::wire::{self, Dialect, Failure, Input, Run, Runtime, Stage};
use crate::zygote::{World, process};
use rustix::process::Pid;
use serde::Deserialize;
use std::fs;
use std::os::fd::OwnedFd;

/// Where the program itself finds programs that it needs.
const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// What stands for a log without an error.
const SILENT: &str = "it failed and did not say why";

/// What streams a call has.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Streams {
    /// Those of this process, which the command inherits.
    Given,
    /// None.
    Nothing,
}

/// The program, with what all its calls about one command have in common. They are made in the bundle.
pub(super) struct Program {
    words: Vec<String>,
    log: String,
}

impl Program {
    /// The program, which writes to this log in the bundle.
    pub(super) fn new(runtime: &Runtime, log: String) -> Program {
        let groups = match runtime.dialect {
            Dialect::Crun => "--cgroup-manager=disabled",
            Dialect::Runc => "--rootless=true",
        };
        let words = vec![
            runtime.program.clone(),
            format!("--root={}/bundle/state", runtime.place),
            format!("--log={}/bundle/{log}", runtime.place),
            "--log-format=json".to_owned(),
            groups.to_owned(),
        ];
        Program { words, log }
    }

    /// Calls it with these words more.
    pub(super) fn spawn(
        &self,
        words: &[String],
        (world, streams): (&World, Streams),
        status: &OwnedFd,
    ) -> Result<Pid, Failure> {
        let words = self.words.iter().chain(words).cloned().collect();
        let command = Command::new(&invocation(words), world, None)?;
        let mut failure = None;
        let mut become_program = || {
            let ready = match streams {
                Streams::Given => Ok(()),
                Streams::Nothing => connect_nothing(world),
            };
            failure = Some(match ready {
                Ok(()) => command.execute(status),
                Err(error) => Failure::setup("let go of the streams")(error),
            });
            NOT_BEGUN
        };
        let spawned = sys::spawn_in_shared_memory(&mut become_program);
        let failed = Failure::setup("start the runtime");
        match (failure, spawned) {
            (Some(failure), _) => Err(failure),
            (None, spawned) => {
                process(spawned.map_err(&failed)?).ok_or_else(|| failed(rustix::io::Errno::SRCH))
            }
        }
    }

    /// Why a call failed, by its log.
    pub(super) fn failure(&self) -> Failure {
        let message = self.last_error().unwrap_or_else(|| SILENT.to_owned());
        Failure::told(Stage::Runtime(wire::shorten(&message)))
    }

    fn last_error(&self) -> Option<String> {
        last_error(&fs::read_to_string(&self.log).unwrap_or_default())
    }
}

/// A call as something to execute.
fn invocation(args: Vec<String>) -> Run {
    Run {
        args,
        env: vec![PATH.to_owned()],
        workdir: "/".to_owned(),
        uid: 0,
        gid: 0,
        groups: vec![],
        init: true,
        all_capabilities: false,
        stdin: Input::Null,
        redirect_stdout: None,
        redirect_stderr: None,
        mounts: vec![],
        group_files: 0,
        held: false,
        led: false,
        beside: false,
        resolves: false,
        terminal: None,
        endpoint: vec![],
    }
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
}
