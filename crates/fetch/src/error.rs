//! What can go wrong with a download. Every message names the address.

use std::io;
use std::path::PathBuf;

/// A download that failed for good.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server does not have it.
    #[error("`{url}`: not found")]
    NotFound {
        /// The address.
        url: String,
    },
    /// The server refused.
    #[error("`{url}`: the server answered with status {}", with_reason(*status))]
    Status {
        /// The address.
        url: String,
        /// What the server answered.
        status: u16,
    },
    /// The bytes are not those that were expected.
    #[error(
        "`{url}`: got other bytes than the archive's index says (sha256 {found}, not {expected})"
    )]
    Digest {
        /// The address.
        url: String,
        /// The digest that was expected.
        expected: String,
        /// The digest of what came.
        found: String,
    },
    /// There are more or fewer bytes than were expected.
    #[error("`{url}`: got {found} bytes, not {expected}")]
    Size {
        /// The address.
        url: String,
        /// How many there should be.
        expected: u64,
        /// How many there are, as far as was read.
        found: u64,
    },
    /// A document that should be small is not.
    #[error("`{url}`: larger than {limit} bytes")]
    TooLarge {
        /// The address.
        url: String,
        /// The limit.
        limit: u64,
    },
    /// The server cannot be reached.
    #[error("`{url}`: cannot connect: {reason}")]
    Connect {
        /// The address.
        url: String,
        /// What the system says.
        reason: String,
    },
    /// The connection broke or stalled.
    #[error("`{url}`: the connection broke: {reason}")]
    Broken {
        /// The address.
        url: String,
        /// What the system says.
        reason: String,
    },
    /// An https address on a machine without certificates of authorities.
    #[error("`{url}`: this machine has no CA certificates, so https cannot be used: {reason}")]
    Certificates {
        /// The address.
        url: String,
        /// What the TLS library says.
        reason: String,
    },
    /// The address or the proxy makes no sense.
    #[error("`{url}`: {reason}")]
    Address {
        /// The address.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A local file cannot be read or written.
    #[error("`{url}`: `{}`: {source}", path.display())]
    Io {
        /// The address.
        url: String,
        /// The local file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl Error {
    /// Whether another try may fare better.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::Broken { .. } => true,
            Self::Status { status, .. } => matches!(status, 408 | 429 | 500..=599),
            _ => false,
        }
    }
}

/// A status with the words that belong to it.
fn with_reason(status: u16) -> String {
    let known = reqwest::StatusCode::from_u16(status).ok();
    match known.and_then(|status| status.canonical_reason()) {
        Some(reason) => format!("{status} {reason}"),
        None => status.to_string(),
    }
}

/// The innermost cause, which says most, and is often hidden behind several "error sending".
pub(crate) fn cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
