//! [`Progress`]: how far an export is, told now and then, and the way to stop it.

use graph::Span;
use protocol::{SpanKind, Unit};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use store::Watch;

/// Files or bytes between two reports.
const FILES: u64 = 256;
const BYTES: u64 = 4 << 20;

/// How far an export is.
pub(super) struct Progress {
    /// Counts bytes.
    span: Span,
    /// Counts files; begins when there are many.
    counted: OnceLock<Span>,
    files: AtomicU64,
    bytes: AtomicU64,
    /// Bytes that there are; zero when that is not known.
    total: AtomicU64,
    stopped: AtomicBool,
}

impl Progress {
    /// Tells bytes on `span`, and how many files on a part of it.
    pub(super) fn new(span: Span) -> Self {
        Self {
            span,
            counted: OnceLock::new(),
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            total: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
        }
    }

    /// Says how many bytes there are.
    pub(super) fn expect(&self, bytes: u64) {
        self.total.store(bytes, Ordering::Relaxed);
    }

    /// Nobody waits for it any more.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// It ended well.
    pub(super) fn done(&self) {
        self.tell();
        self.counted.get().into_iter().for_each(Span::done);
        self.span.done();
    }

    /// Tells how far it is.
    fn tell(&self) {
        let total = Some(self.total.load(Ordering::Relaxed)).filter(|total| *total > 0);
        let files = self.files.load(Ordering::Relaxed);
        if files >= FILES {
            let counted = self.counted.get_or_init(|| self.span.child("files", SpanKind::Work));
            counted.progress(files, None, Unit::Items);
        }
        self.span.progress(self.bytes.load(Ordering::Relaxed), total, Unit::Bytes);
    }
}

impl Watch for Progress {
    fn passed(&self, files: u64, bytes: u64) -> bool {
        let before = self.files.fetch_add(files, Ordering::Relaxed);
        let before_bytes = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let counted = |before: u64, more: u64, step: u64| (before + more) / step != before / step;
        if counted(before, files, FILES) || counted(before_bytes, bytes, BYTES) {
            self.tell();
        }
        !self.is_stopped()
    }
}
