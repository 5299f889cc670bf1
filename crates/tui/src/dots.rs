//! The view of dots: a `.` for every step that ended well, an `X` for every one that failed, and
//! the output of steps on lines of their own.

use crate::display::{End, Shown, View};
use crate::logs;
use crate::look::Look;
use crate::tree;
use std::time::Duration;
use telemetry::{Change, Trace};

pub(crate) struct Dots {
    look: Look,
    /// Whether dots stand on the current line.
    open: bool,
}

impl Dots {
    pub(crate) fn new(look: Look) -> Self {
        Self { look, open: false }
    }
}

impl View for Dots {
    fn change(&mut self, trace: &Trace, change: &Change, _: u64, out: &mut String) {
        let (Change::Printed(id, lines) | Change::Ended(id, lines)) = change else { return };
        let Some(span) = trace.span(*id).filter(|span| self.look.shows(span)) else { return };
        if !lines.is_empty() && std::mem::take(&mut self.open) {
            out.push('\n');
        }
        logs::write_lines(&self.look, span, lines, out);
        if !matches!(change, Change::Ended(..)) {
            return;
        }
        let paint = self.look.paint;
        out.push_str(&if span.failure().is_some() { paint.red("X") } else { paint.green(".") });
        self.open = true;
    }

    fn tick(&mut self, _: &Trace, _: u64, _: &mut String) {}

    fn finish(&mut self, end: End<'_>, out: &mut String) -> Shown {
        if self.open {
            out.push_str("\n\n");
        }
        if !end.failed {
            return Shown::default();
        }
        tree::write_final(end, &self.look, out)
    }

    fn interval(&self) -> Option<Duration> {
        None
    }
}
