//! The view of reports: while work runs only what somebody waits for, the tree at the end.

use crate::display::{End, Shown, View};
use crate::look::Look;
use crate::text::{clean, duration, progress, short_name};
use crate::tree;
use protocol::LogStream;
use std::fmt::Write as _;
use std::time::Duration;
use telemetry::{Change, Line, Trace};

/// Most running steps that a sign of life names.
const MAX_NAMES: usize = 4;

pub(crate) struct Report {
    look: Look,
    /// How often a sign of life is given.
    heartbeat: Option<Duration>,
    only_failures: bool,
    began: Option<u64>,
}

impl Report {
    /// A report at every end, with signs of life before.
    pub(crate) fn with_heartbeat(look: Look, heartbeat: Option<Duration>) -> Self {
        Self { look, heartbeat, only_failures: false, began: None }
    }

    /// A report of failures only.
    pub(crate) fn of_failures(look: Look) -> Self {
        let level = look.level.min(0);
        let look = Look { level, debug: false, ..look };
        Self { look, heartbeat: None, only_failures: true, began: None }
    }
}

impl View for Report {
    fn change(&mut self, _: &Trace, change: &Change, now: u64, out: &mut String) {
        self.began.get_or_insert(now);
        let (Change::Printed(_, lines) | Change::Ended(_, lines)) = change else { return };
        let waited_for = |line: &&Line| line.stream == LogStream::Notice && !self.only_failures;
        for line in lines.iter().filter(waited_for) {
            let _ = writeln!(out, "[ci-tool] {}", clean(&line.text, self.look.paint.colour));
        }
    }

    fn tick(&mut self, trace: &Trace, now: u64, out: &mut String) {
        let Some(began) = self.began.filter(|_| self.heartbeat.is_some()) else { return };
        let steps: Vec<_> = trace.running().filter(|span| self.look.shows(span)).collect();
        if steps.is_empty() || now <= began {
            return;
        }
        let steps_running = match steps.len() {
            1 => "1 step running".to_owned(),
            count => format!("{count} steps running"),
        };
        let _ = write!(out, "[ci-tool] {} elapsed · {steps_running}: ", duration(now - began));
        let names: Vec<String> = steps
            .iter()
            .take(MAX_NAMES)
            .map(|span| {
                let far = span.progress.map(|far| progress(&far.at(now)) + ", ");
                let (name, time) = (short_name(&span.name), duration(span.elapsed(now)));
                format!("{name} ({}{time})", far.unwrap_or_default())
            })
            .collect();
        out.push_str(&names.join(", "));
        if steps.len() > MAX_NAMES {
            let _ = write!(out, " (+{} more)", steps.len() - MAX_NAMES);
        }
        out.push('\n');
    }

    fn finish(&mut self, end: End<'_>, out: &mut String) -> Shown {
        if self.only_failures && end.trace.causes().next().is_none() {
            return Shown::default();
        }
        tree::write_final(end, &self.look, out)
    }

    fn interval(&self) -> Option<Duration> {
        self.heartbeat
    }
}
