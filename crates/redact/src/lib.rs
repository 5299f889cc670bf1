//! Takes secrets out of text: every place where one stands becomes `***`.
//!
//! There are two ways to look for a secret. What programs read ([`Redactor::plain`]) loses the secret
//! as it is and nothing else, because a value that is changed further may be wrong. What people look
//! at ([`Redactor::shown`]) also loses each longer line of it and the forms in which secrets commonly
//! turn up in logs: base64, hex, URL and JSON. White space around a secret is no part of it.
//!
//! A [`Stream`] works on pieces that are cut anywhere: it holds back what may be the beginning of a
//! secret and nothing more. [`Known`] is a set of secrets that grows while text is shown.
//!
//! This crate reads and writes nothing and depends on nothing. Its matcher is its own: a published one
//! does not say how much of a piece may still become a match, and that is what decides whether a
//! log line appears at once.

mod automaton;
mod forms;
mod known;
mod stream;

pub use known::Known;
pub use stream::Stream;

use automaton::Automaton;
use std::borrow::Cow;
use std::sync::Arc;

/// What stands in the place of a secret.
pub const MARK: &str = "***";
/// Shorter secrets are not looked for: they would be found everywhere.
pub const SHORTEST: usize = 4;
/// Shorter lines of a longer secret are not looked for.
const SHORTEST_LINE: usize = 8;
/// Longer secrets are looked for as they are and line by line only: the tables for their forms would
/// take more memory than the forms are worth.
const LONGEST_WITH_FORMS: usize = 16 << 10;

/// Finds secrets in text. Clones are the same.
#[derive(Clone)]
pub struct Redactor(Option<Arc<Automaton>>);

impl Redactor {
    /// Finds nothing.
    pub fn none() -> Self {
        Self(None)
    }

    /// Finds secrets as they are.
    pub fn plain<'a>(secrets: impl IntoIterator<Item = &'a [u8]>) -> Self {
        Self::of(secrets.into_iter().map(|secret| secret.trim_ascii().to_vec()))
    }

    /// Finds secrets as they are, their lines, and their base64, hex, URL and JSON forms.
    pub fn shown<'a>(secrets: impl IntoIterator<Item = &'a [u8]>) -> Self {
        Self::of(secrets.into_iter().flat_map(shown))
    }

    fn of(patterns: impl Iterator<Item = Vec<u8>>) -> Self {
        let long_enough = patterns.filter(|pattern| pattern.len() >= SHORTEST);
        let mut automaton = Automaton::default();
        long_enough.for_each(|pattern| automaton.add(&pattern));
        if automaton.is_empty() {
            return Self::none();
        }
        automaton.link();
        Self(Some(Arc::new(automaton)))
    }

    /// Whether nothing is looked for.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The bytes without secrets.
    pub fn bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let finds = self.0.as_ref().is_some_and(|automaton| automaton.finds_any(bytes));
        if !finds {
            return Cow::Borrowed(bytes);
        }
        let (mut stream, mut clean) = (self.stream(), Vec::with_capacity(bytes.len()));
        stream.push(bytes, &mut clean);
        stream.finish(&mut clean);
        Cow::Owned(clean)
    }

    /// The text without secrets.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(clean) => Cow::Owned(String::from_utf8_lossy(&clean).into_owned()),
        }
    }

    /// Begins a text that comes in pieces.
    pub fn stream(&self) -> Stream {
        Stream::new(self.0.clone())
    }
}

/// Whether a secret is too short to be looked for. One of white space alone, or empty, is.
pub fn is_too_short(secret: &[u8]) -> bool {
    secret.trim_ascii().len() < SHORTEST
}

/// All that is looked for where people look.
fn shown(secret: &[u8]) -> Vec<Vec<u8>> {
    let whole = secret.trim_ascii();
    if whole.len() < SHORTEST {
        return vec![];
    }
    let mut patterns = vec![whole.to_vec()];
    let lines = whole.split(|byte| matches!(byte, b'\n' | b'\r')).map(<[u8]>::trim_ascii);
    patterns.extend(lines.filter(|line| line.len() >= SHORTEST_LINE).map(<[u8]>::to_vec));
    if whole.len() <= LONGEST_WITH_FORMS {
        patterns.extend(forms::all(whole));
    }
    patterns.sort_unstable();
    patterns.dedup();
    patterns
}

#[cfg(test)]
mod tests;
