//! [`Display`]: takes events, keeps the trace, and lets one view write what changed.
//!
//! Everything goes through here to one writer, one write a change, so that lines of ours and output
//! of a child never tear each other apart. A writer that fails (a closed pipe) is not written to
//! again: losing the display must not end the work.

use crate::keys::{Key, Keys};
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
    /// Whether there is a keyboard whose keys come through [`Display::keys`].
    pub keys: bool,
    /// How often a report gives a sign of life; never if none.
    pub heartbeat: Option<Duration>,
}

/// What a key means to whoever runs the display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The display goes on.
    Stay,
    /// The user has seen enough.
    Leave,
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
    /// Takes everything off the screen that is redrawn in place.
    fn step_aside(&mut self, _out: &mut String) {}
    /// Makes room for output of a child, for a moment.
    fn make_room(&mut self, _out: &mut String) {}
    /// The output stands.
    fn come_back(&mut self, _: &Trace, _now: u64, _out: &mut String) {}
    /// A key was pressed.
    fn key(&mut self, _: &Trace, _: Key, _now: u64, _out: &mut String) -> Answer {
        Answer::Stay
    }
    /// The work is over; whether there is something to look at until the user leaves.
    fn stay(&mut self, _: &Trace, _now: u64, _out: &mut String) -> bool {
        false
    }
    /// Whether something stands on the screen that has to be taken away.
    fn is_drawn(&self) -> bool {
        false
    }
    /// The display ends without an end: the terminal must be usable, no more.
    fn abandon(&mut self, _out: &mut String) {}
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
    keys: Keys,
    buffer: String,
    broken: bool,
}

/// Lines of output that are kept of a step which ended well, for who looks back at it.
const FINISHED_LINES: usize = 100;
/// Text that is written before more is collected.
const FULL: usize = 32 << 10;
/// And where steps stay expanded.
const EXPANDED_LINES: usize = 20;

impl Display {
    /// A display on these two streams; progress goes to the second, a child's output to each.
    pub fn new(
        settings: Settings,
        stdout: Box<dyn Write + Send>,
        stderr: Box<dyn Write + Send>,
    ) -> Self {
        let look = Look { level: settings.level, debug: settings.debug, paint: settings.paint };
        let finished_lines = match settings.keys {
            true => FINISHED_LINES,
            false if look.expands() => EXPANDED_LINES,
            false => 0,
        };
        let limits = Limits { finished_lines, ..Limits::default() };
        Self {
            trace: Trace::new(limits),
            view: view(look, settings),
            stdout,
            stderr,
            partial: Default::default(),
            keys: Keys::default(),
            buffer: String::new(),
            broken: false,
        }
    }

    /// Takes one event. Times are microseconds since the Unix epoch. What there is to say about it
    /// is written by [`Display::flush`], so that many events that come at once are one write.
    pub fn event(&mut self, event: &Event, now: u64) {
        let change = self.trace.apply(event);
        self.view.change(&self.trace, &change, now, &mut self.buffer);
        if self.buffer.len() >= FULL {
            self.write();
        }
    }

    /// Writes what events had to say.
    pub fn flush(&mut self) {
        self.write();
    }

    /// Lets time pass.
    pub fn tick(&mut self, now: u64) {
        if let Some(key) = self.keys.settle() {
            self.view.key(&self.trace, key, now, &mut self.buffer);
        }
        self.view.tick(&self.trace, now, &mut self.buffer);
        self.write();
    }

    /// Takes what was typed.
    pub fn keys(&mut self, bytes: &[u8], now: u64) -> Answer {
        let mut answer = Answer::Stay;
        for key in self.keys.push(bytes) {
            if self.view.key(&self.trace, key, now, &mut self.buffer) == Answer::Leave {
                answer = Answer::Leave;
            }
        }
        self.write();
        answer
    }

    /// Whether something stands on the screen that keys can be for.
    pub fn is_drawn(&self) -> bool {
        self.view.is_drawn()
    }

    /// Takes everything off the screen that is redrawn in place, until time passes again.
    pub fn step_aside(&mut self) {
        self.view.step_aside(&mut self.buffer);
        self.write();
    }

    /// Says that the work is over. Whether the display has something to look at until the user
    /// leaves it; then keys and ticks go on until [`Display::finish`].
    pub fn stay(&mut self, now: u64) -> bool {
        let stays = self.view.stay(&self.trace, now, &mut self.buffer);
        self.write();
        stays
    }

    /// How often [`Display::tick`] is to be called.
    pub fn interval(&self) -> Option<Duration> {
        self.view.interval()
    }

    /// Prints complete lines of a child's output above whatever is redrawn in place.
    pub fn pass_through(&mut self, stream: Stream, bytes: &[u8], now: u64) {
        let partial = &mut self.partial[stream as usize];
        partial.extend_from_slice(bytes);
        let Some(end) = partial.iter().rposition(|byte| *byte == b'\n') else { return };
        let lines: Vec<u8> = partial.drain(..=end).collect();
        self.print(stream, &lines);
        self.view.come_back(&self.trace, now, &mut self.buffer);
        self.write();
    }

    /// Ends the display and says what it has shown.
    pub fn finish(&mut self, failed: bool, now: u64) -> Shown {
        for stream in [Stream::Stdout, Stream::Stderr] {
            let rest = std::mem::take(&mut self.partial[stream as usize]);
            if !rest.is_empty() {
                self.step_aside();
                self.print(stream, &rest);
            }
        }
        self.write();
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
        self.view.make_room(&mut self.buffer);
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

impl Drop for Display {
    /// However the display ends, the terminal stays usable.
    fn drop(&mut self) {
        self.view.abandon(&mut self.buffer);
        self.write();
    }
}

fn view(look: Look, settings: Settings) -> Box<dyn View> {
    match settings.mode {
        Mode::Live => Box::new(live::Live::new(look, settings.size, settings.keys)),
        Mode::Plain => Box::new(plain::Plain::new(look)),
        Mode::Dots => Box::new(dots::Dots::new(look)),
        Mode::Logs => Box::new(logs::Logs::new(look)),
        Mode::Report => Box::new(report::Report::with_heartbeat(look, settings.heartbeat)),
        Mode::Focus => Box::new(report::Report::of_failures(look)),
        Mode::Silent => Box::new(silent::Silent),
    }
}
