//! [`Error`]: what went wrong, whose it is, and what to do about it.
//!
//! Libraries have error types of their own and turn them into this one where they meet the graph.
//! The kind survives the wire; the command line maps it to an exit code in one place.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Whose error it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorKind {
    /// The request or what it names is wrong; the user mends it.
    User,
    /// The machine, the network or a service around us is in the way.
    Environment,
    /// A command ran in a container and failed.
    Exec,
    /// A field of the schema that does not work yet.
    NotImplemented,
    /// Something that was made before is gone or damaged; asking again makes it anew.
    Lost,
    /// Nobody waits for the answer any more.
    Cancelled,
    /// A defect of ours.
    Internal,
}

/// An error as it crosses the wire.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Error {
    /// Whose error it is.
    pub kind: ErrorKind,
    /// One sentence without a full stop.
    pub message: String,
    /// Ways out, each one sentence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// Response path of the field that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<PathSegment>,
    /// What is known of a failed command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<Box<ExecFailure>>,
}

/// One step of a response path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PathSegment {
    /// A response key.
    Key(String),
    /// An index in a list.
    Index(usize),
}

/// A command that ended in an unwanted way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecFailure {
    /// The final argument list, entrypoint included.
    pub cmd: Vec<String>,
    /// Exit code; 128 + n after signal n.
    pub exit_code: i32,
    /// End of the standard output.
    pub stdout: String,
    /// End of the standard error.
    pub stderr: String,
}

impl Error {
    /// An error of this kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hints: vec![], path: vec![], exec: None }
    }

    /// The request is wrong.
    pub fn user(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::User, message)
    }

    /// The surroundings are in the way.
    pub fn environment(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Environment, message)
    }

    /// A defect of ours.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// Adds a way out.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Sets what is known of the failed command.
    #[must_use]
    pub fn with_exec(mut self, exec: ExecFailure) -> Self {
        self.kind = ErrorKind::Exec;
        self.exec = Some(Box::new(exec));
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
