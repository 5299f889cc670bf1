//! [`Batch`]: rows that are not committed yet.

use crate::snapshot::LayerId;
use protocol::Digest;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Rows that wait for the writer. Values are shared, so that reading one copies it outside the lock.
#[derive(Default)]
pub(super) struct Batch {
    /// New values; none for a row that is removed.
    pub(super) actions: HashMap<Digest, Option<Arc<[u8]>>>,
    pub(super) calls: HashMap<Digest, Arc<[u8]>>,
    pub(super) handles: HashMap<u64, Digest>,
    pub(super) merges: HashMap<Digest, (LayerId, u8)>,
    pub(super) digests: HashMap<Digest, Digest>,
    pub(super) used_actions: HashSet<Digest>,
    pub(super) used_calls: HashSet<Digest>,
}

impl Batch {
    /// Whether nothing is in it that must be kept. A use alone can wait for the next real row.
    pub(super) fn is_empty(&self) -> bool {
        self.actions.is_empty()
            && self.calls.is_empty()
            && self.merges.is_empty()
            && self.digests.is_empty()
    }

    /// Whether uses were noted.
    pub(super) fn has_uses(&self) -> bool {
        !self.used_actions.is_empty() || !self.used_calls.is_empty()
    }

    pub(super) fn by_handle(&self, handle: u64) -> Option<(Digest, Arc<[u8]>)> {
        let digest = self.handles.get(&handle)?;
        Some((*digest, Arc::clone(self.calls.get(digest)?)))
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
    }
}
