//! [`Volume`]: a directory that execs share and change, outside every snapshot.
//!
//! ```text
//! volumes/<digest of the key>/data
//! ```
//!
//! A volume appears by one rename with everything it begins with, so nobody sees it half-filled.
//! Bytes are copied into it, never linked: it changes, and layers must not.

use crate::draft::Draft;
use crate::editor::copy_all;
use crate::metadata::Owner;
use crate::state::StateDir;
use crate::top::Top;
use crate::view::Tree;
use crate::{Error, Mount, View};
use protocol::Digest;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A mutable directory.
#[derive(Clone, Debug)]
pub struct Volume {
    path: PathBuf,
    new: bool,
}

impl Volume {
    pub(crate) fn open(state: &Arc<StateDir>, key: &str) -> Result<Self, Error> {
        let empty = Tree::new(Arc::clone(state), &[]);
        Self::open_seeded(state, key, &View { tree: empty }, None)
    }

    /// The volume of a key. If it is not there yet it begins as a copy of a tree.
    pub(crate) fn open_seeded(
        state: &Arc<StateDir>,
        key: &str,
        source: &View,
        owner: Option<Owner>,
    ) -> Result<Self, Error> {
        let mut digest = Digest::builder("volume");
        let folder = state.path().join("volumes").join(digest.text(key).finish().to_string());
        let path = folder.join("data");
        if path.is_dir() {
            return Ok(Self { path, new: false });
        }
        std::fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        let draft = Draft::new(state)?;
        let prepared = state.path().join(String::from_utf8_lossy(draft.root()).as_ref());
        let mut top = Top::new(Tree::new(Arc::clone(state), &[]), draft)?;
        copy_all(&mut top, &source.tree, owner)?;
        top.draft.set_times()?;
        match renameat_with(CWD, &prepared, CWD, &path, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(Self { path, new: true }),
            // Somebody else was quicker.
            Err(Errno::EXIST) => Ok(Self { path, new: false }),
            Err(errno) => Err(Error::io("create", &path)(errno.into())),
        }
    }

    /// Whether this call made it.
    pub fn is_new(&self) -> bool {
        self.new
    }

    /// Where it is on the host.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A bind mount of the volume.
    pub fn mount(&self) -> Result<Mount, Error> {
        Mount::bind(&self.path)
    }
}
