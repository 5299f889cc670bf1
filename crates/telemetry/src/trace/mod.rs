//! [`Trace`]: the spans of a session as a tree.
//!
//! Finished spans are forgotten oldest first once there are too many, failed ones last of all;
//! their children move up to the nearest span that is still known. A finished span keeps only as
//! much output as its outcome makes worth reading.

use crate::log::TailLimits;
use crate::progress::Report;
use crate::{Line, LogTail, Pace, Progress};
use protocol::{Digest, Event, Outcome, SpanId, SpanKind, Unit};
use std::collections::{BTreeSet, HashMap, VecDeque};

/// How much a trace remembers.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Finished spans that are kept.
    pub finished: usize,
    /// Failed spans that are kept beside those.
    pub failed: usize,
    /// Lines of output kept of a span that runs or failed.
    pub lines: usize,
    /// Lines of output kept of a span that ended well.
    pub finished_lines: usize,
    /// Bytes of output kept of all spans that ended well, the newest.
    pub finished_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            finished: 10_000,
            failed: 1_000,
            lines: 400,
            finished_lines: 0,
            finished_bytes: 4 << 20,
        }
    }
}

/// Bytes of output that one span keeps at most, whatever its lines.
const MAX_TAIL_BYTES: usize = 64 << 10;

/// Longest name that is kept; views cut much earlier.
const MAX_NAME_BYTES: usize = 2048;

/// One step of work.
#[derive(Debug)]
pub struct Span {
    /// Its id.
    pub id: SpanId,
    /// The nearest known span around it.
    pub parent: Option<SpanId>,
    /// Spans inside it, in the order they began.
    pub children: BTreeSet<SpanId>,
    /// What a user reads.
    pub name: String,
    /// What sort of work it is.
    pub kind: SpanKind,
    /// The call, where it is one.
    pub call: Option<Digest>,
    /// When it began, in microseconds since the Unix epoch.
    pub started: u64,
    /// When and how it ended.
    pub ended: Option<(u64, Outcome)>,
    /// How far it is.
    pub progress: Option<Progress>,
    /// The end of its output.
    pub log: LogTail,
}

impl Span {
    fn begin(id: SpanId, parent: Option<SpanId>, name: &str, kind: SpanKind, started: u64) -> Self {
        Self {
            id,
            parent: parent.filter(|parent| *parent != id),
            children: BTreeSet::new(),
            name: name[..name.floor_char_boundary(MAX_NAME_BYTES)].to_owned(),
            kind,
            call: None,
            started,
            ended: None,
            progress: None,
            log: LogTail::default(),
        }
    }

    /// Microseconds from its begin to its end, or to `now` while it runs.
    pub fn elapsed(&self, now: u64) -> u64 {
        self.ended.as_ref().map_or(now, |(at, _)| *at).saturating_sub(self.started)
    }

    /// Whether it runs.
    pub fn is_running(&self) -> bool {
        self.ended.is_none()
    }

    /// How it ended.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.ended.as_ref().map(|(_, outcome)| outcome)
    }

    /// Why it failed, if it did.
    pub fn failure(&self) -> Option<&str> {
        match self.outcome() {
            Some(Outcome::Failed(reason)) => Some(reason),
            _ => None,
        }
    }
}

/// How many spans there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Run now.
    pub running: usize,
    /// Ended well after doing something.
    pub done: usize,
    /// Ended well because they were done before.
    pub cached: usize,
    /// Failed.
    pub failed: usize,
    /// Were not waited for.
    pub cancelled: usize,
    /// Ended and are not kept any more.
    pub forgotten: usize,
}

/// What an event did to the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing: it speaks of a span that is not known.
    Nothing,
    /// A span began.
    Started(SpanId),
    /// These lines of a span's output are complete.
    Printed(SpanId, Vec<Line>),
    /// A span moved on.
    Progressed(SpanId),
    /// A span ended, after these last lines.
    Ended(SpanId, Vec<Line>),
}

/// The spans of a session.
#[derive(Debug, Default)]
pub struct Trace {
    spans: HashMap<SpanId, Span>,
    roots: BTreeSet<SpanId>,
    running: BTreeSet<SpanId>,
    failed: BTreeSet<SpanId>,
    finished: VecDeque<SpanId>,
    /// Finished spans that still have output, oldest first, and how much all of them have.
    talked: VecDeque<SpanId>,
    talk: usize,
    counts: Counts,
    limits: Limits,
}

impl Trace {
    /// An empty trace that remembers this much.
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Takes one event and says what it changed.
    pub fn apply(&mut self, event: &Event) -> Change {
        match event {
            Event::Started { id, parent, name, kind, call, at } => {
                let mut span = Span::begin(*id, *parent, name, *kind, *at);
                span.call = *call;
                self.start(span)
            }
            Event::Ended { id, outcome, at } => self.end(*id, outcome, *at),
            Event::Log { id, stream, text, at } => {
                let limits = self.running_tail();
                let span = self.spans.get_mut(id).filter(|span| span.is_running());
                let Some(span) = span else { return Change::Nothing };
                Change::Printed(*id, span.log.push(*stream, text, *at, limits))
            }
            Event::Progress { id, done, total, unit, at } => {
                let Some(span) = self.spans.get_mut(id) else { return Change::Nothing };
                let report = Report { done: *done, total: *total, unit: *unit, at: *at };
                span.progress = Some(Progress::after(span.progress, report));
                Change::Progressed(*id)
            }
        }
    }

    /// The span, while it is kept.
    pub fn span(&self, id: SpanId) -> Option<&Span> {
        self.spans.get(&id)
    }

    /// Spans without a known parent, in the order they began.
    pub fn roots(&self) -> impl Iterator<Item = &Span> {
        self.roots.iter().filter_map(|id| self.spans.get(id))
    }

    /// Spans inside a span, in the order they began.
    pub fn children<'a>(&'a self, span: &'a Span) -> impl Iterator<Item = &'a Span> {
        span.children.iter().filter_map(|id| self.spans.get(id))
    }

    /// Spans that run, in the order they began.
    pub fn running(&self) -> impl Iterator<Item = &Span> {
        self.running.iter().filter_map(|id| self.spans.get(id))
    }

    /// Spans that failed, in the order they began.
    pub fn failed(&self) -> impl Iterator<Item = &Span> {
        self.failed.iter().filter_map(|id| self.spans.get(id))
    }

    /// Spans that ended otherwise, the last to end first.
    pub fn finished(&self) -> impl Iterator<Item = &Span> {
        self.finished.iter().rev().filter_map(|id| self.spans.get(id))
    }

    /// The spans around a span, from inside out.
    pub fn around<'a>(&'a self, span: &'a Span) -> impl Iterator<Item = &'a Span> {
        let parent = |span: &Span| span.parent.and_then(|id| self.spans.get(&id));
        std::iter::successors(parent(span), move |span| parent(span))
    }

    /// How far everything is that counts bytes, each byte once: a span speaks for what is inside it.
    pub fn pace(&self, now: u64) -> Option<Pace> {
        let pace = |span: &Span| {
            let pace = span.progress.filter(|_| span.is_running())?.at(now);
            (pace.unit == Unit::Bytes).then_some(pace)
        };
        let counted = |span: &Span| self.around(span).any(|around| pace(around).is_some());
        let counting = self.running().filter_map(|span| Some((span, pace(span)?)));
        Pace::sum(counting.filter(|(span, _)| !counted(span)).map(|(_, pace)| pace))
    }

    /// Spans that failed without a failed span inside them: where to look first.
    pub fn causes(&self) -> impl Iterator<Item = &Span> {
        self.failed.iter().filter_map(|id| self.spans.get(id)).filter(|span| self.is_cause(span))
    }

    /// Whether a span that failed did so by itself, without a failed span inside it.
    pub fn is_cause(&self, span: &Span) -> bool {
        !span.children.iter().any(|child| self.failed.contains(child))
    }

    /// How many known spans are around this one.
    pub fn depth(&self, span: &Span) -> usize {
        self.around(span).count()
    }

    /// How many spans there were.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    fn start(&mut self, mut span: Span) -> Change {
        let id = span.id;
        if self.spans.contains_key(&id) {
            return Change::Nothing;
        }
        span.parent = span.parent.filter(|around| self.spans.contains_key(around));
        self.siblings(span.parent).insert(id);
        self.spans.insert(id, span);
        self.running.insert(id);
        self.counts.running += 1;
        Change::Started(id)
    }

    fn end(&mut self, id: SpanId, outcome: &Outcome, at: u64) -> Change {
        let running = self.running_tail();
        let finished = TailLimits { lines: self.limits.finished_lines, ..running };
        let Some(span) = self.spans.get_mut(&id).filter(|span| span.is_running()) else {
            return Change::Nothing;
        };
        let lines = span.log.finish(at, running);
        span.ended = Some((at, outcome.clone()));
        let failed = matches!(outcome, Outcome::Failed(_));
        span.log.shrink(if failed { running } else { finished });
        let kept = span.log.bytes();
        self.running.remove(&id);
        if failed {
            self.failed.insert(id);
        } else {
            self.finished.push_back(id);
            self.keep_talk(id, kept);
        }
        self.count(outcome);
        self.forget();
        Change::Ended(id, lines)
    }

    fn count(&mut self, outcome: &Outcome) {
        self.counts.running -= 1;
        match outcome {
            Outcome::Done => self.counts.done += 1,
            Outcome::Cached => self.counts.cached += 1,
            Outcome::Failed(_) => self.counts.failed += 1,
            Outcome::Cancelled => self.counts.cancelled += 1,
        }
    }

    /// Keeps the output of a span that ended well, and lets go of the oldest where it is too much.
    fn keep_talk(&mut self, id: SpanId, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.talked.push_back(id);
        self.talk += bytes;
        while self.talk > self.limits.finished_bytes {
            let Some(oldest) = self.talked.pop_front() else { break };
            let Some(span) = self.spans.get_mut(&oldest) else { continue };
            self.talk -= span.log.bytes();
            span.log.shrink(TailLimits { lines: 0, bytes: 0 });
        }
    }

    fn forget(&mut self) {
        while self.finished.len() > self.limits.finished {
            let Some(id) = self.finished.pop_front() else { break };
            self.remove(id);
        }
        while self.failed.len() > self.limits.failed {
            // The first failure is the one to look at: forget from the middle of the story, the
            // newest but one, not from its beginning.
            let Some(id) = self.failed.iter().rev().nth(1).copied() else { break };
            self.failed.remove(&id);
            self.remove(id);
        }
    }

    fn remove(&mut self, id: SpanId) {
        let Some(span) = self.spans.remove(&id) else { return };
        self.counts.forgotten += 1;
        if span.failure().is_none() {
            self.talk -= span.log.bytes();
        }
        self.siblings(span.parent).remove(&id);
        for child in span.children {
            if let Some(child) = self.spans.get_mut(&child) {
                child.parent = span.parent;
            }
            self.siblings(span.parent).insert(child);
        }
    }

    fn siblings(&mut self, parent: Option<SpanId>) -> &mut BTreeSet<SpanId> {
        match parent.and_then(|parent| self.spans.get_mut(&parent)) {
            Some(parent) => &mut parent.children,
            None => &mut self.roots,
        }
    }

    fn running_tail(&self) -> TailLimits {
        TailLimits { lines: self.limits.lines, bytes: MAX_TAIL_BYTES }
    }
}

#[cfg(test)]
mod tests;
