//! Secrets that the client's machine keeps, asked for when they are first needed.

use serde::{Deserialize, Serialize};

/// Longest secret.
pub const MAX_SECRET_BYTES: usize = 512_000;

/// Asks for a secret. The answer is its bytes and nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretRequest {
    /// Where it is: `env://NAME`, `file://path` or `cmd://line`.
    pub uri: String,
}
