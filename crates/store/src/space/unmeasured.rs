//! [`Unmeasured`]: what was made or changed and has not been measured yet.
//!
//! Noting is all that happens where somebody waits; measuring is for a thread of the store.

use crate::blob::BlobId;
use crate::snapshot::LayerId;
use crate::volume::VolumeId;
use std::collections::HashSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What is to be measured.
#[derive(Default)]
pub(crate) struct Unmeasured {
    noted: Mutex<Noted>,
    more: Condvar,
}

#[derive(Default)]
struct Noted {
    things: HashSet<Thing>,
    /// Whether nobody is to wait for more.
    closed: bool,
}

/// Something that takes room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Thing {
    Layer(LayerId),
    Blob(BlobId),
    Volume(VolumeId),
}

impl Thing {
    /// The layer, if it is one.
    pub(super) fn layer(&self) -> Option<LayerId> {
        match self {
            Self::Layer(id) => Some(*id),
            _ => None,
        }
    }
}

impl Unmeasured {
    fn lock(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, thing: Thing) {
        let mut noted = self.lock();
        let first = noted.things.is_empty();
        noted.things.insert(thing);
        drop(noted);
        if first {
            self.more.notify_all();
        }
    }

    /// Notes a layer that is new, or whose files got names elsewhere.
    pub(crate) fn note_layer(&self, id: LayerId) {
        self.note(Thing::Layer(id));
    }

    pub(crate) fn note_blob(&self, id: BlobId) {
        self.note(Thing::Blob(id));
    }

    /// Notes a volume that somebody may have written to.
    pub(crate) fn note_volume(&self, id: VolumeId) {
        self.note(Thing::Volume(id));
    }

    /// Waits until something is noted, or for so long.
    pub(super) fn wait(&self, time: Duration) {
        let idle = |noted: &mut Noted| noted.things.is_empty() && !noted.closed;
        drop(self.more.wait_timeout_while(self.lock(), time, idle));
    }

    /// From now on nobody waits.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.more.notify_all();
    }

    /// One thing that was noted.
    pub(super) fn take(&self) -> Option<Thing> {
        let mut noted = self.lock();
        let thing = noted.things.iter().next().copied()?;
        noted.things.remove(&thing);
        Some(thing)
    }
}
