//! Looking at one path of a snapshot, with errors that name the path as the caller typed it.

use protocol::Error;
use store::{Metadata, View, ViewError};

/// Most of a path that a message shows: a hostile one may be megabytes long.
const SHOWN: usize = 200;

/// The error, about the path as it was typed.
pub(crate) fn typed(error: ViewError, path: &str) -> Error {
    let path = match path.len() {
        0..=SHOWN => path.to_owned(),
        _ => format!("{}...", &path[..path.floor_char_boundary(SHOWN)]),
    };
    let error = match error {
        ViewError::NotFound(_) => ViewError::NotFound(path),
        ViewError::NotADirectory(_) => ViewError::NotADirectory(path),
        ViewError::NotAFile(_) => ViewError::NotAFile(path),
        ViewError::NotRegular(_) => ViewError::NotRegular(path),
        other => other,
    };
    store::Error::from(error).into()
}

/// What a regular file is on disk.
pub(crate) fn regular_file(view: &View, path: &str) -> Result<Metadata, ViewError> {
    let metadata = view.stat(path)?;
    if metadata.is_directory() {
        return Err(ViewError::NotAFile(path.to_owned()));
    }
    if !metadata.is_file() {
        return Err(ViewError::NotRegular(path.to_owned()));
    }
    Ok(metadata)
}
