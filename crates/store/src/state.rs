//! [`StateDir`]: the folder that everything lives in, and the only door to it.
//!
//! Trees hold whatever a container put there: links to anywhere, devices, names of any bytes. So
//! every path below the state folder is opened by `openat2` from the folder's own descriptor with
//! links refused. No descriptor is kept per layer: the limit of open files is low and a snapshot
//! may have hundreds of layers, while the kernel's own name cache makes the longer path cheap.

use crate::Error;
use crate::durable::{Durable, Sums};
use crate::marks::Marks;
use crate::metadata::Metadata;
use crate::pins::Pins;
use crate::snapshot::{LayerId, LayerRef};
use crate::space::{Room, Unmeasured};
use crate::trash::Trash;
use rustix::fs::{
    CWD, Mode, OFlags, ResolveFlags, StatVfsMountFlags, fgetxattr, fstat, openat, openat2, statvfs,
};
use rustix::io::Errno;
use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory that stays empty, for trees that have no layer of their own.
pub(crate) const EMPTY: &str = "empty";

const FOLDERS: [&str; 8] =
    ["layers", "work", "blobs", "blobs/sha256", "volumes", "trash", "tmp", EMPTY];

/// The state folder.
pub(crate) struct StateDir {
    path: PathBuf,
    root: OwnedFd,
    marks: Marks,
    trash: Trash,
    pins: Pins,
    unmeasured: Unmeasured,
    room: Room,
    durable: Arc<Durable>,
}

impl StateDir {
    /// Makes what is missing, refuses a folder of another format and sweeps what an earlier process
    /// left half-made into the trash.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        fs::create_dir_all(path).map_err(Error::io("create", path))?;
        let path = fs::canonicalize(path).map_err(Error::io("find", path))?;
        refuse_read_only(&path)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, &path, flags, Mode::empty())
            .map_err(|errno| Error::io("open", &path)(errno.into()))?;
        // On a full disk this is what the next steps are made of.
        crate::space::ballast::give_up_if_full(&path);
        // Before anything is changed in what may be somebody else's.
        let marks = Marks::claim(&path, root.as_fd())?;
        crate::format::claim(&path)?;
        for folder in FOLDERS {
            make_folder(&path.join(folder))?;
        }
        crate::attached::sweep(&path);
        for folder in ["work", "tmp"] {
            sweep(&path, folder)?;
        }
        let trash = Trash::start(path.join("trash"))?;
        let (pins, unmeasured) = (Pins::default(), Unmeasured::default());
        let own = root.try_clone().map_err(Error::io("open", &path))?;
        let durable = Arc::new(Durable::start(path.clone(), own)?);
        Ok(Self { path, root, marks, trash, pins, unmeasured, room: Room::default(), durable })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// The names of overlay's marks in this store.
    pub(crate) fn marks(&self) -> Marks {
        self.marks
    }

    pub(crate) fn trash(&self) -> &Trash {
        &self.trash
    }

    pub(crate) fn pins(&self) -> &Pins {
        &self.pins
    }

    pub(crate) fn unmeasured(&self) -> &Unmeasured {
        &self.unmeasured
    }

    /// Who asks for room before something is written.
    pub(crate) fn room(&self) -> &Room {
        &self.room
    }

    /// What is on disk and what is whole.
    pub(crate) fn durable(&self) -> &Arc<Durable> {
        &self.durable
    }

    /// Opens a path below the folder. No link on the way is followed.
    pub(crate) fn open_at(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        open_below(self.root.as_fd(), path, flags)
    }

    /// Opens a directory below the folder for reading.
    pub(crate) fn open_directory(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        self.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// Metadata of the entry itself.
    pub(crate) fn stat(&self, path: &[u8]) -> Result<Metadata, Errno> {
        let entry = self.open_at(path, OFlags::PATH)?;
        Ok(Metadata::from(&fstat(entry)?))
    }

    /// Whether the directory at this path hides what is below it.
    pub(crate) fn is_opaque(&self, path: &[u8]) -> Result<bool, Errno> {
        self.hides(&self.open_directory(path)?)
    }

    /// Whether an open directory hides what older layers have in it.
    pub(crate) fn hides(&self, directory: &OwnedFd) -> Result<bool, Errno> {
        let mut value = [0_u8; 1];
        match fgetxattr(directory, self.marks.opaque(), &mut value) {
            Ok(length) => Ok(length == 1 && value[0] == b'y'),
            Err(Errno::NODATA | Errno::RANGE | Errno::OPNOTSUPP) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    /// Whether the open root of a layer says that the layer is never merged with others.
    pub(crate) fn is_apart(&self, root: &OwnedFd) -> bool {
        fgetxattr(root, self.marks.apart(), &mut [0_u8; 1]).is_ok()
    }

    /// Renames a finished tree of this folder into `layers/`. It has a pin before it is there.
    pub(crate) fn adopt(&self, tree: &Path) -> Result<LayerRef, Error> {
        self.adopt_with(tree, Sums::default())
    }

    /// The same for a tree of whose files some digests are known.
    pub(crate) fn adopt_with(&self, tree: &Path, sums: Sums) -> Result<LayerRef, Error> {
        let id = LayerId::random();
        self.durable.made_layer(id, sums);
        let made = LayerRef::pinned(id, self.pins.layers.pin_new(id));
        let layer = self.path.join(layer_path(id));
        if let Err(error) = fs::rename(tree, &layer) {
            if error.kind() != std::io::ErrorKind::NotFound {
                return Err(Error::io("commit", tree)(error));
            }
            make_folder(layer.parent().unwrap_or(&self.path))?;
            fs::rename(tree, &layer).map_err(Error::io("commit", tree))?;
        }
        self.unmeasured.note_layer(id);
        Ok(made)
    }
}

/// Opens a path below a directory. No link on the way is followed.
pub(crate) fn open_below(
    directory: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    openat2(directory, path, flags, Mode::empty(), resolve)
}

/// Path of a layer below the state folder.
pub(crate) fn layer_path(id: LayerId) -> String {
    format!("layers/{:02x}/{id}", id.as_bytes()[0])
}

/// Path of a re-rooted layer below the state folder.
pub(crate) fn layer_root(layer: &LayerRef) -> Vec<u8> {
    let mut path = layer_path(layer.id).into_bytes();
    if !layer.root.is_empty() {
        path.push(b'/');
        path.extend_from_slice(layer.root.as_bytes());
    }
    path
}

/// Says in one sentence what every later step would say in its own.
fn refuse_read_only(path: &Path) -> Result<(), Error> {
    match statvfs(path) {
        Ok(facts) if facts.f_flag.contains(StatVfsMountFlags::RDONLY) => {
            Err(Error::ReadOnly(path.to_owned()))
        }
        _ => Ok(()),
    }
}

fn make_folder(path: &Path) -> Result<(), Error> {
    match fs::create_dir(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(Error::io("create", path)(error))
        }
        _ => Ok(()),
    }
}

/// One rename takes the whole folder away, however much is in it.
fn sweep(state: &Path, folder: &str) -> Result<(), Error> {
    let path = state.join(folder);
    let mut entries = fs::read_dir(&path).map_err(Error::io("read", &path))?;
    if entries.next().is_none() {
        return Ok(());
    }
    let trashed = state.join("trash").join(LayerId::random().to_string());
    fs::rename(&path, &trashed).map_err(Error::io("sweep", &path))?;
    make_folder(&path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_made_work_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        drop(StateDir::open(folder.path()).unwrap());
        fs::create_dir_all(folder.path().join("work/x/upper")).unwrap();
        fs::write(folder.path().join("tmp/y"), "y").unwrap();
        let state = StateDir::open(folder.path()).unwrap();
        for empty in ["work", "tmp"] {
            assert_eq!(fs::read_dir(folder.path().join(empty)).unwrap().count(), 0, "{empty}");
        }
        state.trash().wait();
        assert_eq!(fs::read_dir(folder.path().join("trash")).unwrap().count(), 0);
    }

    #[test]
    fn links_on_the_way_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::open(folder.path()).unwrap();
        std::os::unix::fs::symlink("/etc", folder.path().join("tmp/out")).unwrap();
        for path in ["tmp/out/passwd", "../etc/passwd", "/etc/passwd"] {
            assert!(state.open_at(path.as_bytes(), OFlags::PATH).is_err(), "{path}");
        }
    }
}
