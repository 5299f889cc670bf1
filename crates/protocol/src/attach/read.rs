//! Trees and files of the host on their way to the engine.

use super::Name;
use serde::{Deserialize, Serialize};

/// Asks for a tree or one file of the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadRequest {
    /// Absolute, or relative to the client's working directory, or beginning with `~`.
    pub path: String,
    /// Whether a directory or a file is wanted; the other is an error.
    pub directory: bool,
    /// Patterns of what to take; empty takes all.
    pub include: Vec<String>,
    /// Patterns of what to leave out; these win.
    pub exclude: Vec<String>,
    /// Whether `.gitignore` files apply.
    pub gitignore: bool,
}

/// One entry of a tree, parents before children, names of one directory in byte order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Path below the root of the request, `/` between parts; empty for the root itself.
    pub path: Name,
    /// What it is.
    pub kind: EntryKind,
    /// Permission bits, set-id and sticky bits included.
    pub mode: u32,
    /// Modification time in nanoseconds since the Unix epoch.
    pub modified: i64,
    /// Size of a regular file when it was listed.
    pub size: u64,
    /// Target of a symbolic link; path of the first name of a hard link.
    pub target: Name,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EntryKind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link.
    Symlink,
    /// Another name of a file sent before.
    HardLink,
}

/// Asks for the nearest entry of a name, upwards from the working directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FindUpRequest {
    /// File or directory name.
    pub name: String,
}

/// The nearest entry, relative to the working directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FindUpReply {
    /// None when there is none.
    pub path: Option<String>,
}
