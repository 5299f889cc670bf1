//! [`Error`]: what is wrong with a Dockerfile, and in which line.

/// Longest piece of a line that a message shows.
const SHOWN: usize = 120;

/// Something that a Dockerfile may not say.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The line it begins in, counted from 1; 0 where it is no single line.
    pub line: usize,
    /// What is wrong.
    pub message: String,
    /// A way out.
    pub hint: Option<String>,
}

impl Error {
    /// An error about a line.
    pub(crate) fn new(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into(), hint: None }
    }

    /// An error about what is being read; the line is added by who knows it.
    pub(crate) fn of(message: impl Into<String>) -> Self {
        Self::new(0, message)
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same error, about a line unless it names one already.
    pub(crate) fn at(mut self, line: usize) -> Self {
        if self.line == 0 {
            self.line = line;
        }
        self
    }
}

/// The beginning of a text, for messages and names.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
