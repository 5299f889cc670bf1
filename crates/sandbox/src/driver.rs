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
use crate::network::Member;
use crate::packet;
use crate::sandbox::Inner;
use crate::streams::{Incoming, Outgoing};
use crate::sys::watched;
use crate::terminal::{Console, attend};
use crate::wire::{Channel, Failure, MAX_STATUS, Status};
use crate::{
    Begun, Company, Endpoint, Error, Exit, Filter, Lead, Opened, Output, Process, Stream, Terminal,
    Usage, Wish,
};
use rustix::process::{Signal, pidfd_send_signal};
use std::future::pending;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
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
    pidfd: Option<Arc<OwnedFd>>,
    stdout: Channelled,
    stderr: Channelled,
    stdin: Option<Outgoing>,
    /// The terminal that the command runs on, until the container has made it.
    terminal: Option<Terminal>,
    console: Option<Console>,
    /// Who is to answer the port that the container opens, until it has.
    endpoint: Option<Endpoint>,
    names: Names,
    /// None once nobody listens any more.
    output: Option<Output>,
    /// What output passes through first.
    filter: Option<Box<dyn Filter>>,
    phase: Phase,
    /// What went wrong first.
    error: Option<Error>,
    /// Whether files are still to come that output must be written to.
    awaiting_files: bool,
    /// Whose services the command reaches, until it is a member there.
    company: Option<Company>,
    member: Option<Member>,
    /// Where it is in the engine's network.
    address: Option<Ipv4Addr>,
    /// Whether the container is as its command finds it.
    whole: bool,
    /// Hears that the command is about to begin.
    begun: Option<oneshot::Sender<Begun>>,
    wish: Option<watch::Receiver<Wish>>,
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
    /// Nobody is at the terminal any more.
    Deserted,
    Cancelled,
    /// Whoever leads it wants this of it now.
    Wished(Wish),
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
    pub(crate) fn new(
        sending: Sending,
        (output, filter): (Output, Option<Box<dyn Filter>>),
    ) -> io::Result<Driver> {
        let Sending { stdout, stderr, stdin, status, names, terminal, endpoint, company, lead } =
            sending;
        let (begun, wish) = lead.map(|Lead { begun, wish }| (begun, wish)).unzip();
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
            terminal,
            console: None,
            endpoint,
            names,
            output: Some(output),
            filter,
            phase: Phase::Running,
            error: None,
            company,
            member: None,
            address: None,
            whole: false,
            begun,
            wish,
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
                Event::Status(Ok(Some((status, descriptors)))) => {
                    self.hear(status, descriptors, inner);
                }
                Event::Status(Ok(None) | Err(_)) => break None,
                Event::Output(channel, Ok(())) => self.deliver(channel).await,
                Event::Output(_, Err(error)) => {
                    self.fail(Error::Host { action: "cannot read output", source: error });
                }
                Event::InputDone => self.stdin = None,
                // The command is told that its terminal is gone.
                Event::Deserted => self.console = None,
                Event::Cancelled => {
                    self.output = None;
                    self.terminate(inner.settings().grace);
                }
                Event::Wished(Wish::Run) => {}
                Event::Wished(Wish::End) => self.terminate(inner.settings().grace),
                Event::Wished(Wish::Kill) => self.kill(),
                Event::Closing => self.fail(Error::Closed),
                Event::Deadline if matches!(self.phase, Phase::Killing { .. }) => {
                    return Err(Error::Stuck { seconds: KILL_LIMIT.as_secs() });
                }
                Event::Deadline => self.kill(),
            }
        };
        self.member = None;
        self.drain().await;
        self.end_terminal().await;
        self.end_filter().await;
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
            () = attend(&mut self.console) => Event::Deserted,
            _ = &mut orders.cancelled, if running => Event::Cancelled,
            wish = wished(&mut self.wish), if !killing => Event::Wished(wish),
            // An error means that the sandbox itself is gone.
            _ = orders.closing.wait_for(|closing| *closing), if !killing => Event::Closing,
            () = wait_until(deadline) => Event::Deadline,
        }
    }

    fn hear(&mut self, status: Status, descriptors: Vec<OwnedFd>, inner: &Inner) {
        match status {
            Status::Started { place } => {
                self.pidfd = descriptors.into_iter().next().map(Arc::new);
                self.signal();
                self.address = place.and_then(|place| inner.address(place));
                self.introduce();
                self.announce();
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
            Status::Terminal => self.attach(descriptors),
            Status::Endpoint => self.hand_on(descriptors),
            Status::Begun => {
                self.whole = true;
                self.announce();
            }
            Status::Failed(failure) => self.explain(failure),
            Status::Exited { .. } => {}
        }
    }

    /// The container is there: it joins its party, and may begin then.
    fn introduce(&mut self) {
        let Some((company, address)) = self.company.take().zip(self.address) else { return };
        match company.party.join(address, &company.aliases) {
            Ok(member) => self.member = Some(member),
            Err(error) => return self.fail(error),
        }
        // Who does not hear it has ended, which the zygote is about to tell.
        let _ = packet::send(self.status.get_ref(), &[0], &[]);
    }

    /// Tells whoever leads the command that it begins. The container may say so before the zygote has said that
    /// there is one.
    fn announce(&mut self) {
        if self.whole
            && let Some(process) = self.pidfd.clone()
            && let Some(begun) = self.begun.take()
        {
            // Whoever leads it may have gone, and has said then what becomes of it.
            let _ = begun.send(Begun { address: self.address, process: Process(process) });
        }
    }

    /// The container has made the terminal.
    fn attach(&mut self, descriptors: Vec<OwnedFd>) {
        let parts = self.terminal.take().zip(descriptors.into_iter().next());
        let Some((terminal, controller)) = parts else { return };
        match Console::new(controller, terminal) {
            // Who is called off has no more use for one.
            Ok(console) if self.phase == Phase::Running => self.console = Some(console),
            Ok(_) => {}
            Err(source) => self.fail(Error::Host { action: "cannot watch the terminal", source }),
        }
    }

    /// The container has opened a port.
    fn hand_on(&mut self, descriptors: Vec<OwnedFd>) {
        let mut descriptors = descriptors.into_iter();
        let opened = descriptors.next().zip(descriptors.next());
        let Some((endpoint, (listener, root))) = self.endpoint.take().zip(opened) else { return };
        // Who asked for it may have gone; then nobody answers.
        let _ = endpoint.opened.send(Opened { listener, root });
    }

    fn explain(&mut self, failure: Failure) {
        self.awaiting_files = false;
        let error = self.names.explain(failure);
        self.error.get_or_insert(error);
    }

    /// Passes on what was just read.
    async fn deliver(&mut self, channel: Channel) {
        let source = match channel {
            Channel::Stdout => &self.stdout,
            Channel::Stderr => &self.stderr,
        };
        let read = source.incoming.bytes();
        if read.is_empty() {
            return;
        }
        let stream = Stream::from(channel);
        match &mut self.filter {
            None => {
                let told = tell(&mut self.output, stream, read);
                self.keep(channel, None, told).await;
            }
            Some(filter) => {
                let mut passed = vec![];
                let pass = AssertUnwindSafe(|| filter.pass(stream, read, &mut passed));
                let told = catch_unwind(pass).is_ok() && tell(&mut self.output, stream, &passed);
                self.keep(channel, Some(passed), told).await;
            }
        }
    }

    /// Passes on what the filter held back.
    async fn end_filter(&mut self) {
        let Some(mut filter) = self.filter.take() else { return };
        for channel in [Channel::Stdout, Channel::Stderr] {
            let mut passed = vec![];
            let end = AssertUnwindSafe(|| filter.end(Stream::from(channel), &mut passed));
            let told =
                catch_unwind(end).is_ok() && tell(&mut self.output, Stream::from(channel), &passed);
            self.keep(channel, Some(passed), told).await;
        }
    }

    /// Writes what was passed on, or else what was read, to the file of a redirected stream. Who was not
    /// `told` of it panicked, and nothing goes on.
    async fn keep(&mut self, channel: Channel, passed: Option<Vec<u8>>, told: bool) {
        if !told {
            self.output = None;
            let source = io::Error::other("it panicked");
            return self.fail(Error::Host { action: "cannot pass output on", source });
        }
        let source = match channel {
            Channel::Stdout => &mut self.stdout,
            Channel::Stderr => &mut self.stderr,
        };
        let Some(file) = &mut source.file else { return };
        let bytes = passed.as_deref().unwrap_or(source.incoming.bytes());
        if let Err(error) = file.write_all(bytes).await {
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

    async fn end_terminal(&mut self) {
        self.terminal = None;
        if let Some(console) = self.console.take() {
            console.drain().await;
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
        if self.phase != Phase::Running {
            return;
        }
        // A shell at a terminal takes no notice of SIGTERM, but of this.
        self.console = None;
        self.phase = Phase::Terminating { until: Instant::now() + grace };
        self.signal();
    }

    fn kill(&mut self) {
        self.console = None;
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
            let _ = pidfd_send_signal(&**pidfd, signal);
        }
    }
}

/// What somebody wants of a run in the background, when that changes.
async fn wished(wish: &mut Option<watch::Receiver<Wish>>) -> Wish {
    if let Some(receiver) = wish {
        match receiver.changed().await {
            Ok(()) => return *receiver.borrow_and_update(),
            // Nobody leads it any more.
            Err(_) => *wish = None,
        }
    }
    pending().await
}

/// Gives output to who listens, if anybody does. A panic there would leave the container running with
/// nobody to see it through: it is told instead.
fn tell(output: &mut Option<Output>, stream: Stream, bytes: &[u8]) -> bool {
    let Some(output) = output else { return true };
    bytes.is_empty() || catch_unwind(AssertUnwindSafe(|| output(stream, bytes))).is_ok()
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
