//! [`Scratch`]: a writable tree over a snapshot, for one exec.
//!
//! ```text
//! work/<id>/upper   what the exec changes; becomes the layer by one rename
//! work/<id>/work    the kernel's own
//! ```
//!
//! The overlay is `volatile`: nothing is synced when it goes, and an upper that was not committed is
//! thrown away. Mount points that the tree lacks come from a stub below the upper, which so stays
//! clean: an exec that does nothing changes nothing.

use crate::draft::{Draft, WorkDir};
use crate::metadata::Metadata;
use crate::mount::{Lower, Writable};
use crate::snapshot::{LayerRef, Snapshot};
use crate::spare::Folders;
use crate::state::{self, StateDir};
use crate::store::{Inner, Store};
use crate::stub::{Plan, Target};
use crate::top::Top;
use crate::view::{Tree, shorten};
use crate::{Error, Mount};
use rustix::fs::{Dir, fstat};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

/// A writable tree over a snapshot. Dropped without a commit, it leaves nothing.
pub struct Scratch {
    store: Store,
    base: Snapshot,
    mount: Mount,
    work: Arc<WorkDir>,
    /// The upper's root as the exec found it.
    root: Metadata,
    plan: Plan,
}

impl Scratch {
    pub(crate) fn new(store: Store, base: &Snapshot, targets: &[Target]) -> Result<Self, Error> {
        let inner = &store.0;
        let base = inner.shorten(base)?;
        inner.require(base.layers())?;
        let plan = Plan::new(inner, &base, targets)?;
        let Folders { work, upper } = inner.spares.take(&inner.state)?;
        let upper = dress_upper(upper, inner.tree(&base))?;
        let root = stat(&upper, work.path())?;
        let mut lowers = lowers(inner, &base)?;
        if let Some(stub) = plan.stub() {
            lowers.insert(0, Lower::open(&inner.state, stub)?);
        }
        if lowers.is_empty() {
            lowers.push(Lower::plain(&inner.state, state::EMPTY));
        }
        let kernel = Folders::kernel(&work)?;
        let writable = Writable { upper: upper.as_fd(), work: kernel.as_fd() };
        let mount = Mount::overlay(&lowers, Some(&writable), &inner.state)?;
        Ok(Self { store, base, mount, work, root, plan })
    }

    /// The writable tree, not attached anywhere.
    pub fn mount(&self) -> &Mount {
        &self.mount
    }

    /// A mount of one file or directory of the tree, for who mounts only that.
    pub fn mount_at(&self, path: &str) -> Result<Mount, Error> {
        self.mount.at(path, &self.store.0.state)
    }

    /// A second descriptor of the same mount, for who wants to own one.
    pub fn mount_clone(&self) -> Result<Mount, Error> {
        let copy = self.mount.as_fd().try_clone_to_owned();
        copy.map(Mount::from_fd).map_err(Error::io("mount", self.work.path()))
    }

    /// The folder that changes are written to.
    pub(crate) fn work(&self) -> &Path {
        self.work.path()
    }

    /// The snapshot that this began with.
    pub fn base(&self) -> &Snapshot {
        &self.base
    }

    /// The tree as it is now; the base itself if nothing was changed. The mount must not be in use
    /// any more.
    pub fn commit(self) -> Result<Snapshot, Error> {
        let Self { store, base, mount, work, root, plan } = self;
        drop(mount);
        // What ran over a tree that went away meanwhile has not seen the tree.
        store.0.require(base.layers())?;
        let path = work.path().join("upper");
        let name = format!("{}/upper", work.name()).into_bytes();
        let upper = open(&store.0.state, &name)?;
        let now = stat(&upper, &path)?;
        let same_root = (now.mode, now.owner()) == (root.mode, root.owner());
        if same_root && is_empty(&upper).map_err(|errno| Error::io("read", &path)(errno.into()))? {
            store.0.spares.give_back(work);
            return Ok(base);
        }
        let fits = plan.outlives(&store.0.state, &name);
        let layer = store.0.state.adopt(&path)?;
        store.0.spares.give_back(work);
        let after = store.0.commit(&base, layer, None);
        if fits {
            plan.hand_on(&store.0, &after);
        }
        Ok(after)
    }
}

/// Mounts a snapshot that cannot be changed.
pub(crate) fn mount_read_only(inner: &Arc<Inner>, snapshot: &Snapshot) -> Result<Mount, Error> {
    let snapshot = inner.shorten(snapshot)?;
    inner.require(snapshot.layers())?;
    let mut lowers = lowers(inner, &snapshot)?;
    if lowers.is_empty() {
        let mount = Mount::bind(&inner.state.path().join(state::EMPTY))?;
        mount.set_read_only()?;
        return Ok(mount);
    }
    if lowers.len() == 1 {
        // An overlay needs two. A bind mount would do with one, but would show its whiteouts.
        lowers.push(Lower::plain(&inner.state, state::EMPTY));
    }
    Mount::overlay(&lowers, None, &inner.state)
}

/// The layers of a snapshot, newest first, as overlay takes them.
fn lowers(inner: &Inner, snapshot: &Snapshot) -> Result<Vec<Lower>, Error> {
    let lower = |layer: &LayerRef| match layer.root.is_empty() {
        true => Ok(Lower::plain(&inner.state, &state::layer_path(layer.id))),
        false => Lower::open(&inner.state, &state::layer_root(layer)),
    };
    snapshot.layers().iter().rev().map(lower).collect()
}

/// The upper takes the metadata of the tree's root: the newest layer decides what the root is like.
fn dress_upper(upper: Draft, tree: Tree) -> Result<OwnedFd, Error> {
    let mut top = Top::new(tree, upper)?;
    top.draft.set_times()?;
    open(top.state(), top.draft.root())
}

fn open(state: &StateDir, path: &[u8]) -> Result<OwnedFd, Error> {
    let open = state.open_directory(path);
    let shown = || shorten(&String::from_utf8_lossy(path));
    open.map_err(|errno| Error::io("open", shown())(errno.into()))
}

fn stat(directory: &OwnedFd, path: &Path) -> Result<Metadata, Error> {
    let stat = fstat(directory).map_err(|errno| Error::io("read", path)(errno.into()))?;
    Ok(Metadata::from(&stat))
}

fn is_empty(directory: &OwnedFd) -> Result<bool, Errno> {
    for entry in Dir::read_from(directory)? {
        if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
            return Ok(false);
        }
    }
    Ok(true)
}
