//! [`Batch`]: rows that are not committed yet.

use super::manifests::Manifest;
use crate::durable::Stage;
use crate::needs::Needs;
use crate::snapshot::LayerId;
use crate::space::Measure;
use protocol::Digest;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Rows that wait for the writer. Values are shared, so that reading one copies it outside the lock.
#[derive(Default)]
pub(super) struct Batch {
    /// New values; none for a row that is removed.
    pub(super) actions: HashMap<Digest, Option<Arc<Action>>>,
    pub(super) calls: HashMap<Digest, Arc<[u8]>>,
    pub(super) handles: HashMap<u64, Digest>,
    pub(super) merges: HashMap<Digest, (LayerId, u8)>,
    pub(super) digests: HashMap<Digest, Digest>,
    /// When actions were used, in nanoseconds since 1970.
    pub(super) used_actions: HashMap<Digest, i64>,
    pub(super) used_calls: HashSet<Digest>,
    /// How much room layers take; lost without harm.
    pub(super) sizes: HashMap<LayerId, Arc<Measure>>,
    /// Actions whose layers or blobs were collected, with the time at which the row was put.
    pub(super) forgotten: HashMap<Digest, i64>,
    /// Layers that were collected.
    pub(super) gone: HashSet<LayerId>,
    pub(super) manifests: HashMap<LayerId, Manifest>,
}

/// What became of the rows of a batch.
pub(super) struct Split {
    /// Those that may be committed.
    pub(super) ready: Batch,
    /// Names of those that wait for their bytes.
    pub(super) waiting: Vec<Digest>,
    /// How many named something that will never be on disk.
    pub(super) dropped: usize,
}

/// One row of `actions`.
pub(super) struct Action {
    pub(super) value: Vec<u8>,
    pub(super) kind: &'static str,
    pub(super) label: String,
    pub(super) needs: Vec<u8>,
    /// When it was put, in nanoseconds since 1970.
    pub(super) created: i64,
}

impl Batch {
    /// Whether nothing is in it that must be kept. A use alone can wait for the next real row.
    pub(super) fn is_empty(&self) -> bool {
        self.actions.is_empty()
            && self.calls.is_empty()
            && self.merges.is_empty()
            && self.digests.is_empty()
            && self.forgotten.is_empty()
            && self.gone.is_empty()
            && self.manifests.is_empty()
    }

    /// Whether uses were noted.
    pub(super) fn has_uses(&self) -> bool {
        !self.used_actions.is_empty() || !self.used_calls.is_empty() || !self.sizes.is_empty()
    }

    pub(super) fn by_handle(&self, handle: u64) -> Option<(Digest, Arc<[u8]>)> {
        let digest = self.handles.get(&handle)?;
        Some((*digest, Arc::clone(self.calls.get(digest)?)))
    }

    /// Takes out what may be committed: rows that name layers or blobs only when those are on disk.
    pub(super) fn take_ready(&mut self, stage: &dyn Fn(&Digest, &Needs) -> Stage) -> Split {
        let mut ready = std::mem::take(self);
        let (mut waiting, mut failed) = (vec![], HashSet::new());
        let mut is_held = |key: &Digest, needs: &Needs| {
            match stage(key, needs) {
                Stage::Safe => return false,
                Stage::Later => {}
                Stage::Coming => waiting.push(*key),
                Stage::Failed => {
                    failed.insert(*key);
                }
            }
            true
        };
        self.actions.extend(ready.actions.extract_if(|key, row| {
            let needs = row.as_ref().and_then(|row| Needs::decode(&row.needs)).unwrap_or_default();
            is_held(key, &needs)
        }));
        self.merges.extend(
            ready.merges.extract_if(|key, (layer, _)| is_held(key, &Needs::of_layer(*layer))),
        );
        self.actions.retain(|key, _| !failed.contains(key));
        self.merges.retain(|key, _| !failed.contains(key));
        let dropped = failed.len();
        Split { ready, waiting, dropped }
    }

    /// Puts rows back that could not be committed. Rows put since then win.
    pub(super) fn restore(&mut self, older: Self) {
        let newer = std::mem::replace(self, older);
        self.actions.extend(newer.actions);
        self.calls.extend(newer.calls);
        self.handles.extend(newer.handles);
        self.merges.extend(newer.merges);
        self.digests.extend(newer.digests);
        self.used_actions.extend(newer.used_actions);
        self.used_calls.extend(newer.used_calls);
        self.sizes.extend(newer.sizes);
        self.forgotten.extend(newer.forgotten);
        self.gone.extend(newer.gone);
        self.manifests.extend(newer.manifests);
    }
}
