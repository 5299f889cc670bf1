//! Feeds a display with the events of a session, beside whatever the command does.

use crate::interrupt::Interrupt;
use crate::lend;
use crate::terminal::{Input, Terminal};
use client::{Events, Loan};
use protocol::Event;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};
use tui::{Answer, Display, Shown, Stream};

/// How long events may still come after the session has ended.
const DRAIN: Duration = Duration::from_secs(2);
/// Pieces of a child's output that may wait for the display.
const BUFFERED: usize = 64;
/// Stands in for a display that does not want time to pass.
const NEVER: Duration = Duration::from_secs(3600);

/// A display that runs.
pub(crate) struct Progress {
    messages: mpsc::Sender<Message>,
    task: JoinHandle<Shown>,
}

enum Message {
    Output(Stream, Vec<u8>),
    /// Somebody else needs the terminal until the other side of `end` is dropped.
    Aside {
        ready: oneshot::Sender<()>,
        end: oneshot::Receiver<()>,
    },
    Finish(Finish),
}

/// How a display is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// All events of a command that went well.
    Succeeded,
    /// All events of a command that failed.
    Failed,
    /// At once.
    Interrupted,
}

impl Progress {
    /// Begins to show events. A display that stays ends when the user has seen enough.
    pub(crate) fn start(events: Events, display: Display, terminal: Terminal, stays: bool) -> Self {
        let (messages, receiver) = mpsc::channel(BUFFERED);
        let show = Show { events, more: true, display, terminal, stays };
        Self { messages, task: tokio::spawn(show.run(receiver)) }
    }

    /// A way to print a child's output above the display.
    pub(crate) fn printer(&self) -> Printer {
        Printer(self.messages.clone())
    }

    /// Does something while the display stands aside and leaves the terminal alone.
    pub(crate) async fn aside<T>(&self, work: impl Future<Output = T>) -> T {
        let (ready, begin) = oneshot::channel();
        let (_until, end) = oneshot::channel();
        // A display that has ended is in nobody's way.
        if self.messages.send(Message::Aside { ready, end }).await.is_ok() {
            let _ = begin.await;
        }
        work.await
    }

    /// Shows what is left and ends the display.
    pub(crate) async fn finish(self, how: Finish) -> Shown {
        if self.messages.send(Message::Finish(how)).await.is_err() {
            return Shown::default();
        }
        self.task.await.unwrap_or_default()
    }
}

/// Prints above a display.
#[derive(Clone)]
pub(crate) struct Printer(mpsc::Sender<Message>);

impl Printer {
    /// Prints when the display has room for it.
    pub(crate) async fn print(&self, stream: Stream, bytes: Vec<u8>) {
        // A display that has ended prints nothing more; there is nobody to tell.
        let _ = self.0.send(Message::Output(stream, bytes)).await;
    }
}

/// A display with all that it reacts to.
struct Show {
    events: Events,
    /// Whether more events may come.
    more: bool,
    display: Display,
    terminal: Terminal,
    stays: bool,
}

impl Show {
    async fn run(mut self, mut messages: mpsc::Receiver<Message>) -> Shown {
        let mut ticks = self.ticks();
        let how = loop {
            tokio::select! {
                event = self.events.next(), if self.more => self.take(event).await,
                message = messages.recv() => match message {
                    Some(Message::Output(stream, bytes)) => {
                        self.display.pass_through(stream, &bytes, now());
                    }
                    Some(Message::Aside { ready, end }) => {
                        self.step_aside();
                        let _ = ready.send(());
                        self.wait_aside(async { drop(end.await) }).await;
                    }
                    Some(Message::Finish(how)) => break how,
                    None => break Finish::Interrupted,
                },
                _ = ticks.tick() => self.tick(),
                input = self.terminal.next() => {
                    self.react(input).await;
                }
            }
        };
        // From here on Ctrl-C means that the rest need not be shown.
        let interrupt = Interrupt::new().ok().filter(|_| how != Finish::Interrupted);
        if let Some(mut interrupt) = interrupt {
            tokio::select! {
                () = self.end() => {}
                () = interrupt.pressed() => {}
            }
        }
        let shown = self.display.finish(how != Finish::Succeeded, now());
        self.terminal.release();
        shown
    }

    fn ticks(&self) -> tokio::time::Interval {
        let period = self.display.interval().unwrap_or(NEVER);
        let mut ticks = tokio::time::interval_at(Instant::now() + period, period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks
    }

    /// Takes an event and all that wait behind it.
    async fn take(&mut self, mut event: Option<Event>) {
        let now = now();
        while let Some(next) = &event {
            self.display.event(next, now);
            event = tokio::select! {
                biased;
                event = self.events.next() => event,
                () = std::future::ready(()) => return self.display.flush(),
            };
        }
        self.more = false;
        self.display.flush();
    }

    fn tick(&mut self) {
        if self.terminal.may_draw() {
            self.display.tick(now());
        }
        if self.display.is_drawn() {
            self.terminal.drawn();
        }
    }

    async fn react(&mut self, input: Input) -> Answer {
        match input {
            Input::Keys(keys) => self.display.keys(&keys, now()),
            Input::Stop => {
                self.display.step_aside();
                self.terminal.stop();
                Answer::Stay
            }
            Input::Loan(loan) => {
                self.lend(loan).await;
                Answer::Stay
            }
        }
    }

    /// Steps aside for whoever uses the terminal now. Events are taken meanwhile and shown afterwards.
    async fn lend(&mut self, loan: Loan) {
        self.step_aside();
        self.wait_aside(lend::lend(loan)).await;
    }

    fn step_aside(&mut self) {
        self.display.step_aside();
        self.terminal.release();
    }

    async fn wait_aside(&mut self, used: impl Future<Output = ()>) {
        let mut used = std::pin::pin!(used);
        loop {
            tokio::select! {
                () = &mut used => break,
                event = self.events.next(), if self.more => self.take(event).await,
            }
        }
        self.terminal.regain();
    }

    /// Shows the rest, and stays if that is wanted.
    async fn end(&mut self) {
        let drain = async {
            while self.more {
                let event = self.events.next().await;
                self.take(event).await;
            }
        };
        // A stream that does not end must not keep the result from the user.
        let _ = tokio::time::timeout(DRAIN, drain).await;
        if !self.stays || !self.display.stay(now()) {
            return;
        }
        self.terminal.take_keys();
        let mut ticks = self.ticks();
        loop {
            tokio::select! {
                _ = ticks.tick() => self.tick(),
                input = self.terminal.next() => {
                    if self.react(input).await == Answer::Leave {
                        return;
                    }
                }
            }
        }
    }
}

/// Microseconds since the Unix epoch.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
