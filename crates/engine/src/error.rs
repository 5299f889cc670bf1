//! Why an engine does not start.

use std::io;
use std::path::PathBuf;

/// Why an engine does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder cannot be used.
    #[error("cannot use `{path}`: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The settings file is wrong.
    #[error("`{path}`: {source}")]
    Config {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        source: config::engine::Error,
    },
    /// The filter of the log makes no sense.
    #[error("`{filter}` is no filter of a log: {reason}")]
    LogFilter {
        /// As it was given.
        filter: String,
        /// What is wrong.
        reason: String,
    },
    /// There is one already.
    #[error("an engine already runs in `{dir}` (process {pid})")]
    AlreadyRunning {
        /// The state folder.
        dir: PathBuf,
        /// The other engine, as far as it is known.
        pid: String,
    },
    /// A newer version has written the store. It is left alone.
    #[error("`{dir}` was written by a newer version of this program (format `{found}`)")]
    NewerState {
        /// The store's folder.
        dir: PathBuf,
        /// Its format.
        found: String,
    },
    /// The path of the socket does not fit into a socket address.
    #[error("the path of the socket is too long for the system: `{0}`")]
    SocketPathTooLong(PathBuf),
    /// A part of the engine cannot be made.
    #[error("{part}: {reason}")]
    Part {
        /// Which part.
        part: &'static str,
        /// Why not.
        reason: String,
    },
    /// The machine lacks something, and there is a way out.
    #[error("{reason}")]
    Unfit {
        /// What it lacks.
        reason: String,
        /// The way out.
        hint: String,
    },
}

impl Error {
    /// A part of the engine cannot be made.
    pub(crate) fn part(part: &'static str) -> impl FnOnce(&dyn std::error::Error) -> Self {
        move |error| {
            let mut reason = error.to_string();
            let mut source = error.source();
            while let Some(cause) = source {
                let text = cause.to_string();
                if !reason.contains(&text) {
                    reason.push_str(": ");
                    reason.push_str(&text);
                }
                source = cause.source();
            }
            Self::Part { part, reason }
        }
    }

    /// A part of the engine cannot be made, and there may be a way out.
    pub(crate) fn unfit(
        part: &'static str,
        error: &dyn std::error::Error,
        hint: Option<impl Into<String>>,
    ) -> Self {
        match (Self::part(part)(error), hint) {
            (Self::Part { reason, .. }, Some(hint)) => Self::Unfit { reason, hint: hint.into() },
            (plain, _) => plain,
        }
    }

    /// The way out, where there is one.
    pub(crate) fn hint(&self) -> Option<&str> {
        match self {
            Self::Unfit { hint, .. } => Some(hint),
            _ => None,
        }
    }

    /// A file or folder cannot be used.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}
