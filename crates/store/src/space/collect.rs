//! Collecting: what goes, in which order, and how.
//!
//! A layer goes with every remembered result that needs it, so the order is one of layers, blobs and
//! volumes: first what nothing needs, then what was not used for long, then the rest, always the
//! least recently used first, and of equals what the fewest results need; volumes of users last, while a mirror, which can
//! be fetched again, takes its turn among the results. What somebody works with stays. Files go before rows: a
//! row without its files is a miss, and on a full disk no row can be written before a file is gone.

use super::{Limits, Shared, Thing};
use crate::blob;
use crate::database::ActionRow;
use crate::needs::Needs;
use crate::pins::Pins;
use crate::snapshot::LayerId;
use crate::volume::MIRROR;
use protocol::Digest;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
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
        self.collected_at.store(self.released(), Ordering::Relaxed);
        super::ballast::give_up_if_full(self.state.path());
        let _deciding = Deciding::new(self.state.pins());
        self.measure_all();
        // Without all rows there is no telling what is needed.
        let mut rows = Rows::default();
        if !self.database.each_action(&mut |row| rows.add(&row)) {
            return Collected::default();
        }
        let mut run = Run { shared: self, gone: HashSet::new(), collected: Collected::default() };
        let disk = super::disk::Disk::of(self.state.path());
        let order = self.order(&rows, limits);
        run.remove(order.iter().filter(|(turn, _)| *turn == Turn::Unneeded), 0);
        let freed = run.collected.bytes;
        if let Some(may_stay) = limits.may_stay(self.used(), disk.free + freed) {
            run.remove(order.iter().filter(|(turn, _)| *turn != Turn::Unneeded), may_stay);
        }
        let everything = limits.max_used == 0;
        if everything {
            self.plans.forget();
        }
        run.forget(&rows, everything);
        run.collected
    }

    /// Everything that may go, soonest first.
    fn order(&self, rows: &Rows, limits: &Limits) -> Vec<(Turn, Thing)> {
        let now = nanoseconds(SystemTime::now());
        let recent = now.saturating_sub(i64::try_from(limits.keep.as_nanos()).unwrap_or(i64::MAX));
        let by_use = |used: i64| if used < recent { Turn::Old(used) } else { Turn::Recent(used) };
        let turn = |thing: Thing| match rows.of(&thing) {
            None => Turn::Unneeded,
            Some(needed) => by_use(needed.last_used),
        };
        let ledger = self.ledger();
        let layers = ledger.layers().keys().map(|id| Thing::Layer(*id));
        let blobs = ledger.blobs().keys().map(|id| Thing::Blob(*id));
        let mut order: Vec<(Turn, Thing)> =
            layers.chain(blobs).map(|thing| (turn(thing), thing)).collect();
        for id in ledger.volumes().keys() {
            let key = self.state.path().join(id.folder()).join("key");
            let used = fs::metadata(key).and_then(|key| key.modified()).unwrap_or(UNIX_EPOCH);
            let used = nanoseconds(used);
            let turn = if id.number == MIRROR { by_use(used) } else { Turn::Volume(used) };
            order.push((turn, Thing::Volume(*id)));
        }
        drop(ledger);
        let needed_by = |thing: &Thing| rows.of(thing).map_or(0, |needed| needed.results);
        order.sort_by_cached_key(|(turn, thing)| (*turn, needed_by(thing)));
        order
    }
}

/// Remembered results and the things that they need, in little memory: there may be very many.
#[derive(Default)]
struct Rows {
    rows: Vec<Row>,
    needed: Vec<Needed>,
    numbers: HashMap<Thing, u32>,
}

struct Row {
    key: Digest,
    created: i64,
    last_used: i64,
    /// By their numbers.
    needs: Box<[u32]>,
}

/// Something that results need.
struct Needed {
    thing: Thing,
    last_used: i64,
    /// How many results need it.
    results: u32,
}

impl Rows {
    fn add(&mut self, row: &ActionRow) {
        let needs = Needs::decode(&row.needs).unwrap_or_default();
        let layers = needs.layers.into_iter().map(Thing::Layer);
        let things = layers.chain(needs.blobs.into_iter().map(Thing::Blob));
        let needs = things.map(|thing| self.need(thing, row.last_used)).collect();
        let (key, created, last_used) = (row.key, row.created, row.last_used);
        self.rows.push(Row { key, created, last_used, needs });
    }

    /// Counts a need, and gives the number of what is needed.
    fn need(&mut self, thing: Thing, last_used: i64) -> u32 {
        let number = *self.numbers.entry(thing).or_insert(self.needed.len() as u32);
        match self.needed.get_mut(number as usize) {
            Some(needed) => {
                needed.last_used = needed.last_used.max(last_used);
                needed.results += 1;
            }
            None => self.needed.push(Needed { thing, last_used, results: 1 }),
        }
        number
    }

    fn of(&self, thing: &Thing) -> Option<&Needed> {
        self.needed.get(*self.numbers.get(thing)? as usize)
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
        let gone: Vec<bool> = rows.needed.iter().map(|n| self.gone.contains(&n.thing)).collect();
        let mut needed = vec![false; gone.len()];
        let mut dead = vec![];
        for row in &rows.rows {
            let useless = row.needs.is_empty() && (everything || row.last_used < expired);
            if useless || row.needs.iter().any(|number| gone[*number as usize]) {
                dead.push((row.key, row.created));
            } else {
                row.needs.iter().for_each(|number| needed[*number as usize] = true);
            }
        }
        if !dead.is_empty() {
            let states = gone.iter().zip(&needed).zip(&rows.needed);
            let only_theirs = states.filter(|((gone, needed), _)| !**gone && !**needed);
            only_theirs.for_each(|(_, needed)| self.remove_one(needed.thing));
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

fn nanoseconds(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as i64
}
