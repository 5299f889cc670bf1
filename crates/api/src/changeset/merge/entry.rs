//! [`Entry`]: one version of what is at a path.

use crate::changeset::changes::is_executable;
use store::{Editor, Kind, Metadata, View};

/// One version of what is at a path.
pub(super) struct Entry {
    /// None if nothing is there.
    pub(super) metadata: Option<Metadata>,
    /// The bytes of a file, or where a link leads.
    pub(super) contents: Vec<u8>,
}

impl Entry {
    /// As a tree has it.
    pub(super) fn of(view: &View, path: &[u8]) -> Result<Self, store::Error> {
        let metadata = view.entry_at(path)?;
        let contents = view.contents_at(path, u64::MAX)?.unwrap_or_default();
        Ok(Self { metadata, contents })
    }

    /// As an edited tree has it now.
    pub(super) fn now(editor: &Editor, path: &[u8]) -> Result<Self, store::Error> {
        let metadata = editor.entry_at(path)?;
        let contents = editor.contents_at(path)?.unwrap_or_default();
        Ok(Self { metadata, contents })
    }

    /// Whether two versions are the same to version control.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (&self.metadata, &other.metadata) {
            (None, None) => true,
            (Some(one), Some(other_one)) if one.kind == other_one.kind => match one.kind {
                Kind::Directory => true,
                Kind::File | Kind::Symlink => {
                    is_executable(one) == is_executable(other_one)
                        && self.contents == other.contents
                }
                _ => one.rdev == other_one.rdev,
            },
            _ => false,
        }
    }

    pub(super) fn is_missing(&self) -> bool {
        self.metadata.is_none()
    }

    pub(super) fn is_directory(&self) -> bool {
        self.metadata.is_some_and(|metadata| metadata.is_directory())
    }

    pub(super) fn is_file(&self) -> bool {
        self.metadata.is_some_and(|metadata| metadata.is_file())
    }

    /// Whether this is a file with lines.
    pub(super) fn is_text(&self) -> bool {
        self.is_file() && !patch::is_binary(&self.contents)
    }

    pub(super) fn is_executable(&self) -> bool {
        self.metadata.as_ref().is_some_and(is_executable)
    }
}
