//! How the assembly of an image tells what it does, so that it can be watched and tested without a
//! session.

use graph::Span;
use protocol::{LogStream, SpanKind, Unit};
use std::sync::Arc;

/// Who is told.
pub trait Report: Send + Sync {
    /// A part of the work begins.
    fn step(&self, name: &str) -> Arc<dyn Step>;
}

/// A part of the work. Dropped without [`Step::done`] it did not succeed.
pub trait Step: Send + Sync {
    /// How far it is.
    fn progress(&self, done: u64, total: u64, unit: Unit);
    /// A piece of output, cut anywhere.
    fn log(&self, text: &str);
    /// It succeeded.
    fn done(&self);
}

impl Report for Span {
    fn step(&self, name: &str) -> Arc<dyn Step> {
        Arc::new(self.child(name, SpanKind::Work))
    }
}

impl Step for Span {
    fn progress(&self, done: u64, total: u64, unit: Unit) {
        Span::progress(self, done, Some(total), unit);
    }

    fn log(&self, text: &str) {
        Span::log(self, LogStream::Stdout, text);
    }

    fn done(&self) {
        Span::done(self);
    }
}
