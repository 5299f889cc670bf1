//! Collecting: what goes, in which order, and how.
//!
//! A layer goes with every remembered result that needs it, so the order is one of layers, blobs and
//! volumes: first what nothing needs, then what was not used for long, then the rest, always the
//! least recently used first, and of equals what the fewest results need; volumes last. What somebody works with stays. Files go before rows: a
//! row without its files is a miss, and on a full disk no row can be written before a file is gone.

use super::{Limits, Shared, Thing};
use crate::blob;
use crate::database::ActionRow;
use crate::needs::Needs;
use crate::pins::Pins;
use crate::snapshot::LayerId;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::sync::PoisonError;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A result that needs nothing is forgotten when it was not used for so long.
const NEEDLESS_KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// What a collection did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Bytes that are free now or soon.
    pub bytes: u64,
    /// Remembered results that were forgotten.
    pub entries: u64,
}

/// Notes names that rows are put with until it is dropped.
struct Deciding<'a>(&'a Pins);

impl<'a> Deciding<'a> {
    fn new(pins: &'a Pins) -> Self {
        pins.layers.begin_deciding();
        pins.blobs.begin_deciding();
        Self(pins)
    }
}

impl Drop for Deciding<'_> {
    fn drop(&mut self) {
        self.0.layers.end_deciding();
        self.0.blobs.end_deciding();
    }
}

/// How soon something goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    /// Nothing needs it.
    Unneeded,
    /// It was not used for long; last use in nanoseconds since 1970.
    Old(i64),
    Recent(i64),
    Volume(i64),
}

impl Shared {
    /// Collects what nothing needs, and then as much as the limits ask for.
    pub(crate) fn collect(&self, limits: &Limits) -> Collected {
        let _one_at_a_time = self.collecting.lock().unwrap_or_else(PoisonError::into_inner);
        super::ballast::give_up_if_full(self.state.path());
        let _deciding = Deciding::new(self.state.pins());
        self.measure_all();
        // Without all rows there is no telling what is needed.
        let Some(rows) = self.database.actions() else { return Collected::default() };
        let rows = Rows::new(rows);
        let mut run = Run { shared: self, gone: HashSet::new(), collected: Collected::default() };
        let disk = super::disk::Disk::of(self.state.path());
        let order = self.order(&rows, limits);
        run.remove(order.iter().filter(|(turn, _)| *turn == Turn::Unneeded), 0);
        let freed = run.collected.bytes;
        if let Some(may_stay) = limits.may_stay(self.used(), disk.free + freed) {
            run.remove(order.iter().filter(|(turn, _)| *turn != Turn::Unneeded), may_stay);
        }
        let everything = limits.max_used == 0;
        run.forget(&rows, everything);
        run.collected
    }

    /// Everything that may go, soonest first.
    fn order(&self, rows: &Rows, limits: &Limits) -> Vec<(Turn, Thing)> {
        let now = nanoseconds(SystemTime::now());
        let recent = now.saturating_sub(i64::try_from(limits.keep.as_nanos()).unwrap_or(i64::MAX));
        let turn = |thing: Thing| match rows.used.get(&thing) {
            None => Turn::Unneeded,
            Some((used, _)) if *used < recent => Turn::Old(*used),
            Some((used, _)) => Turn::Recent(*used),
        };
        let ledger = self.ledger();
        let layers = ledger.layers().keys().map(|id| Thing::Layer(*id));
        let blobs = ledger.blobs().keys().map(|id| Thing::Blob(*id));
        let mut order: Vec<(Turn, Thing)> =
            layers.chain(blobs).map(|thing| (turn(thing), thing)).collect();
        for id in ledger.volumes().keys() {
            let key = self.state.path().join(id.folder()).join("key");
            let used = fs::metadata(key).and_then(|key| key.modified()).unwrap_or(UNIX_EPOCH);
            order.push((Turn::Volume(nanoseconds(used)), Thing::Volume(*id)));
        }
        drop(ledger);
        let needed_by = |thing: &Thing| rows.used.get(thing).map_or(0, |(_, results)| *results);
        order.sort_by_cached_key(|(turn, thing)| (*turn, needed_by(thing)));
        order
    }
}

/// Remembered results, and the things that they need: when they were last used, and by how many
/// results they are needed.
struct Rows {
    rows: Vec<(ActionRow, Needs)>,
    used: HashMap<Thing, (i64, u32)>,
}

impl Rows {
    fn new(rows: Vec<ActionRow>) -> Self {
        let mut used: HashMap<Thing, (i64, u32)> = HashMap::new();
        let decode = |row: ActionRow| {
            let needs = Needs::decode(&row.needs).unwrap_or_default();
            for thing in things(&needs) {
                let (last, results) = used.entry(thing).or_insert((row.last_used, 0));
                *last = row.last_used.max(*last);
                *results += 1;
            }
            (row, needs)
        };
        let rows = rows.into_iter().map(decode).collect();
        Self { rows, used }
    }
}

/// One collection.
struct Run<'a> {
    shared: &'a Shared,
    gone: HashSet<Thing>,
    collected: Collected,
}

impl Run<'_> {
    /// Removes one thing after the other until no more than this is used.
    fn remove<'t>(&mut self, things: impl Iterator<Item = &'t (Turn, Thing)>, may_stay: u64) {
        for (_, thing) in things {
            if self.shared.used() <= may_stay {
                break;
            }
            self.remove_one(*thing);
        }
    }

    fn remove_one(&mut self, thing: Thing) {
        let Some(freed) = self.shared.remove(thing) else { return };
        self.collected.bytes += freed;
        self.gone.insert(thing);
    }

    /// Forgets results that need something which is gone, and then removes what only they needed.
    fn forget(&mut self, rows: &Rows, everything: bool) {
        let expired = nanoseconds(SystemTime::now()) - NEEDLESS_KEPT.as_nanos() as i64;
        let (mut dead, mut needed) = (vec![], HashSet::new());
        for (row, needs) in &rows.rows {
            let needless = needs.layers.is_empty() && needs.blobs.is_empty();
            let useless = needless && (everything || row.last_used < expired);
            if useless || things(needs).any(|thing| self.gone.contains(&thing)) {
                dead.push(row);
            } else {
                needed.extend(things(needs));
            }
        }
        if !dead.is_empty() {
            let only_theirs = rows.used.keys().filter(|thing| !needed.contains(thing));
            let only_theirs: Vec<Thing> =
                only_theirs.filter(|thing| !self.gone.contains(thing)).copied().collect();
            only_theirs.into_iter().for_each(|thing| self.remove_one(thing));
            self.shared.database.forget_actions(&dead);
        }
        let layers: Vec<LayerId> = self.gone.iter().filter_map(Thing::layer).collect();
        if !layers.is_empty() {
            self.shared.database.forget_layers(&layers);
        }
        self.collected.entries = dead.len() as u64;
    }
}

impl Shared {
    /// Renames one thing into the trash unless somebody works with it, and gives what that frees.
    fn remove(&self, thing: Thing) -> Option<u64> {
        let pins = self.state.pins();
        let (trash, root) = (self.state.trash(), self.state.path());
        match thing {
            Thing::Layer(id) => {
                if !pins.layers.claim(id) {
                    return None;
                }
                crate::durable::discard_layer(&self.state, &self.database, id);
                pins.layers.let_go(&id);
                Some(self.ledger().remove_layer(&id))
            }
            Thing::Blob(id) => {
                if !pins.blobs.claim(id) {
                    return None;
                }
                trash.discard(&blob::place(&self.state, &id));
                pins.blobs.let_go(&id);
                Some(self.ledger().remove_blob(&id))
            }
            Thing::Volume(id) => {
                if !pins.volumes.claim(id) {
                    return None;
                }
                trash.discard(&root.join(id.path()));
                let folder = root.join(id.folder());
                if only_has_key(&folder) {
                    trash.discard(&folder);
                }
                pins.volumes.let_go(&id);
                Some(self.ledger().remove_volume(&id))
            }
        }
    }
}

/// Whether no volume is left in the folder of a key.
fn only_has_key(folder: &std::path::Path) -> bool {
    let Ok(mut entries) = fs::read_dir(folder) else { return false };
    entries.all(|entry| entry.is_ok_and(|entry| entry.file_name() == "key"))
}

fn things(needs: &Needs) -> impl Iterator<Item = Thing> {
    let layers = needs.layers.iter().map(|id| Thing::Layer(*id));
    layers.chain(needs.blobs.iter().map(|id| Thing::Blob(*id)))
}

fn nanoseconds(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as i64
}
