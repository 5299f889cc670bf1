//! Logins for registries that the client's machine keeps, in files and in programs that only the
//! client can ask.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Asks for the login for a registry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoginRequest {
    /// The registry by its host, e.g. `localhost:5000`.
    pub registry: String,
}

/// The login, if there is one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoginReply {
    /// None when nothing is known of the registry.
    pub login: Option<Login>,
}

/// What a registry wants to see. Never printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Login {
    /// A user and a password or an access token in its place.
    Password {
        /// Name of the user.
        username: String,
        /// The password.
        password: String,
    },
    /// A token that is changed for short-lived ones.
    IdentityToken(String),
    /// A token that is sent as it is.
    Bearer(String),
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login")
    }
}
