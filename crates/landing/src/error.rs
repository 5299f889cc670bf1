//! [`Error`]: what can go wrong while writing to the host, with the path it is about.

use protocol::ErrorKind;
use rustix::io::Errno;
use std::io;
use std::path::PathBuf;

/// The host's directory could not be written as asked. All that was there before or is complete
/// stays.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system refused.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// Where on the host.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// What goes there could not be read, or is not what it was said to be.
    #[error("cannot read what goes to `{}`: {source}", path.display())]
    Source {
        /// Where on the host it was to go.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file meets a directory that holds something else.
    #[error("cannot replace directory `{}` with a file: it is not empty", .0.display())]
    InTheWay(PathBuf),
    /// A name that leads elsewhere, or that no file system takes.
    #[error("`{}` is no path that can be written", .0.display())]
    BadName(PathBuf),
    /// Nobody waits for it any more.
    #[error("writing to `{}` was stopped", .0.display())]
    Stopped(PathBuf),
}

impl Error {
    /// Whose error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Io { .. } | Self::Source { .. } => ErrorKind::Environment,
            Self::InTheWay(_) | Self::BadName(_) => ErrorKind::User,
            Self::Stopped(_) => ErrorKind::Cancelled,
        }
    }

    /// A way out, where there is one.
    pub fn hint(&self) -> Option<&'static str> {
        let source = match self {
            Self::InTheWay(_) => return Some("remove it, or export with `wipe`"),
            Self::Io { source, .. } => source,
            _ => return None,
        };
        match Errno::from_raw_os_error(source.raw_os_error()?) {
            Errno::NOSPC | Errno::DQUOT => Some("make room there, and run it again"),
            Errno::ROFS => Some("export to a file system that can be written"),
            Errno::ACCESS | Errno::PERM => Some("export to where you may write"),
            _ => None,
        }
    }
}

impl From<Error> for protocol::Error {
    fn from(error: Error) -> Self {
        let converted = Self::new(error.kind(), error.to_string());
        match error.hint() {
            Some(hint) => converted.with_hint(hint),
            None => converted,
        }
    }
}
