//! [`Look`]: which steps are shown and how they are coloured.

use crate::text::step_name;
use protocol::{Outcome, SpanKind};
use telemetry::{Span, Trace};

/// Level from which plumbing is shown too.
const INTERNAL_LEVEL: i32 = 3;

/// Level from which steps are told apart by their digests.
const DIGEST_LEVEL: i32 = 4;

/// Level from which finished steps stay expanded.
const EXPANDED_LEVEL: i32 = 5;

/// What every view needs to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) level: i32,
    pub(crate) debug: bool,
    pub(crate) paint: Paint,
}

impl Look {
    /// Whether the step is worth a line. Steps inside a hidden one are judged on their own.
    pub(crate) fn shows(&self, span: &Span) -> bool {
        let internal = span.kind == SpanKind::Internal || span.name.starts_with('_');
        !internal || self.debug || self.level >= INTERNAL_LEVEL
    }

    /// Whether steps that ended well keep their output.
    pub(crate) fn expands(&self) -> bool {
        self.debug || self.level >= EXPANDED_LEVEL
    }

    /// How many shown steps are around this one.
    pub(crate) fn depth(&self, trace: &Trace, span: &Span) -> usize {
        trace.around(span).filter(|span| self.shows(span)).count()
    }

    /// The name of a step, with the begin of its digest for who wants to know so much.
    pub(crate) fn name(&self, span: &Span) -> String {
        let name = step_name(&span.name);
        match span.call.filter(|_| self.debug || self.level >= DIGEST_LEVEL) {
            Some(call) => format!("{name} {:.8}", call.to_string()),
            None => name,
        }
    }

    /// The sign before a step.
    pub(crate) fn icon(&self, span: &Span) -> String {
        match span.outcome() {
            None => self.paint.yellow("◐"),
            Some(Outcome::Done) => self.paint.green("✔"),
            Some(Outcome::Cached) => self.paint.blue("$"),
            Some(Outcome::Failed(_)) => self.paint.red("✘"),
            Some(Outcome::Cancelled) => self.paint.faint("∅"),
        }
    }
}

/// Puts colours on text, or leaves it as it is.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    /// Whether colours are wanted.
    pub colour: bool,
}

impl Paint {
    /// Weighty.
    pub fn bold(&self, text: &str) -> String {
        self.with("1", text)
    }

    /// Of little weight.
    pub fn faint(&self, text: &str) -> String {
        self.with("2", text)
    }

    /// Failed.
    pub fn red(&self, text: &str) -> String {
        self.with("31", text)
    }

    /// Done.
    pub fn green(&self, text: &str) -> String {
        self.with("32", text)
    }

    /// Running, or a warning.
    pub fn yellow(&self, text: &str) -> String {
        self.with("33", text)
    }

    /// Done before.
    pub fn blue(&self, text: &str) -> String {
        self.with("34", text)
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.colour && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}
