//! [`ViewError`]: why a path in a tree cannot be used. The texts are what clients look for.

use crate::snapshot::LayerId;
use std::io;

/// A path in a tree cannot be used as asked. Paths are given as they were typed, cut when long.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// Nothing is there.
    #[error("{0}: no such file or directory")]
    NotFound(String),
    /// A directory is needed and something else is there.
    #[error("path {0} is a file, not a directory")]
    NotADirectory(String),
    /// A file is needed and a directory is there.
    #[error("path {0} is a directory, not a file")]
    NotAFile(String),
    /// A file is needed and a device, pipe or socket is there: opening it could act or block.
    #[error("path {0} is not a regular file")]
    NotRegular(String),
    /// A symbolic link is needed and something else is there.
    #[error("path {0} is not a symbolic link")]
    NotALink(String),
    /// More links were followed than any honest path has.
    #[error("{0}: too many levels of symbolic links")]
    TooManyLinks(String),
    /// The path is longer than the kernel takes.
    #[error("{0}: path is longer than 4096 bytes")]
    PathTooLong(String),
    /// One name in the path is longer than file systems take.
    #[error("File name length exceeds the maximum supported 255 characters")]
    NameTooLong(String),
    /// The path holds a NUL byte.
    #[error("{0}: path contains a NUL byte")]
    Nul(String),
    /// The directory's path cannot be written down as text.
    #[error("{0}: leads to a path that is not UTF-8")]
    NotText(String),
    /// A layer of the tree is missing or damaged.
    #[error("layer {0} is not in the store")]
    Lost(LayerId),
    /// The file system refused.
    #[error("cannot read {path}: {source}")]
    Io {
        /// Path in the tree.
        path: String,
        /// Why.
        source: io::Error,
    },
}

/// The path as it can stand in a message: a hostile one may be megabytes long.
pub(crate) fn shorten(path: &str) -> String {
    const SHOWN: usize = 200;
    if path.len() <= SHOWN {
        return path.to_owned();
    }
    format!("{}...", &path[..path.floor_char_boundary(SHOWN)])
}
