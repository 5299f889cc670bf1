//! Credentials that the client's own git would use, asked for when a server wants some and none were given.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Asks what to log in with at a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitCredentialRequest {
    /// `http` or `https`.
    pub protocol: String,
    /// The server, with its port if that is not the usual one.
    pub host: String,
    /// Path of the repository.
    pub path: String,
    /// The user, where the url names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitCredentialReply {
    /// None when nothing is known of the server.
    pub credential: Option<GitCredential>,
}

/// What a server wants to see. Never printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitCredential {
    /// Name of the user.
    pub username: String,
    /// Password or token.
    pub password: String,
}

impl fmt::Debug for GitCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GitCredential")
    }
}
