//! The view of logs: lines of output and nothing else, each after the step it comes from.

use crate::display::{End, Shown, View};
use crate::look::Look;
use crate::text::{clean, cut, step_name};
use protocol::SpanId;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::time::Duration;
use telemetry::{Change, Line, Span, Trace};

/// Columns for the name of the step.
const NAME_COLUMNS: usize = 40;

pub(crate) struct Logs {
    look: Look,
    /// Steps whose output was printed.
    printed: HashSet<SpanId>,
}

impl Logs {
    pub(crate) fn new(look: Look) -> Self {
        Self { look, printed: HashSet::new() }
    }
}

impl View for Logs {
    fn change(&mut self, trace: &Trace, change: &Change, _: u64, out: &mut String) {
        let (Change::Printed(id, lines) | Change::Ended(id, lines)) = change else { return };
        let Some(span) = trace.span(*id).filter(|span| self.look.shows(span)) else { return };
        if !lines.is_empty() {
            self.printed.insert(*id);
        }
        write_lines(&self.look, span, lines, out);
    }

    fn tick(&mut self, _: &Trace, _: u64, _: &mut String) {}

    fn finish(&mut self, end: End<'_>, _: &mut String) -> Shown {
        let output = end.trace.causes().any(|span| self.printed.contains(&span.id));
        Shown { reasons: vec![], output }
    }

    fn interval(&self) -> Option<Duration> {
        None
    }
}

/// Writes lines of a step's output, each after the step's name.
pub(crate) fn write_lines(look: &Look, span: &Span, lines: &[Line], out: &mut String) {
    let name = look.paint.faint(&cut(&step_name(&span.name), NAME_COLUMNS));
    for line in lines {
        let _ = writeln!(out, "{name} | {}", clean(&line.text, look.paint.colour));
    }
}
