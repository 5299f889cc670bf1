//! Keeping the list of layers short.
//!
//! Every commit adds a layer, mounting costs time per layer and the kernel takes at most 500. So
//! layers are merged in tiers as in a log-structured merge tree: [`FAN_IN`] layers of one level
//! become one layer of the next. A chain of a thousand steps then has a few dozen layers, and each
//! file is linked once per level. Layers of many entries are left alone, because linking them again
//! costs more than one more layer does; only when the list nears the kernel's limit are they merged
//! too. A merged layer is a cache of the list it stands for and is found again by that list.

use crate::snapshot::{LayerId, LayerRef, Snapshot};
use crate::store::Inner;
use crate::view::Tree;
use crate::{Error, merge, state};
use protocol::Digest;
use rustix::fs::{Dir, FileType};
use rustix::io::Errno;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Layers of one level that become one of the next.
const FAN_IN: usize = 16;
/// Layers with this many entries are not merged in tiers.
const MANY_ENTRIES: u64 = 2_000;
/// Most layers a snapshot keeps. The kernel takes 500, and a stub and an upper come on top.
const MOST_LAYERS: usize = 400;
/// Layers that become one when the list is too long.
const LAST_RESORT: usize = 64;
/// Facts are forgotten all at once beyond this many, so that memory stays bounded.
const MOST_FACTS: usize = 32_768;

/// What is known of layers, and which merges are under way.
#[derive(Default)]
pub(crate) struct Layers {
    facts: Mutex<HashMap<LayerRef, Facts>>,
    merging: Mutex<HashSet<Digest>>,
    merged: Condvar,
}

#[derive(Clone, Copy)]
struct Facts {
    level: u8,
    many_entries: Option<bool>,
}

impl Layers {
    fn facts(&self) -> MutexGuard<'_, HashMap<LayerRef, Facts>> {
        let mut facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        if facts.len() > MOST_FACTS {
            facts.clear();
        }
        facts
    }

    /// Notes a layer that was just made.
    pub(crate) fn note(&self, id: LayerId, level: u8, entries: Option<u64>) {
        let many_entries = entries.map(|entries| entries >= MANY_ENTRIES);
        self.facts().insert(LayerRef::whole(id), Facts { level, many_entries });
    }

    fn merging(&self) -> MutexGuard<'_, HashSet<Digest>> {
        self.merging.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Claims a merge until dropped; others that want the same wait.
struct Claim<'a> {
    layers: &'a Layers,
    input: Digest,
}

impl<'a> Claim<'a> {
    fn new(layers: &'a Layers, input: Digest) -> Self {
        let mut merging = layers.merging();
        while !merging.insert(input) {
            merging = layers.merged.wait(merging).unwrap_or_else(PoisonError::into_inner);
        }
        Self { layers, input }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.layers.merging().remove(&self.input);
        self.layers.merged.notify_all();
    }
}

impl Inner {
    /// The snapshot after a commit, with its newest layers merged where a tier is full.
    pub(crate) fn settle(self: &Arc<Self>, snapshot: Snapshot) -> Snapshot {
        let mut layers = snapshot.layers().to_vec();
        let before = layers.len();
        while let Some(level) = self.full_tier(&layers) {
            let from = layers.len() - FAN_IN;
            match self.merge(&layers[from..], level.saturating_add(1)) {
                Ok(merged) => {
                    layers.truncate(from);
                    layers.push(merged);
                }
                Err(error) => {
                    // The unmerged list is as good, only longer.
                    tracing::warn!("cannot merge layers: {error}");
                    self.leave_alone(&layers[from..]);
                    break;
                }
            }
        }
        if layers.len() == before { snapshot } else { layers.into_iter().collect() }
    }

    /// The snapshot with few enough layers to be mounted.
    pub(crate) fn shorten(self: &Arc<Self>, snapshot: &Snapshot) -> Result<Snapshot, Error> {
        let mut layers = snapshot.layers().to_vec();
        while layers.len() > MOST_LAYERS {
            let from = self.cheapest_window(&layers);
            let window = &layers[from..from + LAST_RESORT];
            let level = window.iter().map(|layer| self.level(layer)).max().unwrap_or(0);
            let merged = self.merge(window, level.saturating_add(1))?;
            layers.splice(from..from + LAST_RESORT, [merged]);
        }
        if layers.len() == snapshot.layers().len() {
            return Ok(snapshot.clone());
        }
        Ok(layers.into_iter().collect())
    }

    /// One layer that stands for a list of them. Equal lists give the same layer.
    pub(crate) fn merge(self: &Arc<Self>, list: &[LayerRef], level: u8) -> Result<LayerRef, Error> {
        if let [layer] = list
            && layer.root.is_empty()
        {
            return Ok(layer.clone());
        }
        let input = digest_of(list);
        let _claim = Claim::new(&self.layers, input);
        if let Some((id, level)) = self.database.merge(&input)
            && let Some(layer) = self.pin(&LayerRef::whole(id))
        {
            self.layers.note(id, level, None);
            return Ok(layer);
        }
        self.require(list)?;
        let merged = merge::merge(&Tree::new(Arc::clone(&self.state), list))?;
        self.database.put_merge(input, merged.layer.id, level);
        self.layers.note(merged.layer.id, level, Some(merged.entries));
        Ok(merged.layer)
    }

    /// The level of the newest layers if there are enough of them to be merged.
    fn full_tier(&self, layers: &[LayerRef]) -> Option<u8> {
        let newest = layers.len().checked_sub(FAN_IN).map(|from| &layers[from..])?;
        let level = self.level(newest.last()?);
        let alike = newest.iter().rev().all(|layer| self.level(layer) == level);
        let small = || newest.iter().rev().all(|layer| !self.has_many_entries(layer));
        (alike && small()).then_some(level)
    }

    /// Start of the run of layers that have been merged least often, the oldest of equals.
    fn cheapest_window(&self, layers: &[LayerRef]) -> usize {
        let levels: Vec<u32> = layers.iter().map(|layer| self.level(layer).into()).collect();
        let cost = |from: &usize| levels[*from..*from + LAST_RESORT].iter().sum::<u32>();
        (0..=layers.len() - LAST_RESORT).min_by_key(cost).unwrap_or(0)
    }

    fn level(&self, layer: &LayerRef) -> u8 {
        if let Some(facts) = self.layers.facts().get(layer) {
            return facts.level;
        }
        let level = self.database.level(layer.id);
        self.layers.facts().insert(layer.without_pin(), Facts { level, many_entries: None });
        level
    }

    fn has_many_entries(&self, layer: &LayerRef) -> bool {
        let known = self.layers.facts().get(layer).and_then(|facts| facts.many_entries);
        if let Some(known) = known {
            return known;
        }
        // A layer that cannot be counted is not touched either.
        let many = self.count(layer).unwrap_or(MANY_ENTRIES) >= MANY_ENTRIES;
        let level = self.level(layer);
        self.layers.facts().insert(layer.without_pin(), Facts { level, many_entries: Some(many) });
        many
    }

    fn leave_alone(&self, layers: &[LayerRef]) {
        for layer in layers {
            let level = self.level(layer);
            let facts = Facts { level, many_entries: Some(true) };
            self.layers.facts().insert(layer.without_pin(), facts);
        }
    }

    /// Counts entries, but no further than matters.
    fn count(&self, layer: &LayerRef) -> Result<u64, Errno> {
        let root = state::layer_root(layer);
        if self.state.is_apart(&self.state.open_directory(&root)?) {
            return Ok(MANY_ENTRIES);
        }
        let mut count = 0;
        let mut ahead = vec![root];
        while let Some(path) = ahead.pop() {
            for entry in Dir::read_from(self.state.open_directory(&path)?)? {
                let entry = entry?;
                let name = entry.file_name().to_bytes();
                if matches!(name, b"." | b"..") {
                    continue;
                }
                count += 1;
                if count >= MANY_ENTRIES {
                    return Ok(count);
                }
                if entry.file_type() == FileType::Directory {
                    ahead.push(crate::view::join(&path, name));
                }
            }
        }
        Ok(count)
    }
}

/// What names a list of layers.
pub(crate) fn digest_of(list: &[LayerRef]) -> Digest {
    let mut digest = Digest::builder("layers");
    for layer in list {
        digest.bytes(layer.id.as_bytes()).text(&layer.root);
    }
    digest.finish()
}
