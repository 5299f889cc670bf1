//! Pins: what somebody works with is not collected.
//!
//! A layer or a blob with a pin stays on disk whatever no longer names it. Whoever wants to read
//! something takes the pin first and looks second: collecting claims a name under the same lock, so
//! either the pin is refused and the thing counts as missing, or it stays until the pin is dropped.
//!
//! Names that are put into the database while a collection is deciding are noted too, because it
//! has read the database before.

use crate::blob::BlobId;
use crate::snapshot::LayerId;
use crate::volume::VolumeId;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

/// Keeps one layer on disk until it and its clones are dropped.
pub(crate) type LayerPin = Pin<LayerId>;

/// Keeps one cache volume on disk until it and its clones are dropped.
pub(crate) type VolumePin = Pin<VolumeId>;

/// Keeps one blob on disk until it and its clones are dropped.
#[derive(Clone)]
pub struct BlobPin(#[expect(dead_code, reason = "holding it is its use")] Pin<BlobId>);

/// Who holds what.
#[derive(Default)]
pub(crate) struct Pins {
    pub(crate) layers: Arc<Table<LayerId>>,
    pub(crate) blobs: Arc<Table<BlobId>>,
    pub(crate) volumes: Arc<Table<VolumeId>>,
}

/// Keeps one thing until it and its clones are dropped.
pub(crate) struct Pin<K: Copy + Eq + Hash>(Arc<Held<K>>);

struct Held<K: Copy + Eq + Hash> {
    key: K,
    table: Arc<Table<K>>,
}

/// The pins of one kind of thing.
pub(crate) struct Table<K: Copy + Eq + Hash>(Mutex<State<K>>, Condvar);

struct State<K: Copy + Eq + Hash> {
    held: HashMap<K, Weak<Held<K>>>,
    /// Made by this process, and neither pinned nor named by a row so far.
    fresh: HashSet<K>,
    /// Claimed by a collection, and gone when it lets go.
    going: HashSet<K>,
    /// Named by rows that were put since a collection began to decide.
    named: Option<HashSet<K>>,
    /// How often the last pin of something was dropped.
    released: u64,
}

impl<K: Copy + Eq + Hash> Default for Table<K> {
    fn default() -> Self {
        let (held, fresh, going) = (HashMap::new(), HashSet::new(), HashSet::new());
        Self(Mutex::new(State { held, fresh, going, named: None, released: 0 }), Condvar::new())
    }
}

impl<K: Copy + Eq + Hash> Table<K> {
    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pins a name; none if it is being collected. Says nothing about whether it is on disk.
    pub(crate) fn pin(self: &Arc<Self>, key: K) -> Option<Pin<K>> {
        let mut state = self.lock();
        if state.going.contains(&key) {
            return None;
        }
        state.fresh.remove(&key);
        if let Some(held) = state.held.get(&key).and_then(Weak::upgrade) {
            return Some(Pin(held));
        }
        let held = Arc::new(Held { key, table: Arc::clone(self) });
        state.held.insert(key, Arc::downgrade(&held));
        Some(Pin(held))
    }

    /// Pins a name that was just invented, so that nothing else can be after it.
    pub(crate) fn pin_new(self: &Arc<Self>, key: K) -> Pin<K> {
        let held = Arc::new(Held { key, table: Arc::clone(self) });
        self.lock().held.insert(key, Arc::downgrade(&held));
        Pin(held)
    }

    /// Keeps what is about to be made until it is pinned or named by a row. Waits while an earlier
    /// thing of that name is being collected.
    pub(crate) fn keep_fresh(&self, key: K) {
        let mut state = self.lock();
        while state.going.contains(&key) {
            state = self.1.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.fresh.insert(key);
    }

    /// Notes names of a row that is put now.
    pub(crate) fn name(&self, keys: impl Iterator<Item = K>) {
        let mut state = self.lock();
        for key in keys {
            state.fresh.remove(&key);
            if let Some(named) = &mut state.named {
                named.insert(key);
            }
        }
    }

    /// Waits while it is being collected, and pins it then. For names that come again.
    pub(crate) fn pin_again(self: &Arc<Self>, key: K) -> Pin<K> {
        loop {
            if let Some(pin) = self.pin(key) {
                return pin;
            }
            let state = self.lock();
            let going = |state: &mut State<K>| state.going.contains(&key);
            drop(self.1.wait_while(state, going).unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// From now until [`Table::end_deciding`] names that are put count as needed.
    pub(crate) fn begin_deciding(&self) {
        self.lock().named = Some(HashSet::new());
    }

    pub(crate) fn end_deciding(&self) {
        self.lock().named = None;
    }

    /// Claims a name for a collection; not if somebody works with it or has just named it. Nobody
    /// can pin it until [`Table::let_go`].
    pub(crate) fn claim(&self, key: K) -> bool {
        let mut state = self.lock();
        let named = state.named.as_ref().is_some_and(|named| named.contains(&key));
        let free = !named && !state.held.contains_key(&key) && !state.fresh.contains(&key);
        free && state.going.insert(key)
    }

    /// Ends a claim, when the thing is gone from its place.
    pub(crate) fn let_go(&self, key: &K) {
        self.lock().going.remove(key);
        self.1.notify_all();
    }

    /// How often the last pin of something was dropped.
    pub(crate) fn released(&self) -> u64 {
        self.lock().released
    }

    /// Whether somebody works with it.
    pub(crate) fn is_pinned(&self, key: &K) -> bool {
        let state = self.lock();
        state.held.contains_key(key) || state.fresh.contains(key)
    }
}

impl<K: Copy + Eq + Hash> Clone for Pin<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Copy + Eq + Hash> Drop for Held<K> {
    fn drop(&mut self) {
        let mut state = self.table.lock();
        // A new pin of the same name may have come between the last drop and this lock.
        if state.held.get(&self.key).is_some_and(|held| held.strong_count() == 0) {
            state.held.remove(&self.key);
            state.released += 1;
        }
    }
}

impl std::fmt::Debug for BlobPin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BlobPin")
    }
}

impl BlobPin {
    pub(crate) fn new(pin: Pin<BlobId>) -> Self {
        Self(pin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Arc<Table<u32>> {
        Arc::default()
    }

    #[test]
    fn what_is_pinned_cannot_be_claimed_and_what_is_claimed_cannot_be_pinned() {
        let table = table();
        let pin = table.pin(1).unwrap();
        let clone = pin.clone();
        drop(pin);
        assert!(table.is_pinned(&1) && !table.claim(1));
        drop(clone);
        assert!(!table.is_pinned(&1) && table.claim(1));
        assert!(!table.claim(1), "it is claimed already");
        assert!(table.pin(1).is_none());
        table.let_go(&1);
        assert!(table.pin(1).is_some());
        assert_eq!(table.released(), 2);
    }

    #[test]
    fn a_pin_that_comes_while_another_goes_is_not_lost() {
        let table = table();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        let pin = table.pin(1).unwrap();
                        assert!(table.is_pinned(&1));
                        drop(pin);
                    }
                });
            }
        });
        assert!(table.claim(1));
    }

    #[test]
    fn what_is_fresh_or_named_meanwhile_stays() {
        let table = table();
        table.keep_fresh(1);
        assert!(!table.claim(1));
        table.name([1].into_iter());
        assert!(table.claim(1), "a row names it now, and the collection has read the rows");
        table.begin_deciding();
        table.name([2].into_iter());
        assert!(!table.claim(2));
        table.end_deciding();
        assert!(table.claim(2));
    }
}
