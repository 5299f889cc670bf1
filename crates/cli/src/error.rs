//! [`Error`]: why a command did not succeed, as the command line tells it.
//!
//! Errors of the engine and of the client come in as [`protocol::Error`] and keep their kind, hints
//! and failed command. What was typed wrongly carries the usage text of its command.

use protocol::{ErrorKind, ExecFailure};
use std::fmt;
use tui::Shown;

/// Why a command did not succeed.
#[derive(Debug)]
pub(crate) struct Error {
    /// What sort of error it is.
    pub(crate) kind: Kind,
    /// What went wrong.
    pub(crate) message: String,
    /// Ways out.
    pub(crate) hints: Vec<String>,
    /// What is known of a failed command.
    pub(crate) exec: Option<Box<ExecFailure>>,
    /// What of it the display has shown.
    pub(crate) shown: Shown,
}

/// Sorts of errors that are told differently.
#[derive(Debug)]
pub(crate) enum Kind {
    /// What was typed is wrong; this is how the command is used.
    Usage {
        /// The usage line of the command.
        usage: String,
    },
    /// The work failed.
    Failed(ErrorKind),
    /// Somebody pressed Ctrl-C, and was told so already.
    Interrupted,
    /// Nobody reads our output any more.
    BrokenPipe,
}

impl Error {
    fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hints: vec![], exec: None, shown: Shown::default() }
    }

    /// What was typed is wrong.
    pub(crate) fn usage(message: impl Into<String>, usage: impl Into<String>) -> Self {
        Self::new(Kind::Usage { usage: usage.into() }, message)
    }

    /// The request or what it names is wrong.
    pub(crate) fn user(message: impl Into<String>) -> Self {
        protocol::Error::user(message).into()
    }

    /// The surroundings are in the way.
    pub(crate) fn environment(message: impl Into<String>) -> Self {
        protocol::Error::environment(message).into()
    }

    /// A part of the program that is still to come.
    pub(crate) fn not_available(what: impl fmt::Display) -> Self {
        let message = format!("{what} is not available yet");
        protocol::Error::new(ErrorKind::NotImplemented, message).into()
    }

    /// Somebody pressed Ctrl-C.
    pub(crate) fn interrupted() -> Self {
        Self::new(Kind::Interrupted, "interrupted")
    }

    /// The same failure where the exit code of a command in a container does not become ours.
    #[must_use]
    pub(crate) fn with_plain_exit(mut self) -> Self {
        if matches!(self.kind, Kind::Failed(ErrorKind::Exec)) {
            self.kind = Kind::Failed(ErrorKind::User);
        }
        self
    }

    /// Adds a way out.
    #[must_use]
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Says the ways out in other words.
    #[must_use]
    pub(crate) fn with_hints_as(mut self, words: impl Fn(&str) -> String) -> Self {
        self.hints = self.hints.iter().map(|hint| words(hint)).collect();
        self
    }

    /// Says what was going on.
    #[must_use]
    pub(crate) fn within(mut self, what: &str) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<protocol::Error> for Error {
    fn from(error: protocol::Error) -> Self {
        if error.kind == ErrorKind::Cancelled {
            return Self { message: error.message, ..Self::interrupted() };
        }
        Self {
            hints: error.hints,
            exec: error.exec,
            ..Self::new(Kind::Failed(error.kind), error.message)
        }
    }
}

impl From<client::Error> for Error {
    fn from(error: client::Error) -> Self {
        protocol::Error::from(error).into()
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self::new(Kind::BrokenPipe, "nobody reads the output");
        }
        Self::environment(error.to_string())
    }
}
