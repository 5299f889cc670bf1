//! [`Inspector`]: whether layers and blobs are there, and are what they were.
//!
//! A layer is looked into once in the life of the engine, when it is first used; after that only
//! whether it is still there is asked. What is missing or damaged is lost: it is taken out of the
//! way, every result that needs it becomes a miss, and who holds a value made of it is told by
//! [`Error::MissingLayer`] to make that again.

use super::check::check;
use super::ledger::{Content, Durable};
use super::manifest::{self, Sum};
use super::survey::Sums;
use crate::Error;
use crate::blob::{self, BlobId};
use crate::database::Database;
use crate::snapshot::{LayerId, LayerRef, Snapshot};
use crate::state::{self, StateDir};
use crate::view::join;
use protocol::Digest;
use rustix::fs::{AtFlags, OFlags, statat};
use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Manifests whose digests are kept in memory, for who reads one file after the other.
const KEPT: usize = 4;
/// Digests of a layer with more files are not kept: the scrub alone verifies those.
const MOST_FILES: usize = 250_000;

/// Looks after layers and blobs.
pub(crate) struct Inspector {
    pub(crate) state: Arc<StateDir>,
    pub(crate) database: Arc<Database>,
    checking: Mutex<HashSet<LayerId>>,
    checked: Condvar,
    sums: Mutex<VecDeque<(Digest, Arc<Sums>)>>,
}

impl Inspector {
    pub(crate) fn new(state: Arc<StateDir>, database: Arc<Database>) -> Self {
        let (checking, checked, sums) = (Mutex::default(), Condvar::new(), Mutex::default());
        Self { state, database, checking, checked, sums }
    }

    fn durable(&self) -> &Durable {
        self.state.durable()
    }

    /// Whether a layer is there; says nothing about what is in it.
    pub(crate) fn has_layer(&self, layer: &LayerRef) -> bool {
        !self.durable().is_lost(Content::Layer(layer.id)) && self.is_there(layer)
    }

    fn is_there(&self, layer: &LayerRef) -> bool {
        if layer.root.is_empty() {
            // The path is ours, so one call without opening is enough.
            let path = state::layer_path(layer.id);
            return statat(self.state.fd(), path, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        }
        self.state.open_at(&state::layer_root(layer), OFlags::PATH | OFlags::DIRECTORY).is_ok()
    }

    /// Refuses a list with a layer that is missing or damaged: reading on would show a tree without
    /// what that layer has. All of them are looked at, so that all that is lost is found at once.
    pub(crate) fn require(&self, list: &[LayerRef]) -> Result<(), Error> {
        // Nearly always; the rest is for when it is not so.
        if self.durable().trusts_all(list) && list.iter().all(|layer| self.is_there(layer)) {
            return Ok(());
        }
        let lost = list.iter().filter(|layer| !self.is_whole(layer)).map(|layer| layer.id);
        match lost.fold(None, |first, id| first.or(Some(id))) {
            Some(id) => Err(Error::MissingLayer(id)),
            None => Ok(()),
        }
    }

    /// The same, but everything is compared once more, for who has reason to doubt.
    pub(crate) fn require_again(&self, list: &[LayerRef]) -> Result<(), Error> {
        for layer in list {
            if let Some(digest) = self.database.manifest(layer.id)
                && let Err(reason) = check(&self.state, layer.id, &digest)
            {
                self.lose_layer(layer.id, &reason);
            }
        }
        self.require(list)
    }

    fn is_whole(&self, layer: &LayerRef) -> bool {
        if self.durable().is_lost(Content::Layer(layer.id)) {
            return false;
        }
        if !self.is_there(layer) {
            self.lose_layer(layer.id, "it is not there");
            return false;
        }
        if self.durable().is_trusted(layer.id) {
            return true;
        }
        let _claim = Claim::new(self, layer.id);
        if self.durable().is_trusted(layer.id) {
            return true;
        }
        let checked = match self.database.manifest(layer.id) {
            Some(digest) => check(&self.state, layer.id, &digest),
            None => Err("nobody has said what is in it".to_owned()),
        };
        match checked {
            Ok(()) => self.durable().trust(layer.id),
            Err(reason) => self.lose_layer(layer.id, &reason),
        }
        !self.durable().is_lost(Content::Layer(layer.id))
    }

    /// Whether a snapshot names a layer that was found missing or damaged.
    pub(crate) fn is_lost(&self, snapshot: &Snapshot) -> bool {
        let lost = |layer: &LayerRef| self.durable().is_lost(Content::Layer(layer.id));
        snapshot.layers().iter().any(lost)
    }

    /// Takes a damaged layer out of the way. One that was in use may be mounted somewhere: it stays
    /// on disk until the next start.
    pub(crate) fn lose_layer(&self, id: LayerId, reason: &str) {
        let used = self.durable().is_trusted(id);
        if !self.durable().lose(Content::Layer(id)) {
            return;
        }
        tracing::warn!("layer {id} is lost and will be made again: {reason}");
        match used {
            true => self.database.remove_manifest(id),
            false => discard_layer(&self.state, &self.database, id),
        }
    }

    /// Takes a damaged blob away. Who has it open reads on.
    pub(crate) fn lose_blob(&self, id: BlobId, reason: &str) {
        if self.durable().lose(Content::Blob(id)) {
            tracing::warn!("blob {id} is lost and will be made again: {reason}");
            self.state.trash().discard(&blob::place(&self.state, &id));
        }
    }

    /// The digest of a file in a layer, if it is known.
    pub(crate) fn sum(&self, layer: &LayerRef, path: &[u8]) -> Option<Sum> {
        self.sums(layer.id)?.get(&join(layer.root.as_bytes(), path))
    }

    /// The digests of all files in a layer, for who reads many.
    pub(crate) fn sums(&self, layer: LayerId) -> Option<Arc<Sums>> {
        let digest = self.database.manifest(layer)?;
        if let Some((_, sums)) = self.kept().iter().find(|(kept, _)| *kept == digest) {
            return Some(Arc::clone(sums));
        }
        let sums = Arc::new(self.read_sums(layer, &digest)?);
        let mut kept = self.kept();
        kept.truncate(KEPT - 1);
        kept.push_front((digest, Arc::clone(&sums)));
        Some(sums)
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<(Digest, Arc<Sums>)>> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_sums(&self, layer: LayerId, digest: &Digest) -> Option<Sums> {
        let mut sums = Sums::default();
        for directory in manifest::read(self.state.path(), layer, digest).ok()? {
            let directory = directory.ok()?;
            for entry in &directory.entries {
                if let Some(sum) = entry.facts.as_ref().and_then(|facts| facts.sum) {
                    sums.insert(&join(&directory.path, &entry.name), sum);
                }
            }
            if sums.len() > MOST_FILES {
                return Some(Sums::default());
            }
        }
        Some(sums)
    }
}

/// Removes a layer that nobody uses, with all that belongs to it.
pub(crate) fn discard_layer(state: &StateDir, database: &Database, id: LayerId) {
    state.trash().discard(&state.path().join(state::layer_path(id)));
    if let Some(digest) = database.manifest(id) {
        state.trash().discard(&manifest::place(state.path(), id, &digest));
        database.remove_manifest(id);
    }
    state.durable().forget(Content::Layer(id));
}

/// Claims the check of a layer until dropped; others that want the same wait.
struct Claim<'a> {
    inspector: &'a Inspector,
    layer: LayerId,
}

impl<'a> Claim<'a> {
    fn new(inspector: &'a Inspector, layer: LayerId) -> Self {
        let mut checking = inspector.checking.lock().unwrap_or_else(PoisonError::into_inner);
        while !checking.insert(layer) {
            let waited = inspector.checked.wait(checking);
            checking = waited.unwrap_or_else(PoisonError::into_inner);
        }
        Self { inspector, layer }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut checking = self.inspector.checking.lock().unwrap_or_else(PoisonError::into_inner);
        checking.remove(&self.layer);
        drop(checking);
        self.inspector.checked.notify_all();
    }
}
