//! [`Store`]: everything that outlives a session, behind one cheap handle.

use crate::blob::{self, BlobId, BlobWriter};
use crate::builder::LayerBuilder;
use crate::compact::Layers;
use crate::database::Database;
use crate::digest::FileDigests;
use crate::draft::WorkDir;
use crate::durable::{Content, Inspector, Keeper, Verified};
use crate::editor::Editor;
use crate::folder::Folder;
use crate::needs::Needs;
use crate::pins::BlobPin;
use crate::scratch::{self, Scratch};
use crate::space::{CacheEntry, Collected, Full, Limits, RunWatch, Space};
use crate::spare::Spares;
use crate::state::StateDir;
use crate::stub::{Plans, Target};
use crate::view::Tree;
use crate::volume::Volume;
use crate::{Error, LayerRef, Mount, Owner, Snapshot, View, digest};
use protocol::Digest;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The store of one state folder. Cloning is cheap; all clones are the same store.
///
/// Calls block on the file system, never on the network, and do not need an async runtime. The
/// caller sees to it that only one process has the folder open.
#[derive(Clone)]
pub struct Store(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    /// First, so that its threads end before what they work on.
    space: Space,
    _keeper: Keeper,
    pub(crate) inspector: Arc<Inspector>,
    pub(crate) state: Arc<StateDir>,
    pub(crate) database: Arc<Database>,
    pub(crate) layers: Layers,
    pub(crate) file_digests: FileDigests,
    pub(crate) plans: Arc<Plans>,
    pub(crate) spares: Spares,
}

/// What an action has given, as it is put into the store.
#[derive(Clone, Debug, Default)]
pub struct Remembered {
    /// The result.
    pub value: Vec<u8>,
    /// What kind of work it was, in one word.
    pub kind: &'static str,
    /// A line for people; it is cut when long.
    pub label: String,
    /// The encoded [`Needs`] of the result.
    pub needs: Vec<u8>,
}

/// Room that is looked for when rows cannot be written.
const ROOM_FOR_ROWS: u64 = 1 << 20;

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
    /// half-made goes to the trash; a damaged database is begun anew. There is no limit but the disk.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        Self::open_limited(dir, |_| Limits::NONE)
    }

    /// The same with limits, which are made from the size of the disk in bytes.
    pub fn open_limited(dir: &Path, limits: impl FnOnce(u64) -> Limits) -> Result<Self, Error> {
        let state = Arc::new(StateDir::open(dir)?);
        let database = Arc::new(Database::open(state.path(), Arc::clone(state.durable()))?);
        let inspector = Inspector::new(Arc::clone(&state), Arc::clone(&database));
        let inspector = Arc::new(inspector);
        let plans = Arc::new(Plans::default());
        Ok(Self(Arc::new(Inner {
            space: Space::start(&state, &database, &plans, limits)?,
            _keeper: Keeper::start(Arc::clone(&inspector))?,
            inspector,
            state,
            database,
            layers: Layers::default(),
            file_digests: FileDigests::default(),
            plans,
            spares: Spares::default(),
        })))
    }

    /// What the user is to be told about how the folder was opened: that results were lost.
    pub fn word(&self) -> Option<&str> {
        self.0.database.word()
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
    pub fn put_action(&self, key: Digest, remembered: Remembered) {
        self.name(&remembered);
        self.0.database.put_action(key, remembered);
    }

    /// The same for what only saves work that could be done again from what is stored: it is committed
    /// as soon, but [`Store::flush`] does not wait for it.
    pub fn put_shortcut(&self, key: Digest, remembered: Remembered) {
        self.name(&remembered);
        self.0.database.put_unhurried(key, remembered);
    }

    /// Notes that a row names layers and blobs.
    fn name(&self, remembered: &Remembered) {
        let needs = Needs::decode(&remembered.needs).unwrap_or_default();
        let pins = self.0.state.pins();
        pins.layers.name(needs.layers.iter().copied());
        pins.blobs.name(needs.blobs.iter().copied());
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
        let flushed = self.0.database.flush();
        if flushed.is_ok() || self.full_disk().is_none() {
            return flushed;
        }
        // Rows need little room, and there may be some.
        crate::space::ballast::give_up_if_full(self.dir());
        let _ = self.admit(ROOM_FOR_ROWS);
        self.0.database.flush()
    }

    /// Asks for room for so many bytes that are about to be written: something is collected first if
    /// need be. Who writes through this crate need not ask.
    pub fn admit(&self, bytes: u64) -> Result<(), Error> {
        Ok(self.0.state.room().admit(bytes)?)
    }

    /// Sees to it that there is some room for a command that is about to begin. Blocks only if there
    /// is none.
    pub fn make_room(&self) -> Result<(), Error> {
        Ok(self.0.space.shared().room_to_begin()?)
    }

    /// Removes what is in the trash now, for who needs the room.
    pub fn empty_trash(&self) {
        self.0.state.trash().empty_now();
    }

    /// Watches a command that writes to these. `stop` is called when it must end for want of room.
    pub fn watch(
        &self,
        scratches: &[&Scratch],
        volumes: &[&Volume],
        stop: impl FnOnce(Full) + Send + 'static,
    ) -> RunWatch {
        self.0.space.shared().watch(scratches, volumes, stop)
    }

    /// The limits that the store was opened with.
    pub fn limits(&self) -> Limits {
        self.0.space.shared().limits()
    }

    /// Size of the disk in bytes.
    pub fn disk_size(&self) -> u64 {
        self.0.space.shared().disk_size()
    }

    /// Says so if hardly anything is free on the disk.
    pub fn full_disk(&self) -> Option<Full> {
        self.0.space.shared().full_disk()
    }

    /// Remembered results and cache volumes, oldest first.
    pub fn entries(&self) -> Vec<CacheEntry> {
        self.0.space.shared().list()
    }

    /// Collects what nothing needs and what these limits ask for. What was freed is free when this
    /// returns.
    pub fn collect(&self, limits: &Limits) -> Collected {
        let collected = self.0.space.shared().collect(limits);
        self.0.state.trash().empty_now();
        collected
    }

    /// Has what is not needed any more collected in the background, in memory too.
    pub fn collect_soon(&self) {
        self.0.space.shared().collect_soon();
        self.0.state.durable().calm_down();
    }

    /// The snapshot with its layers kept on disk as long as it is held; none if one is gone. Comes
    /// before any other look at a snapshot that was read from a record.
    pub fn pin(&self, snapshot: &Snapshot) -> Option<Snapshot> {
        snapshot.layers().iter().map(|layer| self.0.pin(layer)).collect()
    }

    /// The same for one layer.
    pub fn pin_layer(&self, layer: &LayerRef) -> Option<LayerRef> {
        self.0.pin(layer)
    }

    /// Keeps a blob on disk; none if it is gone.
    pub fn pin_blob(&self, id: &BlobId) -> Option<BlobPin> {
        let pin = self.0.state.pins().blobs.pin(*id)?;
        blob::place(&self.0.state, id).exists().then(|| BlobPin::new(pin))
    }

    /// Whether all layers of a snapshot are on disk.
    pub fn has(&self, snapshot: &Snapshot) -> bool {
        snapshot.layers().iter().all(|layer| self.0.has_layer(layer))
    }

    /// The merged tree of a snapshot, to be read without mounting it.
    pub fn view(&self, snapshot: &Snapshot) -> View {
        View::new(self.0.tree(snapshot), &self.0.inspector)
    }

    /// Whether a snapshot was found to have lost a layer, so that it must be made again.
    pub fn is_lost(&self, snapshot: &Snapshot) -> bool {
        self.0.inspector.is_lost(snapshot)
    }

    /// Whether a blob was found missing or damaged, so that it must be made again.
    pub fn is_lost_blob(&self, id: &BlobId) -> bool {
        self.0.state.durable().is_lost(Content::Blob(*id))
    }

    /// Compares all layers of a snapshot with what they were, for who has met something odd in it.
    pub fn examine(&self, snapshot: &Snapshot) -> Result<(), Error> {
        self.0.inspector.require_again(snapshot.layers())
    }

    /// Begins changes of a tree that become one new layer.
    pub fn edit(&self, base: &Snapshot) -> Result<Editor, Error> {
        Editor::new(self.clone(), base)
    }

    /// Begins a layer that is written entry by entry.
    pub fn new_layer(&self) -> Result<LayerBuilder, Error> {
        LayerBuilder::new(self.clone())
    }

    /// Begins a layer that another program writes.
    pub fn new_folder(&self) -> Result<Folder, Error> {
        Folder::new(self.clone())
    }

    /// Mounts a writable tree over a snapshot, for one exec. Mount points that are missing in the
    /// tree are provided without becoming part of the result.
    pub fn begin(&self, base: &Snapshot, targets: &[Target]) -> Result<Scratch, Error> {
        Scratch::new(self.clone(), base, targets)
    }

    /// Makes ready what the next [`Store::begin`] needs, for who has to wait anyway.
    pub fn begin_ahead(&self) {
        self.0.spares.fill(&self.0.state);
    }

    /// The same tree with few enough layers to be mounted.
    pub fn mountable(&self, snapshot: &Snapshot) -> Result<Snapshot, Error> {
        self.0.shorten(snapshot)
    }

    /// Mounts a snapshot that cannot be changed. The mount does not keep its layers: hold what
    /// [`Store::mountable`] gives as long as it is in use.
    pub fn mount_read_only(&self, snapshot: &Snapshot) -> Result<Mount, Error> {
        scratch::mount_read_only(&self.0, snapshot)
    }

    /// A mount of one file or directory inside a mount that is attached nowhere.
    pub fn part(&self, whole: &Mount, path: &str) -> Result<Mount, Error> {
        whole.at(path, &self.0.state)
    }

    /// One layer that stands for a list of layers, oldest first. Equal lists give the same layer.
    pub fn merge(&self, layers: &[LayerRef]) -> Result<LayerRef, Error> {
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

    /// The sum of a tree that users see: over the same as its digest, in the form that programs of
    /// this ecosystem know, which takes reading every file once.
    pub fn tree_sum(&self, snapshot: &Snapshot) -> Result<Digest, Error> {
        digest::sum::of_tree(&self.0, snapshot)
    }

    /// The same of one file.
    pub fn file_sum(&self, snapshot: &Snapshot, path: &str) -> Result<Digest, Error> {
        digest::sum::of_file(&self.0, snapshot, path)
    }

    /// Stores bytes by their sha256.
    pub fn put_blob(&self, bytes: &[u8]) -> Result<BlobId, Error> {
        blob::put(&self.0.state, bytes)
    }

    /// Opens a blob for reading.
    pub fn open_blob(&self, id: &BlobId) -> Result<File, Error> {
        let opened = blob::open(&self.0.state, id);
        if matches!(opened, Err(Error::MissingBlob(_))) {
            self.0.inspector.lose_blob(*id, "it is not there");
        }
        opened
    }

    /// The bytes of a blob, compared with its name as they are read.
    pub fn read_blob(&self, id: &BlobId) -> Result<Verified, Error> {
        let file = self.open_blob(id)?;
        let content = Content::Blob(*id);
        Ok(Verified::new(file, content, Some(*id.as_bytes()), &self.0.inspector))
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
    /// with this owner if one is given. Volumes of one key with different numbers are different.
    pub fn seeded_cache_volume(
        &self,
        (key, number): (&str, u32),
        source: &View,
        owner: Option<Owner>,
    ) -> Result<Volume, Error> {
        Volume::open_seeded(&self.0.state, (key, number), source, owner)
    }

    /// The mutable folder in which a copy of something elsewhere is kept up, by the name of that. It counts as cache
    /// and is collected like results, by its last use, unless somebody holds it; no volume of a user is the same.
    pub fn mirror(&self, of: &str) -> Result<Volume, Error> {
        Volume::open_mirror(&self.0.state, of)
    }

    /// Where the mirror of something is while somebody holds it.
    pub fn mirror_path(&self, of: &str) -> PathBuf {
        Volume::mirror_path(&self.0.state, of)
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

    /// The layer with a pin; none if it is gone.
    pub(crate) fn pin(&self, layer: &LayerRef) -> Option<LayerRef> {
        let pinned = layer.with_pin(self.state.pins().layers.pin(layer.id)?);
        self.has_layer(&pinned).then_some(pinned)
    }

    /// Whether a layer is there; says nothing about what is in it.
    pub(crate) fn has_layer(&self, layer: &LayerRef) -> bool {
        self.inspector.has_layer(layer)
    }

    /// Refuses a list that names a layer which is missing or damaged.
    pub(crate) fn require(&self, list: &[LayerRef]) -> Result<(), Error> {
        self.inspector.require(list)
    }

    /// The snapshot with a new layer on top.
    pub(crate) fn commit(
        self: &Arc<Self>,
        base: &Snapshot,
        layer: LayerRef,
        entries: Option<u64>,
    ) -> Snapshot {
        self.layers.note(layer.id, 0, entries);
        self.settle(base.push(layer))
    }
}
