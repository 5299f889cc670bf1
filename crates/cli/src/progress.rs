//! Feeds a display with the events of a session, beside whatever the command does.

use client::Events;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};
use tui::{Display, Shown, Stream};

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
    /// Begins to show events.
    pub(crate) fn start(events: Events, display: Display) -> Self {
        let (messages, receiver) = mpsc::channel(BUFFERED);
        Self { messages, task: tokio::spawn(show(events, display, receiver)) }
    }

    /// A way to print a child's output above the display.
    pub(crate) fn printer(&self) -> Printer {
        Printer(self.messages.clone())
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

async fn show(
    mut events: Events,
    mut display: Display,
    mut messages: mpsc::Receiver<Message>,
) -> Shown {
    let period = display.interval().unwrap_or(NEVER);
    let mut ticks = tokio::time::interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut more = true;
    let how = loop {
        tokio::select! {
            event = events.next(), if more => match event {
                Some(event) => display.event(&event, now()),
                None => more = false,
            },
            message = messages.recv() => match message {
                Some(Message::Output(stream, bytes)) => display.pass_through(stream, &bytes),
                Some(Message::Finish(how)) => break how,
                None => break Finish::Interrupted,
            },
            _ = ticks.tick() => display.tick(now()),
        }
    };
    if how != Finish::Interrupted && more {
        let drain = async {
            while let Some(event) = events.next().await {
                display.event(&event, now());
            }
        };
        // A stream that does not end must not keep the result from the user.
        let _ = tokio::time::timeout(DRAIN, drain).await;
    }
    display.finish(how != Finish::Succeeded, now())
}

/// Microseconds since the Unix epoch.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
