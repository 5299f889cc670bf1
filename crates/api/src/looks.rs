//! Looking at one path of a snapshot, with errors that name the path as the caller typed it.

use protocol::Error;
use store::{Entry, Metadata, View, ViewError};

/// Most of a path that a message shows: a hostile one may be megabytes long.
const SHOWN: usize = 200;

/// The path as it can stand in a message.
pub(crate) fn shown(path: &str) -> String {
    match path.len() {
        0..=SHOWN => path.to_owned(),
        _ => format!("{}...", &path[..path.floor_char_boundary(SHOWN)]),
    }
}

/// The error, about the path as it was typed.
pub(crate) fn typed(error: ViewError, path: &str) -> Error {
    let path = shown(path);
    let error = match error {
        ViewError::NotFound(_) => ViewError::NotFound(path),
        ViewError::NotADirectory(_) => ViewError::NotADirectory(path),
        ViewError::NotAFile(_) => ViewError::NotAFile(path),
        ViewError::NotRegular(_) => ViewError::NotRegular(path),
        other => other,
    };
    store::Error::from(error).into()
}

/// The name of an entry, with a slash behind that of a directory where callers expect it.
pub(crate) fn marked(entry: &Entry, marks_directories: bool) -> String {
    let slash = if marks_directories && entry.metadata.is_directory() { "/" } else { "" };
    format!("{}{slash}", entry.name)
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
