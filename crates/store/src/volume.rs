//! [`Volume`]: a directory that execs share and change, outside every snapshot.
//!
//! ```text
//! volumes/<digest of the key>/key        the key as text; its time is that of the last use
//!                             data       the volume
//!                             data.<n>   further volumes of this key, for who wants one alone; the last
//!                                        number is a mirror of what the key names
//! ```
//!
//! A volume appears by one rename with everything it begins with, so nobody sees it half-filled.
//! Bytes are copied into it, never linked: it changes, and layers must not. A volume that somebody
//! holds is not collected.

use crate::draft::Draft;
use crate::editor::copy_all;
use crate::metadata::Owner;
use crate::pins::VolumePin;
use crate::state::StateDir;
use crate::top::Top;
use crate::view::Tree;
use crate::{Error, Mount, View};
use protocol::Digest;
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, RenameFlags, Timespec, Timestamps, mkdirat, openat, renameat_with,
    utimensat,
};
use rustix::io::Errno;
use rustix::mount::{OpenTreeFlags, open_tree};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Which volume: the digest of its key, and its number among those of the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct VolumeId {
    pub(crate) key: Digest,
    pub(crate) number: u32,
}

/// The number of what is no user's volume but a mirror of ours. Users' volumes are counted from zero.
pub(crate) const MIRROR: u32 = u32::MAX;

/// A mutable directory. While it or a clone of it is held, it stays.
#[derive(Clone)]
pub struct Volume {
    path: PathBuf,
    new: bool,
    _use: Arc<Use>,
}

/// One use of a volume, which ends with its measuring.
struct Use {
    state: Arc<StateDir>,
    id: VolumeId,
    _pin: VolumePin,
}

impl VolumeId {
    pub(crate) fn new(key: &str, number: u32) -> Self {
        Self { key: Digest::builder("volume").text(key).finish(), number }
    }

    /// Folder of all volumes of the key, below the state folder.
    pub(crate) fn folder(&self) -> String {
        format!("volumes/{}", self.key)
    }

    /// The volume itself, below the state folder.
    pub(crate) fn path(&self) -> String {
        match self.number {
            0 => format!("{}/data", self.folder()),
            number => format!("{}/data.{number}", self.folder()),
        }
    }

    /// The volume of a name in the folder of a key.
    pub(crate) fn of_name(key: Digest, name: &str) -> Option<Self> {
        let number = match name.strip_prefix("data")? {
            "" => 0,
            rest => rest.strip_prefix('.')?.parse().ok().filter(|number| *number > 0)?,
        };
        Some(Self { key, number })
    }
}

impl Volume {
    pub(crate) fn open(state: &Arc<StateDir>, key: &str) -> Result<Self, Error> {
        let empty = Tree::new(Arc::clone(state), &[]);
        Self::open_seeded(state, (key, 0), &View::of_nothing(empty), None)
    }

    /// The mirror of something.
    pub(crate) fn open_mirror(state: &Arc<StateDir>, of: &str) -> Result<Self, Error> {
        let empty = Tree::new(Arc::clone(state), &[]);
        Self::open_seeded(state, (of, MIRROR), &View::of_nothing(empty), None)
    }

    /// Where the mirror of something is.
    pub(crate) fn mirror_path(state: &StateDir, of: &str) -> PathBuf {
        state.path().join(VolumeId::new(of, MIRROR).path())
    }

    /// The volume of a key. If it is not there yet it begins as a copy of a tree.
    pub(crate) fn open_seeded(
        state: &Arc<StateDir>,
        (key, number): (&str, u32),
        source: &View,
        owner: Option<Owner>,
    ) -> Result<Self, Error> {
        let id = VolumeId::new(key, number);
        // Before looking: what is there then stays.
        let pin = state.pins().volumes.pin_again(id);
        let path = state.path().join(id.path());
        let held = Arc::new(Use { state: Arc::clone(state), id, _pin: pin });
        if path.is_dir() {
            held.note();
            return Ok(Self { path, new: false, _use: held });
        }
        let draft = Draft::new(state)?;
        let prepared = state.path().join(String::from_utf8_lossy(draft.root()).as_ref());
        let mut top = Top::new(Tree::new(Arc::clone(state), &[]), draft)?;
        copy_all(&mut top, &source.tree, owner)?;
        top.draft.set_times()?;
        let new = place(&prepared, &path, key)?;
        Ok(Self { path, new, _use: held })
    }

    /// Whether this call made it.
    pub fn is_new(&self) -> bool {
        self.new
    }

    /// Where it is on the host.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A bind mount of the volume. It does not keep the volume: hold both.
    pub fn mount(&self) -> Result<Mount, Error> {
        Mount::bind(&self.path)
    }

    /// A bind mount of a directory in the volume, which is made if it is missing. Commands write to the
    /// volume, so no link on the way is followed.
    pub fn mount_below(&self, directory: &str) -> Result<Mount, Error> {
        let failed = |errno: Errno| Error::io("open", self.path.join(directory))(errno.into());
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut place = openat(CWD, &self.path, flags, Mode::empty()).map_err(failed)?;
        for name in directory.split('/').filter(|name| !matches!(*name, "" | ".")) {
            if name == ".." {
                return Err(failed(Errno::INVAL));
            }
            match mkdirat(&place, name, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(failed(errno)),
            }
            place = openat(&place, name, flags, Mode::empty()).map_err(failed)?;
        }
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let mount = open_tree(&place, "", flags | OpenTreeFlags::AT_EMPTY_PATH);
        mount.map(Mount::from_fd).map_err(failed)
    }
}

/// Gives a prepared tree its place, unless somebody else was quicker.
fn place(prepared: &Path, path: &Path, key: &str) -> Result<bool, Error> {
    let folder = path.parent().unwrap_or(path);
    loop {
        fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
        let named = folder.join("key");
        if !named.exists()
            && let Err(error) = fs::write(&named, key)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            return Err(Error::io("create", &named)(error));
        }
        match renameat_with(CWD, prepared, CWD, path, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(true),
            Err(Errno::EXIST) => return Ok(false),
            // The folder was empty and was collected just now.
            Err(Errno::NOENT) if !folder.exists() => {}
            Err(errno) => return Err(Error::io("create", path)(errno.into())),
        }
    }
}

impl Use {
    /// Notes that the volume is used now.
    fn note(&self) {
        let now = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: now };
        let named = format!("{}/key", self.id.folder());
        // What is not noted is only collected earlier.
        let _ = utimensat(self.state.fd(), named, &times, AtFlags::SYMLINK_NOFOLLOW);
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        self.note();
        self.state.unmeasured().note_volume(self.id);
    }
}

impl std::fmt::Debug for Volume {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Volume").field("path", &self.path).field("new", &self.new).finish()
    }
}
