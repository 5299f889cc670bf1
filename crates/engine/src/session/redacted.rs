//! [`Redacted`]: the events of a session, without its secrets.
//!
//! Output of commands is looked through where it is one stream, before it comes here in pieces. This is
//! for everything else that people read: names of spans, reasons of failures, words of the engine.

use graph::EventSink;
use protocol::{Event, Outcome};
use redact::{Known, Redactor};
use std::borrow::Cow;
use std::sync::Arc;

/// Where the events of a session go first.
pub(super) struct Redacted {
    /// Where they go next.
    pub(super) events: Arc<dyn EventSink>,
    /// The secrets of the session.
    pub(super) known: Arc<Known>,
}

impl EventSink for Redacted {
    fn emit(&self, mut event: Event) {
        let redactor = self.known.redactor();
        match &mut event {
            Event::Started { name: text, .. }
            | Event::Log { text, .. }
            | Event::Ended { outcome: Outcome::Failed(text), .. } => clean(&redactor, text),
            _ => {}
        }
        self.events.emit(event);
    }

    fn enabled(&self) -> bool {
        self.events.enabled()
    }

    fn conceal(&self, mut text: String) -> String {
        clean(&self.known.redactor(), &mut text);
        text
    }
}

fn clean(redactor: &Redactor, text: &mut String) {
    if let Cow::Owned(clean) = redactor.text(text) {
        *text = clean;
    }
}
