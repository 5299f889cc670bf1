//! Sees one run through, from the request to the last process: the engine's side of a container.
//!
//! ```text
//! Running --cancelled--> Terminating --grace over--> Killing --too long--> Stuck
//!    '------ shutting down, or our own mistake -------^
//! ```
//!
//! Every state but the first has a deadline. Output is read all the while, so that a command that is
//! asked to end can still say something and is not stuck in a full pipe.

use crate::cgroup::Group;
use crate::launch::{Names, Sending};
use crate::packet;
use crate::sandbox::Inner;
use crate::streams::{Incoming, Outgoing};
use crate::sys::watched;
use crate::wire::{Channel, Failure, MAX_STATUS, Status};
use crate::{Error, Exit, Output, Stream, Usage};
use rustix::process::{Signal, pidfd_send_signal};
use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use tokio::fs::File;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncWriteExt, Interest};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep_until};

/// How long killed processes may take to be gone. A process that writes to a broken disk can take long.
const KILL_LIMIT: Duration = Duration::from_secs(60);
/// Most bytes that are taken from a pipe after the last process is gone. More can only come from
/// somebody outside who was handed the pipe.
const DRAIN_LIMIT: usize = 4 * 1024 * 1024;

/// One run, as the engine sees it.
pub(crate) struct Driver {
    status: AsyncFd<OwnedFd>,
    pidfd: Option<OwnedFd>,
    stdout: Channelled,
    stderr: Channelled,
    stdin: Option<Outgoing>,
    names: Names,
    /// None once nobody listens any more.
    output: Option<Output>,
    phase: Phase,
    /// What went wrong first.
    error: Option<Error>,
    /// Whether files are still to come that output must be written to.
    awaiting_files: bool,
}

/// An output stream and the file it also goes to.
struct Channelled {
    incoming: Incoming,
    redirected: bool,
    file: Option<File>,
}

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    Running,
    Terminating { until: Instant },
    Killing { until: Instant },
}

/// How the world can call a run off.
pub(crate) struct Orders {
    /// Resolves when nobody waits for the run any more.
    pub(crate) cancelled: oneshot::Receiver<()>,
    /// True when everything must end at once.
    pub(crate) closing: watch::Receiver<bool>,
}

enum Event {
    Status(io::Result<Option<(Status, Vec<OwnedFd>)>>),
    Output(Channel, io::Result<()>),
    InputDone,
    Cancelled,
    Closing,
    Deadline,
}

/// How the container ended, by the zygote's word.
struct Ended {
    code: i32,
    usage: Usage,
}

impl Driver {
    /// Takes over what is left after the request was sent.
    pub(crate) fn new(sending: Sending, output: Output) -> io::Result<Driver> {
        let Sending { stdout, stderr, stdin, status, names } = sending;
        let channelled = |incoming, path: &Option<String>| Channelled {
            incoming,
            redirected: path.is_some(),
            file: None,
        };
        let stdout = channelled(stdout, &names.redirect_stdout);
        let stderr = channelled(stderr, &names.redirect_stderr);
        Ok(Driver {
            status: watched(status, Interest::READABLE)?,
            pidfd: None,
            awaiting_files: stdout.redirected || stderr.redirected,
            stdout,
            stderr,
            stdin,
            names,
            output: Some(output),
            phase: Phase::Running,
            error: None,
        })
    }

    /// Waits for the end, whatever happens meanwhile.
    pub(crate) async fn run(
        mut self,
        inner: &Inner,
        mut orders: Orders,
        group: Option<&Group>,
    ) -> Result<Exit, Error> {
        let ended = loop {
            match self.next(&mut orders).await {
                Event::Status(Ok(Some((
                    Status::Exited { code, user_micros, system_micros, max_resident },
                    _,
                )))) => {
                    let user = Duration::from_micros(user_micros);
                    let system = Duration::from_micros(system_micros);
                    break Some(Ended { code, usage: Usage { user, system, max_resident } });
                }
                Event::Status(Ok(Some((status, descriptors)))) => self.hear(status, descriptors),
                Event::Status(Ok(None) | Err(_)) => break None,
                Event::Output(channel, Ok(())) => self.deliver(channel).await,
                Event::Output(_, Err(error)) => {
                    self.fail(Error::Host { action: "cannot read output", source: error });
                }
                Event::InputDone => self.stdin = None,
                Event::Cancelled => self.terminate(inner.settings().grace),
                Event::Closing => self.fail(Error::Closed),
                Event::Deadline if matches!(self.phase, Phase::Killing { .. }) => {
                    return Err(Error::Stuck { seconds: KILL_LIMIT.as_secs() });
                }
                Event::Deadline => self.kill(),
            }
        };
        self.drain().await;
        self.finish_files().await;
        let oom = group.and_then(Group::oom);
        match (self.error, ended) {
            (Some(error), _) => Err(error),
            (None, Some(Ended { code, usage })) => Ok(Exit { code, oom, usage }),
            (None, None) => Err(Error::Zygote("ended".into())),
        }
    }

    async fn next(&mut self, orders: &mut Orders) -> Event {
        let reading = !self.awaiting_files;
        let deadline = match self.phase {
            Phase::Running => None,
            Phase::Terminating { until } | Phase::Killing { until } => Some(until),
        };
        let running = self.phase == Phase::Running;
        let killing = matches!(self.phase, Phase::Killing { .. });
        tokio::select! {
            heard = receive(&self.status) => Event::Status(heard),
            filled = self.stdout.incoming.fill(), if reading && self.stdout.incoming.open() => {
                Event::Output(Channel::Stdout, filled)
            }
            filled = self.stderr.incoming.fill(), if reading && self.stderr.incoming.open() => {
                Event::Output(Channel::Stderr, filled)
            }
            () = feed(&mut self.stdin) => Event::InputDone,
            _ = &mut orders.cancelled, if running => Event::Cancelled,
            // An error means that the sandbox itself is gone.
            _ = orders.closing.wait_for(|closing| *closing), if !killing => Event::Closing,
            () = wait_until(deadline) => Event::Deadline,
        }
    }

    fn hear(&mut self, status: Status, descriptors: Vec<OwnedFd>) {
        match status {
            Status::Started => {
                self.pidfd = descriptors.into_iter().next();
                self.signal();
            }
            Status::Files => {
                let mut files = descriptors.into_iter();
                for channel in [&mut self.stdout, &mut self.stderr] {
                    if channel.redirected {
                        channel.file = files.next().map(|file| File::from_std(file.into()));
                    }
                }
                self.awaiting_files = false;
            }
            Status::Failed(failure) => self.explain(failure),
            Status::Exited { .. } => {}
        }
    }

    fn explain(&mut self, failure: Failure) {
        self.awaiting_files = false;
        let error = self.names.explain(failure);
        self.error.get_or_insert(error);
    }

    /// Passes on what was just read.
    async fn deliver(&mut self, channel: Channel) {
        let source = match channel {
            Channel::Stdout => &mut self.stdout,
            Channel::Stderr => &mut self.stderr,
        };
        let bytes = source.incoming.bytes();
        if bytes.is_empty() {
            return;
        }
        if let Some(output) = &mut self.output {
            let call = AssertUnwindSafe(|| output(Stream::from(channel), bytes));
            // A panic here would leave the container running with nobody to see it through.
            if catch_unwind(call).is_err() {
                self.output = None;
                let source = io::Error::other("it panicked");
                return self.fail(Error::Host { action: "cannot pass output on", source });
            }
        }
        if let Some(file) = &mut source.file
            && let Err(error) = file.write_all(bytes).await
        {
            source.file = None;
            let error = self.names.redirect(channel, error.to_string());
            self.fail(error);
        }
    }

    /// Takes what is left in the pipes when nobody can write to them any more.
    async fn drain(&mut self) {
        self.awaiting_files = false;
        for channel in [Channel::Stdout, Channel::Stderr] {
            let mut taken = 0;
            while taken < DRAIN_LIMIT {
                let source = match channel {
                    Channel::Stdout => &mut self.stdout.incoming,
                    Channel::Stderr => &mut self.stderr.incoming,
                };
                if !source.fill_now() {
                    break;
                }
                taken += source.bytes().len();
                self.deliver(channel).await;
            }
        }
    }

    async fn finish_files(&mut self) {
        for channel in [Channel::Stdout, Channel::Stderr] {
            let file = match channel {
                Channel::Stdout => self.stdout.file.take(),
                Channel::Stderr => self.stderr.file.take(),
            };
            let Some(mut file) = file else { continue };
            if let Err(error) = file.flush().await {
                let error = self.names.redirect(channel, error.to_string());
                self.error.get_or_insert(error);
            }
        }
    }

    /// Our side cannot go on, so the command must not either.
    fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
        self.kill();
    }

    fn terminate(&mut self, grace: Duration) {
        self.output = None;
        self.phase = Phase::Terminating { until: Instant::now() + grace };
        self.signal();
    }

    fn kill(&mut self) {
        self.phase = Phase::Killing { until: Instant::now() + KILL_LIMIT };
        self.signal();
    }

    /// Sends what the phase demands; if process 1 is not known yet, that follows when it is.
    fn signal(&self) {
        let signal = match self.phase {
            Phase::Running => return,
            Phase::Terminating { .. } => Signal::TERM,
            Phase::Killing { .. } => Signal::KILL,
        };
        if let Some(pidfd) = &self.pidfd {
            // An error means that it has ended, which the zygote is about to tell.
            let _ = pidfd_send_signal(pidfd, signal);
        }
    }
}

/// The next status packet; none when there will be no more.
async fn receive(status: &AsyncFd<OwnedFd>) -> io::Result<Option<(Status, Vec<OwnedFd>)>> {
    let mut buffer = [0; MAX_STATUS];
    let read = |status: &OwnedFd| Ok(packet::receive(status, &mut buffer)?);
    let packet = status.async_io(Interest::READABLE, read).await?;
    if packet.length == 0 {
        return Ok(None);
    }
    let status = postcard::from_bytes(&buffer[..packet.length]).map_err(io::Error::other)?;
    Ok(Some((status, packet.descriptors)))
}

/// Writes to the standard input until there is nothing left to do.
async fn feed(stdin: &mut Option<Outgoing>) {
    match stdin {
        Some(stdin) => while !stdin.advance().await {},
        None => pending().await,
    }
}

async fn wait_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}
