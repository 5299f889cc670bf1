//! What can go wrong with a Debian image, whose it is, and the way out.

use debian::{deb, index, release, resolve, sources};
use protocol::ErrorKind;
use std::io;
use std::path::{Path, PathBuf};

/// A Debian image that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Debian does not know this machine.
    #[error("Debian has no packages for this machine ({0})")]
    Architecture(&'static str),
    /// A source file of apt, or none that is of use.
    #[error(transparent)]
    Sources(#[from] sources::Error),
    /// No key that could prove who signed an archive.
    #[error("there is no key for the archive `{archive}`")]
    NoKeys {
        /// The archive.
        archive: String,
    },
    /// A keyring cannot be used.
    #[error("keyring `{}`: {source}", path.display())]
    Keyring {
        /// The file.
        path: PathBuf,
        /// Why.
        source: release::KeyringError,
    },
    /// The archive does not have the suite.
    #[error("the archive `{archive}` has no suite `{suite}`")]
    NoSuite {
        /// The archive.
        archive: String,
        /// The suite.
        suite: String,
    },
    /// The signed file of a suite is refused.
    #[error("`{url}`: {source}")]
    Release {
        /// Where it came from.
        url: String,
        /// Why.
        source: release::Error,
    },
    /// The suite has no packages for this architecture in any component.
    #[error("suite `{suite}` of `{archive}` has no packages for `{architecture}`")]
    NoIndex {
        /// The archive.
        archive: String,
        /// The suite.
        suite: String,
        /// The architecture.
        architecture: String,
    },
    /// A package index cannot be read.
    #[error("`{url}`: {source}")]
    Index {
        /// Where it came from.
        url: String,
        /// Why.
        source: index::Error,
    },
    /// The packages do not go together.
    #[error(transparent)]
    Resolve(#[from] resolve::Error),
    /// A download failed.
    #[error(transparent)]
    Fetch(#[from] fetch::Error),
    /// A package cannot be unpacked.
    #[error("package `{package}`: {source}")]
    Deb {
        /// The package.
        package: String,
        /// Why.
        source: deb::Error,
    },
    /// A package in the cache is not what its name says.
    #[error("package `{package}` in the cache was damaged; it is removed, so try again")]
    Damaged {
        /// The package.
        package: String,
    },
    /// Two packages of the base have the same file.
    #[error("packages `{first}` and `{second}` both have `{path}`")]
    SameFile {
        /// One package.
        first: String,
        /// The other.
        second: String,
        /// The path.
        path: String,
    },
    /// The scripts of the packages failed.
    #[error("configuring the packages failed with exit code {code}")]
    Configure {
        /// How the run ended.
        code: i32,
        /// The end of what it wrote.
        output: String,
    },
    /// The sandbox refused.
    #[error(transparent)]
    Sandbox(#[from] sandbox::Error),
    /// The store refused.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A file of the host or of the cache.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// What a lock says of an image.
    #[error("what `ci-tool.lock` says of the image cannot be used: {0}")]
    Locked(String),
    /// A package that a lock names, which the archive does not have any more.
    #[error("`{url}`, which `ci-tool.lock` names, is not in the archive any more")]
    NotKept {
        /// Where it was.
        url: String,
    },
    /// A defect of ours.
    #[error("{0}")]
    Internal(String),
}

impl Error {
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::NoSuite { .. } | Self::Resolve(_) | Self::Locked(_) => ErrorKind::User,
            Self::Store(error) => error.kind(),
            Self::Internal(_) => ErrorKind::Internal,
            _ => ErrorKind::Environment,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Sources(sources::Error::NoSource { .. }) => Some(
                "name an archive in the engine's configuration by `debian-mirror`, and its keys by \
                 `debian-keyring`"
                    .to_owned(),
            ),
            Self::Locked(_) | Self::NotKept { .. } => {
                Some("record what the archive has now with `--lock=live`".to_owned())
            }
            Self::NoKeys { .. } => {
                Some("name a keyring in the engine's configuration by `debian-keyring`".to_owned())
            }
            Self::Resolve(resolve::Error::Unknown { near, .. }) if !near.is_empty() => {
                let near: Vec<String> = near.iter().map(|name| format!("`{name}`")).collect();
                Some(format!("similar packages: {}", near.join(", ")))
            }
            Self::Resolve(resolve::Error::Virtual { .. }) => Some("name one of them".to_owned()),
            Self::Release { source: release::Error::Signature { .. }, .. } => Some(
                "the keyring of the source (or `debian-keyring`) must have the archive's key"
                    .to_owned(),
            ),
            Self::Configure { output, .. } if !output.is_empty() => {
                Some(format!("it wrote last:\n{output}"))
            }
            _ => None,
        }
    }
}

impl From<Error> for protocol::Error {
    fn from(error: Error) -> Self {
        let converted = Self::new(error.kind(), error.to_string());
        match error.hint() {
            Some(hint) => converted.with_hint(hint),
            None => converted,
        }
    }
}
