//! What a running command prints, on its way into the record and to who watches.
//!
//! Secrets of the command are out of it already. For who watches, all secrets of the session go too, in
//! the forms they turn up in; that is done on the stream, whose pieces are cut anywhere.

use super::outcome::Capture;
use crate::services::Services;
use graph::Span;
use protocol::LogStream;
use redact::Redactor;

/// Longest combined stream that is kept beside its two parts.
const MAX_COMBINED_BYTES: usize = 64 << 10;

/// Both streams of a running command.
pub(super) struct Captures {
    pub(super) stdout: Capture,
    pub(super) stderr: Capture,
    /// Both in the order of their pieces, while they are short.
    pub(super) combined: Option<Vec<u8>>,
    shown: [Shown; 2],
}

/// A stream as it is shown.
struct Shown {
    stream: LogStream,
    redacted: redact::Stream,
    /// What is not shown yet: a character that came in part.
    text: Vec<u8>,
}

impl Captures {
    /// Of a command whose watchers must not see what `shown` finds.
    pub(super) fn new(services: &Services, shown: &Redactor) -> Self {
        let shown = |stream| Shown { stream, redacted: shown.stream(), text: vec![] };
        Self {
            stdout: Capture::new(&services.store),
            stderr: Capture::new(&services.store),
            combined: Some(vec![]),
            shown: [shown(LogStream::Stdout), shown(LogStream::Stderr)],
        }
    }

    /// The same of a command that may run for long, of which only the end is kept.
    pub(super) fn ending(services: &Services, shown: &Redactor) -> Self {
        let all = Self::new(services, shown);
        let end = || Capture::ending(&services.store);
        Self { stdout: end(), stderr: end(), combined: None, ..all }
    }

    /// Takes the next piece.
    pub(super) fn push(&mut self, stream: sandbox::Stream, bytes: &[u8], span: &Span) {
        let [stdout, stderr] = &mut self.shown;
        let (capture, shown) = match stream {
            sandbox::Stream::Stdout => (&mut self.stdout, stdout),
            sandbox::Stream::Stderr => (&mut self.stderr, stderr),
        };
        capture.push(bytes);
        match &mut self.combined {
            Some(combined) if combined.len() + bytes.len() <= MAX_COMBINED_BYTES => {
                combined.extend_from_slice(bytes);
            }
            _ => self.combined = None,
        }
        shown.push(bytes, span);
    }

    /// Shows what was held back.
    pub(super) fn end(&mut self, span: &Span) {
        for shown in &mut self.shown {
            shown.end(span);
        }
    }
}

impl Shown {
    fn push(&mut self, bytes: &[u8], span: &Span) {
        self.redacted.push(bytes, &mut self.text);
        let whole = self.text.len() - unfinished(&self.text);
        self.log(whole, span);
    }

    fn end(&mut self, span: &Span) {
        self.redacted.finish(&mut self.text);
        self.log(self.text.len(), span);
    }

    fn log(&mut self, length: usize, span: &Span) {
        if length > 0 {
            span.log(self.stream, String::from_utf8_lossy(&self.text[..length]));
            self.text.drain(..length);
        }
    }
}

/// How many bytes at the end are the beginning of a character.
fn unfinished(text: &[u8]) -> usize {
    let last = &text[text.len().saturating_sub(3)..];
    let starts = (1..=last.len()).rev();
    let cut = |length: &usize| {
        let end = &last[last.len() - length..];
        std::str::from_utf8(end)
            .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    };
    starts.into_iter().find(cut).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_that_came_in_part_waits_for_the_rest() {
        for (text, expect) in [
            (&b""[..], 0),
            (b"abc", 0),
            ("a\u{e4}".as_bytes(), 0),
            (b"a\xc3", 1),
            (b"\xe2\x82", 2),
            (b"\xf0\x9f\x98", 3),
            ("\u{1f600}".as_bytes(), 0),
            (b"\xff\xff", 0),
            (b"\x80\x80\x80", 0),
        ] {
            assert_eq!(unfinished(text), expect, "{text:?}");
        }
    }
}
