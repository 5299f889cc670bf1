//! Directories that a client hands over, so that their bytes need not travel on a stream.
//!
//! The engine asks with an [`OpenRequest`] that carries a token. A client whose rights are at least
//! the engine's opens the directory, dials the engine's socket once more with the token
//! ([`crate::session::Purpose::HandOver`]) and sends the open directory there, as one message of one
//! byte with one descriptor. Any other client answers that it does not, and the engine asks for
//! frames instead. A descriptor cannot pass through a forwarded socket: that too is answered so.

use super::write::Writing;
use serde::{Deserialize, Serialize};

/// Asks for an open directory of the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenRequest {
    /// Absolute, or relative to the client's working directory, or beginning with `~`.
    pub path: String,
    /// What is going to be done with it.
    pub purpose: OpenFor,
    /// What the client shows when it hands the directory over.
    pub token: String,
}

/// What is going to be done with a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OpenFor {
    /// It is read. It must be there.
    Read {
        /// Whether `.gitignore` files apply.
        gitignore: bool,
    },
    /// It is written into, or it is the directory of a file that is written. It is made with its
    /// parents where it is missing.
    Write(Writing),
}

/// The answer to an [`OpenRequest`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenReply {
    /// Whether the directory is on its way; if not, its files can be asked for as frames.
    pub handed: bool,
    /// Absolute path of the directory, or of the file in it that is to be written, without links.
    pub path: String,
    /// Whether the directory was made for this.
    pub made: bool,
    /// User and group that the client runs as.
    pub owner: (u32, u32),
    /// `.gitignore` files above the directory, from the top of its repository down, when they were
    /// asked for. None when it is in no repository.
    pub ignores: Option<Vec<IgnoreFile>>,
}

/// A `.gitignore` file of a directory above the one that was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IgnoreFile {
    /// Path from the directory of this file down to the one that was asked for, `/` between names.
    pub below: String,
    /// What it says.
    pub text: String,
}
