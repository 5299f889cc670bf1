//! [`Progress`]: how far an import is, and the way to stop it.

use graph::{Span, SpanOutcome};
use protocol::{Error, SpanKind, Unit};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use store::IntakeWatch;

/// How far an import is.
pub(super) struct Progress {
    /// Counts entries.
    span: Span,
    /// Counts the bytes of files that had to be read; begins with the first of them.
    read: OnceLock<Span>,
    entries: AtomicU64,
    bytes: AtomicU64,
    stopped: AtomicBool,
}

impl Progress {
    /// Tells entries on `span`, and bytes on a part of it.
    pub(super) fn new(span: Span) -> Self {
        Self {
            span,
            read: OnceLock::new(),
            entries: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
        }
    }

    /// Nobody waits for it any more.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Nothing had to be read.
    pub(super) fn mark_cached(&self) {
        self.span.mark_cached();
    }

    /// It ended with an error.
    pub(super) fn failed(&self, error: &Error) {
        for span in self.read.get().into_iter().chain([&self.span]) {
            span.end(SpanOutcome::Failed(error.message.clone()));
        }
    }

    /// It ended well.
    pub(super) fn done(&self) {
        self.read.get().into_iter().for_each(Span::done);
        self.span.done();
    }
}

impl IntakeWatch for Progress {
    fn saw(&self, entries: u64) {
        let entries = self.entries.fetch_add(entries, Ordering::Relaxed) + entries;
        self.span.progress(entries, None, Unit::Items);
    }

    fn read(&self, bytes: u64) {
        let bytes = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let read = self.read.get_or_init(|| self.span.child("read files", SpanKind::Work));
        read.progress(bytes, None, Unit::Bytes);
    }

    fn is_cancelled(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}
