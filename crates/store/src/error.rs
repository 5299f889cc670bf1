//! [`Error`]: what can go wrong in the store, and whose it is.

use crate::snapshot::LayerId;
use crate::view::ViewError;
use protocol::ErrorKind;
use std::io;
use std::path::{Path, PathBuf};

/// The store could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file operation in the state folder failed.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The state folder was written by another version of this program.
    #[error("the state folder `{}` has format {found}, this program knows format {known}", path.display())]
    Format {
        /// The state folder.
        path: PathBuf,
        /// What its `FORMAT` file says.
        found: String,
        /// What this program reads and writes.
        known: u32,
    },
    /// The store was made by an engine with other rights than this one has.
    #[error("the store `{}` was made by an engine that ran {}", path.display(), by(*.root))]
    OtherRights {
        /// The store's folder.
        path: PathBuf,
        /// Whether that was the machine's root.
        root: bool,
    },
    /// Nothing can be written where the state folder is.
    #[error("the state folder `{}` is on a read-only file system", .0.display())]
    ReadOnly(PathBuf),
    /// The database refused.
    #[error("the database of the store: {0}")]
    Database(#[from] rusqlite::Error),
    /// Rows could not be committed; they are kept in memory and tried again.
    #[error("cannot commit to the database: {0}")]
    Commit(String),
    /// The kernel refused a mount.
    #[error("cannot mount {what}: {source}")]
    Mount {
        /// What was to be mounted.
        what: String,
        /// Why not.
        source: io::Error,
    },
    /// A layer that a snapshot names is not on disk.
    #[error("layer {0} is not in the store")]
    MissingLayer(LayerId),
    /// A path in a tree cannot be used as asked.
    #[error(transparent)]
    View(#[from] ViewError),
    /// Something is there already.
    #[error("{0}: file exists")]
    Exists(String),
    /// A layer would hide everything below it, which a layer cannot.
    #[error("the layer hides the whole tree below it, which is not supported")]
    OpaqueRoot,
    /// A directory of the source meets something else in the destination.
    #[error("cannot copy to non-directory: {0}")]
    OverNonDirectory(String),
    /// A file of the source meets a directory in the destination.
    #[error("cannot replace directory {0} with a file")]
    OverDirectory(String),
    /// An include, exclude or remove pattern is not a glob.
    #[error(transparent)]
    Pattern(#[from] selection::BadPattern),
    /// A directory of the host could not be written.
    #[error(transparent)]
    Landing(#[from] landing::Error),
    /// A tree that goes out holds something that would act or block on the host.
    #[error("`{path}` is {what}, which is not written to the host")]
    Special {
        /// Path below the directory that goes out.
        path: String,
        /// What it is.
        what: &'static str,
    },
    /// There is no room.
    #[error(transparent)]
    Full(#[from] crate::space::Full),
    /// A blob is not in the store.
    #[error("blob {0} is not in the store")]
    MissingBlob(crate::blob::BlobId),
}

impl Error {
    pub(crate) fn io(
        action: &'static str,
        path: impl AsRef<Path>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Self::Io { action, path, source }
    }

    /// What a failed read of verified bytes means.
    pub fn from_read(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |error| match error.downcast::<Self>() {
            Ok(lost) => lost,
            Err(source) => Self::Io { action: "read", path, source },
        }
    }

    /// Whose error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::View(ViewError::Io { .. }) => ErrorKind::Environment,
            Self::View(ViewError::Lost(_)) => ErrorKind::Lost,
            Self::Landing(error) => error.kind(),
            Self::View(_)
            | Self::Special { .. }
            | Self::Exists(_)
            | Self::OpaqueRoot
            | Self::OverNonDirectory(_)
            | Self::OverDirectory(_)
            | Self::Pattern(_) => ErrorKind::User,
            Self::MissingLayer(_) | Self::MissingBlob(_) => ErrorKind::Lost,
            _ => ErrorKind::Environment,
        }
    }

    /// A way out, where there is one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Landing(error) => error.hint(),
            Self::Special { .. } => Some("leave it out, for instance with `without-file`"),
            Self::Full(_) => Some(crate::space::Full::HINT),
            Self::Io { source, .. } if is_full(source) => Some(crate::space::Full::HINT),
            Self::Io { source, .. } if source.raw_os_error() == Some(libc::EINVAL) => {
                Some("an engine without root has no owners beyond 65535")
            }
            Self::Commit(reason) if reason.contains("full") => Some(crate::space::Full::HINT),
            Self::ReadOnly(_) => Some("mount it for writing, or use another state folder"),
            Self::OtherRights { .. } => Some("choose another folder with CITOOL_STATE_DIR"),
            Self::Format { .. } => {
                Some("use the version that wrote it, or another state folder, or remove this one")
            }
            Self::Mount { source, .. } if source.raw_os_error() == Some(libc::E2BIG) => {
                Some("this kernel takes some 200 layers at once: Linux 6.8 and newer take 500")
            }
            Self::Mount { source, .. } if source.raw_os_error() == Some(libc::EPERM) => {
                Some("the engine needs the right to mount: root, or Linux 5.11 and newer")
            }
            _ => None,
        }
    }
}

/// Whom an engine ran as.
fn by(root: bool) -> &'static str {
    if root { "as root" } else { "without root's rights" }
}

/// Whether a file operation failed for want of room.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
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

impl From<ViewError> for protocol::Error {
    fn from(error: ViewError) -> Self {
        Error::from(error).into()
    }
}
