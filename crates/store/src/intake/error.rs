//! [`IntakeError`]: why a directory of the host could not be taken in.

use crate::Error;
use protocol::ErrorKind;
use std::io;

/// A directory of the host could not be taken in.
#[derive(Debug, thiserror::Error)]
pub enum IntakeError {
    /// An entry of the host is to blame.
    #[error("{}: {problem}", String::from_utf8_lossy(path))]
    Entry {
        /// Path relative to the directory; empty for the directory itself.
        path: Vec<u8>,
        /// What is wrong with it.
        problem: Problem,
    },
    /// Nobody waits for the result any more.
    #[error("the import was cancelled")]
    Cancelled,
    /// The store could not take it.
    #[error(transparent)]
    Store(#[from] Error),
}

/// Why an entry of the host could not be taken in.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// It is not there.
    #[error("no such file or directory")]
    Missing,
    /// It could not be read.
    #[error("{0}")]
    Unreadable(io::Error),
    /// It is neither a file nor a directory nor a link, but this.
    #[error("is {0}, which cannot be imported")]
    Special(&'static str),
    /// It was written to each time it was read.
    #[error("the file changed while it was read")]
    Changing,
    /// The store itself lies in it.
    #[error("is the store of the engine, which cannot be imported")]
    OwnStore,
}

impl Problem {
    /// Whose problem it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Missing | Self::Special(_) | Self::OwnStore => ErrorKind::User,
            Self::Unreadable(_) | Self::Changing => ErrorKind::Environment,
        }
    }

    /// A way out, where there is one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Changing => {
                Some("run again when nothing writes to it, or leave it out with an exclude pattern")
            }
            Self::Special(_) | Self::OwnStore => Some("leave it out with an exclude pattern"),
            Self::Unreadable(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Some("make it readable, or leave it out with an exclude pattern")
            }
            Self::Unreadable(_) | Self::Missing => None,
        }
    }
}
