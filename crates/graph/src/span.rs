//! [`Span`]: how an op reports what it does. A span ends once, at the latest when it is dropped.
//!
//! Nobody may listen: then a span costs a flag, and nothing is formatted.

use crate::{Digest, Error, Event, ExecFailure, LogStream, SpanId, SpanKind, Unit};
use protocol::Outcome;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Where the events of a session go.
pub trait EventSink: Send + Sync {
    /// Takes an event; must not block.
    fn emit(&self, event: Event);
    /// Whether anybody listens; events are not even made otherwise.
    fn enabled(&self) -> bool {
        true
    }
    /// A text for people, without what must not be shown. Events are the sink's own to look through;
    /// this is for errors, which take another way, and for texts before they are cut.
    fn conceal(&self, text: String) -> String {
        text
    }
}

/// A piece of work that a user can watch. Clones are the same span.
#[derive(Clone)]
pub struct Span(Arc<Inner>);

struct Inner {
    id: SpanId,
    source: SpanSource,
    /// Whether the start was told, so that the end is told too.
    live: bool,
    cached: AtomicBool,
    ended: AtomicBool,
    reports: Mutex<Reports>,
}

/// How often progress is told at most, in microseconds: work reports after every few kilobytes, and
/// nobody can look that often.
const TELL_EVERY: u64 = 100_000;

/// What was told of the progress of a span.
#[derive(Default)]
struct Reports {
    /// When it was told last.
    told: u64,
    /// What is not told yet.
    pending: Option<Event>,
}

/// Makes the spans of one session: the sink and the engine's counter.
#[derive(Clone)]
pub(crate) struct SpanSource {
    sink: Arc<dyn EventSink>,
    counter: Arc<AtomicU64>,
}

/// What a new span is about.
pub(crate) struct SpanStart {
    pub(crate) parent: Option<SpanId>,
    pub(crate) kind: SpanKind,
    pub(crate) call: Option<Digest>,
}

impl SpanSource {
    pub(crate) fn new(sink: Arc<dyn EventSink>, counter: Arc<AtomicU64>) -> Self {
        Self { sink, counter }
    }

    /// A text without what must not be shown.
    pub(crate) fn conceal(&self, text: String) -> String {
        self.sink.conceal(text)
    }

    /// Takes out of an error what must not be shown.
    pub(crate) fn conceal_in(&self, error: &mut Error) {
        let conceal = |text: &mut String| *text = self.sink.conceal(std::mem::take(text));
        conceal(&mut error.message);
        error.hints.iter_mut().for_each(conceal);
        if let Some(exec) = &mut error.exec {
            let ExecFailure { cmd, stdout, stderr, .. } = &mut **exec;
            cmd.iter_mut().chain([stdout, stderr]).for_each(conceal);
        }
    }

    /// Begins a span; `name` is asked for only when somebody listens.
    pub(crate) fn start(&self, start: SpanStart, name: impl FnOnce() -> String) -> Span {
        let id = SpanId(self.counter.fetch_add(1, Ordering::Relaxed) + 1);
        let live = self.sink.enabled();
        if live {
            let SpanStart { parent, kind, call } = start;
            self.sink.emit(Event::Started { id, parent, name: name(), kind, call, at: now() });
        }
        Span(Arc::new(Inner {
            id,
            source: self.clone(),
            live,
            cached: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            reports: Mutex::default(),
        }))
    }
}

impl Span {
    /// The name of the span among those of the engine.
    pub fn id(&self) -> SpanId {
        self.0.id
    }

    /// Shows a piece of output.
    pub fn log(&self, stream: LogStream, text: impl Into<String>) {
        if self.0.live {
            let event = Event::Log { id: self.0.id, stream, text: text.into(), at: now() };
            self.0.source.sink.emit(event);
        }
    }

    /// Says how far the work is. May be called as often as is convenient.
    pub fn progress(&self, done: u64, total: Option<u64>, unit: Unit) {
        if self.0.live {
            let at = now();
            self.0.report(Event::Progress { id: self.0.id, done, total, unit, at }, at);
        }
    }

    /// Begins a part of this work. Dropped without an end it counts as cancelled.
    pub fn child(&self, name: impl Into<String>, kind: SpanKind) -> Span {
        let start = SpanStart { parent: Some(self.0.id), kind, call: None };
        self.0.source.start(start, || name.into())
    }

    /// Says that nothing had to run; the end will be [`Outcome::Cached`] instead of done.
    pub fn mark_cached(&self) {
        self.0.cached.store(true, Ordering::Relaxed);
    }

    /// Ends the span as done.
    pub fn done(&self) {
        self.end(Outcome::Done);
    }

    /// Ends the span; only the first end counts.
    pub fn end(&self, outcome: Outcome) {
        self.0.end(outcome);
    }
}

impl Inner {
    /// Tells progress, or keeps it until it is time to tell or the span ends.
    fn report(&self, event: Event, at: u64) {
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        if at.saturating_sub(reports.told) < TELL_EVERY {
            reports.pending = Some(event);
            return;
        }
        *reports = Reports { told: at, pending: None };
        self.source.sink.emit(event);
    }

    fn end(&self, outcome: Outcome) {
        if !self.live || self.ended.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(event) = reports.pending.take() {
            self.source.sink.emit(event);
        }
        drop(reports);
        let cached = self.cached.load(Ordering::Relaxed) && outcome == Outcome::Done;
        let outcome = if cached { Outcome::Cached } else { outcome };
        self.source.sink.emit(Event::Ended { id: self.id, outcome, at: now() });
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.end(Outcome::Cancelled);
    }
}

/// Microseconds since the Unix epoch.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Heard(Mutex<Vec<String>>);

    impl EventSink for Heard {
        fn emit(&self, event: Event) {
            let text = match event {
                Event::Progress { done, .. } => done.to_string(),
                Event::Ended { .. } => "end".into(),
                _ => return,
            };
            self.0.lock().unwrap().push(text);
        }
    }

    #[test]
    fn progress_is_told_now_and_then_and_at_the_end() {
        let heard = Arc::new(Heard::default());
        let source = SpanSource::new(heard.clone(), Arc::default());
        let start = SpanStart { parent: None, kind: SpanKind::Work, call: None };
        let span = source.start(start, || "pull".into());
        for done in 0..=10_000 {
            span.progress(done, None, Unit::Bytes);
        }
        span.done();
        let heard = heard.0.lock().unwrap();
        assert_eq!(
            (heard[0].as_str(), &heard[heard.len() - 2..]),
            ("0", &["10000".to_owned(), "end".into()][..])
        );
        assert!(heard.len() < 1_000, "{}", heard.len());
    }
}
