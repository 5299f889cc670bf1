//! What can go wrong with a registry. Every message names the image or blob, and where there is a
//! way out, [`Error::hint`] says it.

use crate::Digest;
use crate::wire::is_loopback;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// An exchange with a registry that failed for good.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name of an image makes no sense.
    #[error("`{text}` is no name of an image: {reason}")]
    Reference {
        /// The name.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The registry does not have it.
    #[error("`{what}`: not found in the registry")]
    NotFound {
        /// The image or blob.
        what: String,
    },
    /// The registry wants to know who asks, and what was said did not satisfy it.
    #[error("`{what}`: `{registry}` asks for a login: {reason}")]
    Unauthorized {
        /// The image or blob.
        what: String,
        /// The registry.
        registry: String,
        /// What was tried.
        reason: String,
    },
    /// The registry knows who asks and refuses.
    #[error("`{what}`: `{registry}` refuses access{}", said(message))]
    Denied {
        /// The image or blob.
        what: String,
        /// The registry.
        registry: String,
        /// What the registry says; may be empty.
        message: String,
    },
    /// Too many requests were made.
    #[error("`{what}`: the rate limit of `{registry}` is reached{}", again(*after))]
    RateLimit {
        /// The image or blob.
        what: String,
        /// The registry.
        registry: String,
        /// When to ask again, if the registry says so.
        after: Option<Duration>,
    },
    /// The registry gave another answer than one that is of use.
    #[error("`{what}`: `{registry}` answered {status}{}", said(message))]
    Status {
        /// The image or blob.
        what: String,
        /// The registry.
        registry: String,
        /// What it answered.
        status: u16,
        /// What it says; may be empty.
        message: String,
        /// When to ask again, if the registry says so.
        after: Option<Duration>,
    },
    /// An answer that breaks the rules of registries.
    #[error("`{what}`: `{registry}` gave an answer that makes no sense: {reason}")]
    Answer {
        /// The image or blob.
        what: String,
        /// The registry.
        registry: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The bytes are not those that were asked for.
    #[error("`{what}`: got other bytes than asked for ({found}, not {expected})")]
    Digest {
        /// The image or blob.
        what: String,
        /// The digest that was expected.
        expected: Digest,
        /// The digest of what came.
        found: Digest,
    },
    /// There are more or fewer bytes than were expected.
    #[error("`{what}`: got {found} bytes, not {expected}")]
    Size {
        /// The image or blob.
        what: String,
        /// How many there should be.
        expected: u64,
        /// How many there are, as far as is known.
        found: u64,
    },
    /// A document that should be small is not.
    #[error("`{what}`: larger than {limit} bytes")]
    TooLarge {
        /// The image or blob.
        what: String,
        /// The limit.
        limit: u64,
    },
    /// The registry cannot be reached.
    #[error("`{what}`: cannot connect to `{host}`: {reason}")]
    Connect {
        /// The image or blob.
        what: String,
        /// Who was called.
        host: String,
        /// What the system says.
        reason: String,
    },
    /// The connection broke.
    #[error("`{what}`: the connection to `{host}` broke: {reason}")]
    Broken {
        /// The image or blob.
        what: String,
        /// Who was called.
        host: String,
        /// What the system says.
        reason: String,
    },
    /// Nothing came for too long.
    #[error("`{what}`: `{host}` has sent nothing for {} s", seconds(*waited))]
    Stalled {
        /// The image or blob.
        what: String,
        /// Who was called.
        host: String,
        /// How long.
        waited: Duration,
    },
    /// The registry's certificate is not trusted, or this machine trusts nobody.
    #[error("`{what}`: the certificate of `{host}` cannot be verified: {reason}")]
    Certificate {
        /// The image or blob.
        what: String,
        /// Who was called.
        host: String,
        /// What the TLS library says.
        reason: String,
    },
    /// Credentials cannot be found out.
    #[error("credentials of `{registry}`: {reason}")]
    Credentials {
        /// The registry.
        registry: String,
        /// What is wrong.
        reason: String,
    },
    /// A file with credentials cannot be read.
    #[error("`{}`: {reason}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The bytes that are to be pushed cannot be read.
    #[error("`{what}`: cannot be read: {source}")]
    Source {
        /// The blob.
        what: String,
        /// What the system says.
        source: io::Error,
    },
    /// Settings of a registry make no sense.
    #[error("settings of the registry `{registry}`: {reason}")]
    Settings {
        /// The registry.
        registry: String,
        /// What is wrong.
        reason: String,
    },
}

impl Error {
    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::NotFound { .. } => {
                "check the name; a private image looks like this to who is not logged in".to_owned()
            }
            Self::Unauthorized { registry, .. } | Self::Denied { registry, .. } => format!(
                "log in with `docker login {registry}`, use `withRegistryAuth`, or put a user into \
                 `[registry.\"{registry}\"]` of `engine.toml`"
            ),
            Self::RateLimit { registry, .. } => format!(
                "log in for a higher limit, or name a mirror in `[registry.\"{registry}\"]` of \
                 `engine.toml`"
            ),
            Self::Certificate { host, .. } => format!(
                "name its authority by `ca` in `[registry.\"{host}\"]` of `engine.toml`, or accept \
                 it by `insecure = true`"
            ),
            // Those are spoken to without TLS anyway.
            Self::Connect { host, .. } if is_loopback(host) => format!("check that `{host}` runs"),
            Self::Connect { host, .. } => format!(
                "check that `{host}` runs; a registry without TLS needs `http = true` in \
                 `[registry.\"{host}\"]` of `engine.toml`"
            ),
            _ => return None,
        };
        Some(text)
    }

    /// When to ask again, where the registry said so.
    pub(crate) fn after(&self) -> Option<Duration> {
        match self {
            Self::RateLimit { after, .. } | Self::Status { after, .. } => *after,
            _ => None,
        }
    }

    /// Whether another try may fare better.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Connect { .. }
            | Self::Broken { .. }
            | Self::Stalled { .. }
            | Self::RateLimit { .. } => true,
            Self::Status { status, .. } => matches!(status, 408 | 425 | 500..=599),
            _ => false,
        }
    }
}

fn said(message: &str) -> String {
    match message.is_empty() {
        true => String::new(),
        false => format!(": {message}"),
    }
}

fn again(after: Option<Duration>) -> String {
    after.map(|after| format!(", try again in {} s", seconds(after))).unwrap_or_default()
}

fn seconds(time: Duration) -> u64 {
    time.as_secs_f64().ceil() as u64
}

/// The innermost cause, which says most, and is often hidden behind several "error sending".
pub(crate) fn cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
