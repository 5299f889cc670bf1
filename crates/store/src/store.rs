//! [`Store`]: everything that outlives a session, behind one cheap handle.

use crate::blob::{self, BlobId, BlobWriter};
use crate::builder::LayerBuilder;
use crate::compact::Layers;
use crate::database::Database;
use crate::digest::FileDigests;
use crate::draft::WorkDir;
use crate::editor::Editor;
use crate::scratch::{self, Scratch};
use crate::state::{self, StateDir};
use crate::stub::{Plans, Target};
use crate::view::Tree;
use crate::volume::Volume;
use crate::{Error, LayerId, LayerRef, Mount, Owner, Snapshot, View, digest};
use protocol::Digest;
use rustix::fs::{AtFlags, OFlags, statat};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// The store of one state folder. Cloning is cheap; all clones are the same store.
///
/// Calls block on the file system, never on the network, and do not need an async runtime. The
/// caller sees to it that only one process has the folder open.
#[derive(Clone)]
pub struct Store(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) state: Arc<StateDir>,
    pub(crate) database: Database,
    pub(crate) layers: Layers,
    pub(crate) file_digests: FileDigests,
    pub(crate) plans: Plans,
}

/// A directory below the state folder that goes to the trash when dropped.
pub struct TemporaryDir(WorkDir);

impl TemporaryDir {
    /// Where it is on the host.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Store {
    /// Opens a state folder, which is made if it is not there. What an earlier process left
    /// half-made goes to the trash; a damaged database is begun anew.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let state = StateDir::open(dir)?;
        let database = Database::open(state.path())?;
        Ok(Self(Arc::new(Inner {
            state: Arc::new(state),
            database,
            layers: Layers::default(),
            file_digests: FileDigests::default(),
            plans: Plans::default(),
        })))
    }

    /// The state folder.
    pub fn dir(&self) -> &Path {
        self.0.state.path()
    }

    /// What an action has given, if it is known.
    pub fn action(&self, key: &Digest) -> Option<Vec<u8>> {
        self.0.database.action(key)
    }

    /// Stores what an action has given. Visible at once, committed soon.
    pub fn put_action(&self, key: Digest, value: Vec<u8>) {
        self.0.database.put_action(key, value);
    }

    /// Forgets what an action has given.
    pub fn remove_action(&self, key: &Digest) {
        self.0.database.remove_action(key);
    }

    /// The record of a call.
    pub fn call(&self, digest: &Digest) -> Option<Vec<u8>> {
        self.0.database.call(digest)
    }

    /// The call that a handle stands for, with its record.
    pub fn call_by_handle(&self, handle: u64) -> Option<(Digest, Vec<u8>)> {
        self.0.database.call_by_handle(handle)
    }

    /// Stores records of calls. Visible at once, committed soon, kept 7 days after their last use.
    pub fn put_calls(&self, records: Vec<(Digest, Vec<u8>)>) -> Result<(), Error> {
        self.0.database.put_calls(records);
        Ok(())
    }

    /// Returns when everything put before is committed and on disk.
    pub fn flush(&self) -> Result<(), Error> {
        self.0.database.flush()
    }

    /// Whether all layers of a snapshot are on disk.
    pub fn has(&self, snapshot: &Snapshot) -> bool {
        snapshot.layers().iter().all(|layer| self.0.has_layer(layer))
    }

    /// The merged tree of a snapshot, to be read without mounting it.
    pub fn view(&self, snapshot: &Snapshot) -> View {
        View { tree: self.0.tree(snapshot) }
    }

    /// Begins changes of a tree that become one new layer.
    pub fn edit(&self, base: &Snapshot) -> Result<Editor, Error> {
        Editor::new(self.clone(), base)
    }

    /// Begins a layer that is written entry by entry.
    pub fn new_layer(&self) -> Result<LayerBuilder, Error> {
        LayerBuilder::new(self.clone())
    }

    /// Mounts a writable tree over a snapshot, for one exec. Mount points that are missing in the
    /// tree are provided without becoming part of the result.
    pub fn begin(&self, base: &Snapshot, targets: &[Target]) -> Result<Scratch, Error> {
        Scratch::new(self.clone(), base, targets)
    }

    /// Mounts a snapshot that cannot be changed.
    pub fn mount_read_only(&self, snapshot: &Snapshot) -> Result<Mount, Error> {
        scratch::mount_read_only(&self.0, snapshot)
    }

    /// One layer that stands for a list of layers, oldest first. Equal lists give the same layer.
    pub fn merge(&self, layers: &[LayerRef]) -> Result<LayerId, Error> {
        self.0.merge(layers, 0)
    }

    /// Digest of a tree's content: names, kinds, modes, owners, link targets, extended attributes
    /// and bytes of files. Neither times nor the layers that make up the tree are part of it.
    pub fn tree_digest(&self, snapshot: &Snapshot) -> Result<Digest, Error> {
        digest::of_tree(&self.0, snapshot)
    }

    /// Digest of one file: bytes, mode, owner and extended attributes.
    pub fn file_digest(&self, snapshot: &Snapshot, path: &str) -> Result<Digest, Error> {
        digest::of_file(&self.0, snapshot, path)
    }

    /// Stores bytes by their sha256.
    pub fn put_blob(&self, bytes: &[u8]) -> Result<BlobId, Error> {
        blob::put(&self.0.state, bytes)
    }

    /// Opens a blob for reading.
    pub fn open_blob(&self, id: &BlobId) -> Result<File, Error> {
        blob::open(&self.0.state, id)
    }

    /// Begins a blob that is written piece by piece.
    pub fn blob_writer(&self) -> Result<BlobWriter, Error> {
        BlobWriter::new(&self.0.state)
    }

    /// The mutable volume of this key, which is made if it is not there.
    pub fn cache_volume(&self, key: &str) -> Result<Volume, Error> {
        Volume::open(&self.0.state, key)
    }

    /// The mutable volume of this key. If it is not there yet it begins as a copy of a tree, all
    /// with this owner if one is given.
    pub fn seeded_cache_volume(
        &self,
        key: &str,
        source: &View,
        owner: Option<Owner>,
    ) -> Result<Volume, Error> {
        Volume::open_seeded(&self.0.state, key, source, owner)
    }

    /// Removes a file or a tree of the state folder's file system, in the background.
    pub fn trash(&self, path: &Path) {
        self.0.state.trash().discard(path);
    }

    /// A directory that goes to the trash when dropped.
    pub fn temporary(&self) -> Result<TemporaryDir, Error> {
        WorkDir::new(&self.0.state).map(TemporaryDir)
    }
}

impl Inner {
    pub(crate) fn tree(&self, snapshot: &Snapshot) -> Tree {
        Tree::new(Arc::clone(&self.state), snapshot.layers())
    }

    pub(crate) fn has_layer(&self, layer: &LayerRef) -> bool {
        if layer.root.is_empty() {
            // The path is ours, so one call without opening is enough.
            let path = state::layer_path(layer.id);
            return statat(self.state.fd(), path, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        }
        self.state.open_at(&state::layer_root(layer), OFlags::PATH | OFlags::DIRECTORY).is_ok()
    }

    /// Refuses a list that names a layer which is not on disk: reading on would show a tree without
    /// what that layer has.
    pub(crate) fn require(&self, list: &[LayerRef]) -> Result<(), Error> {
        match list.iter().find(|layer| !self.has_layer(layer)) {
            Some(missing) => Err(Error::MissingLayer(missing.id)),
            None => Ok(()),
        }
    }

    /// The snapshot with a new layer on top.
    pub(crate) fn commit(
        self: &Arc<Self>,
        base: &Snapshot,
        layer: LayerId,
        entries: Option<u64>,
    ) -> Snapshot {
        self.layers.note(layer, 0, entries);
        self.settle(base.push(LayerRef::whole(layer)))
    }
}
