//! The child of `api exec`: its environment, its streams and its end.

use crate::context::Work;
use crate::error::Error;
use crate::exit::Exit;
use crate::progress::Printer;
use protocol::env;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tui::Stream;

/// How long output may still come after the child has ended: a process it left behind may hold the
/// pipe open for ever.
const OUTPUT_LIMIT: Duration = Duration::from_secs(1);

/// How much later than the end of the child a press may be seen that ended it.
const PRESS_LIMIT: Duration = Duration::from_millis(5);

/// A child to run.
pub(super) struct Child<'a> {
    pub(super) command: &'a [OsString],
    /// Port and token of the session's endpoint.
    pub(super) endpoint: (u16, &'a str),
    /// How long it has between SIGTERM and SIGKILL.
    pub(super) grace: Duration,
    pub(super) captures_stdout: bool,
    pub(super) captures_stderr: bool,
}

impl Child<'_> {
    /// Runs the child to its end. Ctrl-C ends it and is the outcome.
    pub(super) async fn run(&self, work: &mut Work) -> Result<Exit, Error> {
        let mut command = self.prepare()?;
        let mut child = command.spawn().map_err(|error| {
            let name = self.command.first().cloned().unwrap_or_default();
            Error::user(format!("cannot run `{}`: {error}", name.to_string_lossy()))
        })?;
        let printer = work.progress.as_ref().map(|progress| progress.printer());
        let copies = [
            copy(child.stdout.take(), Stream::Stdout, printer.clone()),
            copy(child.stderr.take(), Stream::Stderr, printer),
        ];
        let ended = tokio::select! {
            status = child.wait() => Some(status?),
            () = work.interrupt.pressed() => None,
        };
        let result = match ended {
            Some(status) if status.success() || !also_pressed(work).await => Ok(exit(status)),
            _ => {
                work.tell("Interrupted: the run was cancelled.").await;
                self.stop(&mut child, work).await;
                Err(Error::interrupted())
            }
        };
        for copy in copies.into_iter().flatten() {
            // What has not come by now is not waited for.
            let _ = timeout(OUTPUT_LIMIT, copy).await;
        }
        result
    }

    fn prepare(&self) -> Result<Command, Error> {
        let Some((program, arguments)) = self.command.split_first() else {
            return Err(Error::user("no command was given"));
        };
        let (port, token) = self.endpoint;
        let mut command = Command::new(program);
        command.args(arguments).kill_on_drop(true);
        for name in [env::SESSION_PORT, env::COMPAT_SESSION_PORT] {
            command.env(name, port.to_string());
        }
        for name in [env::SESSION_TOKEN, env::COMPAT_SESSION_TOKEN] {
            command.env(name, token);
        }
        if self.captures_stdout {
            command.stdout(Stdio::piped());
        }
        if self.captures_stderr {
            command.stderr(Stdio::piped());
        }
        Ok(command)
    }

    /// Asks the child to end, then ends it when its grace is over or somebody presses Ctrl-C again.
    async fn stop(&self, child: &mut tokio::process::Child, work: &mut Work) {
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // It may have ended by itself meanwhile, which is what we want.
            let _ = kill_process(pid, Signal::TERM);
        }
        let ended = tokio::select! {
            ended = timeout(self.grace, child.wait()) => ended.is_ok(),
            () = work.interrupt.pressed() => false,
        };
        if !ended {
            let _ = child.kill().await;
        }
    }
}

/// Whether somebody pressed Ctrl-C at the moment the child ended. A terminal sends it to both, and
/// the end of the child may be seen first.
async fn also_pressed(work: &mut Work) -> bool {
    timeout(PRESS_LIMIT, work.interrupt.pressed()).await.is_ok()
}

fn exit(status: ExitStatus) -> Exit {
    Exit::of_child(status.code(), status.signal())
}

fn copy(
    pipe: Option<impl AsyncRead + Send + Unpin + 'static>,
    stream: Stream,
    printer: Option<Printer>,
) -> Option<JoinHandle<()>> {
    let (mut pipe, printer) = (pipe?, printer?);
    Some(tokio::spawn(async move {
        let mut bytes = vec![0; 16 << 10];
        while let Ok(count @ 1..) = pipe.read(&mut bytes).await {
            printer.print(stream, bytes[..count].to_vec()).await;
        }
    }))
}
