//! Secrets that the client's machine keeps, asked for when they are first needed.

use crate::Error;
use serde::{Deserialize, Serialize};

/// Longest secret.
pub const MAX_SECRET_BYTES: usize = 512_000;

/// What secrets can be read from.
const PROVIDERS: [&str; 3] = ["env", "file", "cmd"];

const FORMS: &str =
    "secrets are `env://NAME`, `file://path` and `cmd://line`; others are not supported yet";

/// Asks for a secret. The answer is its bytes and nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretRequest {
    /// Where it is: `env://NAME`, `file://path` or `cmd://line`.
    pub uri: String,
}

impl SecretRequest {
    /// The provider and what it is asked for; an error if there is no such provider. Of what may be a
    /// secret itself, because somebody typed that, the error holds three letters.
    pub fn parts(&self) -> Result<(&str, &str), Error> {
        let Some((provider, rest)) = self.uri.split_once("://") else {
            let beginning: String = self.uri.chars().take(3).collect();
            let message = format!("malformed id of a secret: \"{beginning}...\"");
            return Err(Error::user(message).with_hint(FORMS));
        };
        if !PROVIDERS.contains(&provider) {
            let message = format!("unsupported secret provider: \"{provider}\"");
            return Err(Error::user(message).with_hint(FORMS));
        }
        Ok((provider, rest))
    }
}
