//! Why a command could not be run, told apart by whose mistake it is.
//!
//! A command that ran and failed is no error here: see [`crate::Exit`].

use std::io;

/// The reason of [`Error::Program`] where a file is there that the machine cannot execute: perhaps it is
/// for another kind of machine.
pub const NO_PROGRAM: &str = "it is neither a program for this machine nor a script";

/// Why a command could not be run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program is missing (127) or cannot be executed (126).
    #[error("cannot run `{program}`: {reason}")]
    Program {
        /// As it was given.
        program: String,
        /// What a shell would exit with.
        code: i32,
        /// Why.
        reason: String,
    },
    /// The working directory cannot be entered.
    #[error("cannot enter the working directory `{path}`: {source}")]
    Workdir {
        /// As it was given.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The file for a redirected stream cannot be opened or written.
    #[error("cannot redirect {stream} to `{path}`: {reason}")]
    Redirect {
        /// `stdout` or `stderr`.
        stream: &'static str,
        /// As it was given.
        path: String,
        /// Why.
        reason: String,
    },
    /// The file for the standard input cannot be opened.
    #[error("cannot read stdin from `{path}`: {reason}")]
    Stdin {
        /// As it was given.
        path: String,
        /// Why.
        reason: String,
    },
    /// Something cannot be mounted where it was asked for.
    #[error("cannot mount at `{target}`: {source}")]
    Mount {
        /// Path in the container.
        target: String,
        /// Why.
        source: io::Error,
    },
    /// The specification makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// The container could not be made.
    #[error("cannot set up the container ({stage}): {source}")]
    Setup {
        /// What was being done.
        stage: String,
        /// Why it failed.
        source: io::Error,
    },
    /// Limits are set and the host offers no control groups that could hold them.
    #[error("cannot limit {what}: {reason}")]
    Limit {
        /// The limits that cannot be set.
        what: String,
        /// Why.
        reason: String,
    },
    /// The network of containers cannot be made.
    #[error("{reason}")]
    Network {
        /// Why.
        reason: String,
        /// The way out, where there is one.
        hint: Option<String>,
    },
    /// The program that makes containers cannot make this one.
    #[error("the runtime cannot start the container: {0}")]
    Runtime(String),
    /// The process that starts containers is gone or does not answer.
    #[error("the process that starts containers {0}")]
    Zygote(String),
    /// Processes did not end although they were killed.
    #[error("the container did not end within {seconds} s after it was killed")]
    Stuck {
        /// How long was waited.
        seconds: u64,
    },
    /// The sandbox is shutting down.
    #[error("the engine is shutting down")]
    Closed,
    /// Something of the host failed.
    #[error("{action}: {source}")]
    Host {
        /// What was being done.
        action: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

impl Error {
    /// The network cannot be made.
    pub(crate) fn network(reason: impl Into<String>) -> Error {
        Error::Network { reason: reason.into(), hint: None }
    }

    /// The way out, where there is one.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Error::Network { hint, .. } => hint.as_deref(),
            _ => None,
        }
    }

    /// Puts what was being done to an error of the host.
    pub(crate) fn host(action: &'static str) -> impl Fn(io::Error) -> Error {
        move |source| Error::Host { action, source }
    }
}
