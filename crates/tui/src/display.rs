//! [`Display`]: takes events, keeps the trace, and lets one view write what changed.
//!
//! Everything goes through here to one writer, one write a change, so that lines of ours and output
//! of a child never tear each other apart. A writer that fails (a closed pipe) is not written to
//! again: losing the display must not end the work.

use crate::look::{Look, Paint};
use crate::terminal::Size;
use crate::{dots, live, logs, plain, report, silent};
use protocol::Event;
use std::io::Write;
use std::time::Duration;
use telemetry::{Change, Limits, Trace};

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A tree that is redrawn in place.
    Live,
    /// A line for every begin, end and line of output.
    Plain,
    /// A character for every step that ended.
    Dots,
    /// Output of steps only.
    Logs,
    /// Nothing but a sign of life now and then, and a report at the end.
    Report,
    /// Nothing at all unless something fails, then a report.
    Focus,
    /// Nothing at all.
    Silent,
}

/// What a display needs to know.
pub struct Settings {
    /// How progress is shown.
    pub mode: Mode,
    /// Verbosity: 0 shows what runs, 1 keeps what ended, 3 shows plumbing, 5 keeps output.
    pub level: i32,
    /// Whether to show everything.
    pub debug: bool,
    /// Whether colours are wanted.
    pub paint: Paint,
    /// Asks for the size of the terminal.
    pub size: Box<dyn Fn() -> Option<Size> + Send>,
}

/// What of a failure a user has seen when the display ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// Reasons that stand in the final report.
    pub reasons: Vec<String>,
    /// Whether the output of what failed was shown.
    pub output: bool,
}

/// One of the two output streams of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Turns changes of a trace into text.
pub(crate) trait View: Send {
    /// Something changed.
    fn change(&mut self, trace: &Trace, change: &Change, now: u64, out: &mut String);
    /// Time passed.
    fn tick(&mut self, trace: &Trace, now: u64, out: &mut String);
    /// Nothing more will come.
    fn finish(&mut self, end: End<'_>, out: &mut String) -> Shown;
    /// How often time is to pass.
    fn interval(&self) -> Option<Duration>;
    /// Makes room for output of a child.
    fn step_aside(&mut self, _out: &mut String) {}
}

/// The end of a display.
#[derive(Clone, Copy)]
pub(crate) struct End<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) now: u64,
    /// Whether the command failed.
    pub(crate) failed: bool,
}

/// Shows the progress of a session.
pub struct Display {
    trace: Trace,
    view: Box<dyn View>,
    stdout: Box<dyn Write + Send>,
    stderr: Box<dyn Write + Send>,
    /// Output of a child that does not end a line yet.
    partial: [Vec<u8>; 2],
    buffer: String,
    broken: bool,
}

impl Display {
    /// A display on these two streams; progress goes to the second, a child's output to each.
    pub fn new(
        settings: Settings,
        stdout: Box<dyn Write + Send>,
        stderr: Box<dyn Write + Send>,
    ) -> Self {
        let look = Look { level: settings.level, debug: settings.debug, paint: settings.paint };
        let finished_lines = if look.expands() { 20 } else { 0 };
        let limits = Limits { finished_lines, ..Limits::default() };
        Self {
            trace: Trace::new(limits),
            view: view(settings.mode, look, settings.size),
            stdout,
            stderr,
            partial: Default::default(),
            buffer: String::new(),
            broken: false,
        }
    }

    /// Takes one event. Times are microseconds since the Unix epoch.
    pub fn event(&mut self, event: &Event, now: u64) {
        let change = self.trace.apply(event);
        self.view.change(&self.trace, &change, now, &mut self.buffer);
        self.write();
    }

    /// Lets time pass.
    pub fn tick(&mut self, now: u64) {
        self.view.tick(&self.trace, now, &mut self.buffer);
        self.write();
    }

    /// How often [`Display::tick`] is to be called.
    pub fn interval(&self) -> Option<Duration> {
        self.view.interval()
    }

    /// Prints complete lines of a child's output above whatever is redrawn in place.
    pub fn pass_through(&mut self, stream: Stream, bytes: &[u8]) {
        let partial = &mut self.partial[stream as usize];
        partial.extend_from_slice(bytes);
        let Some(end) = partial.iter().rposition(|byte| *byte == b'\n') else { return };
        let lines: Vec<u8> = partial.drain(..=end).collect();
        self.print(stream, &lines);
    }

    /// Ends the display and says what it has shown.
    pub fn finish(&mut self, failed: bool, now: u64) -> Shown {
        for stream in [Stream::Stdout, Stream::Stderr] {
            let rest = std::mem::take(&mut self.partial[stream as usize]);
            if !rest.is_empty() {
                self.print(stream, &rest);
            }
        }
        let end = End { trace: &self.trace, now, failed };
        let shown = self.view.finish(end, &mut self.buffer);
        self.write();
        shown
    }

    /// What is known of the session's work.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    fn print(&mut self, stream: Stream, bytes: &[u8]) {
        self.view.step_aside(&mut self.buffer);
        self.write();
        let writer = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        self.broken |= writer.write_all(bytes).and_then(|()| writer.flush()).is_err();
    }

    fn write(&mut self) {
        if !self.buffer.is_empty() && !self.broken {
            let written = self.stderr.write_all(self.buffer.as_bytes());
            self.broken = written.and_then(|()| self.stderr.flush()).is_err();
        }
        self.buffer.clear();
    }
}

fn view(mode: Mode, look: Look, size: Box<dyn Fn() -> Option<Size> + Send>) -> Box<dyn View> {
    match mode {
        Mode::Live => Box::new(live::Live::new(look, size)),
        Mode::Plain => Box::new(plain::Plain::new(look)),
        Mode::Dots => Box::new(dots::Dots::new(look)),
        Mode::Logs => Box::new(logs::Logs::new(look)),
        Mode::Report => Box::new(report::Report::with_heartbeat(look)),
        Mode::Focus => Box::new(report::Report::of_failures(look)),
        Mode::Silent => Box::new(silent::Silent),
    }
}
