//! The contents of the store as a user sees them: remembered results and cache volumes.
//!
//! Each inode is charged once, to the oldest result that needs it, so that sizes add up.

use super::{Shared, Thing};
use crate::database::ActionRow;
use crate::needs::Needs;
use crate::volume::MIRROR;
use std::collections::HashSet;
use std::fs;
use std::time::UNIX_EPOCH;

/// One remembered result or cache volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheEntry {
    /// What kind of thing, in one word.
    pub kind: String,
    /// A line for people.
    pub label: String,
    /// Bytes on disk that no older entry accounts for.
    pub bytes: u64,
    /// Nanoseconds since 1970.
    pub created: i64,
    /// Nanoseconds since 1970.
    pub last_used: i64,
    /// Whether somebody works with it now, so that it cannot be collected.
    pub in_use: bool,
    /// Whether it survives the end of the engine, however it ends.
    pub committed: bool,
}

/// What has been charged already.
#[derive(Default)]
struct Charged {
    things: HashSet<Thing>,
    inodes: HashSet<u64>,
}

impl Shared {
    /// Everything, oldest first.
    pub(crate) fn list(&self) -> Vec<CacheEntry> {
        self.measure_all();
        let mut rows = vec![];
        self.database.each_action(&mut |row| rows.push(row));
        rows.sort_by_key(|row| (row.created, row.key));
        let mut charged = Charged::default();
        let mut entries: Vec<CacheEntry> =
            rows.into_iter().map(|row| self.entry(row, &mut charged)).collect();
        entries.extend(self.volume_entries());
        let ledger = self.ledger();
        let rest = ledger.layers().keys().map(|id| Thing::Layer(*id));
        let rest: Vec<Thing> =
            rest.chain(ledger.blobs().keys().map(|id| Thing::Blob(*id))).collect();
        drop(ledger);
        let bytes = rest.into_iter().map(|thing| self.charge(thing, &mut charged)).sum();
        if bytes > 0 {
            entries.push(CacheEntry {
                kind: "internal".to_owned(),
                label: "trees and streams that no result needs: in use, or about to go".to_owned(),
                bytes,
                created: 0,
                last_used: 0,
                in_use: true,
                committed: false,
            });
        }
        entries
    }

    fn entry(&self, row: ActionRow, charged: &mut Charged) -> CacheEntry {
        let needs = Needs::decode(&row.needs).unwrap_or_default();
        let pins = self.state.pins();
        let in_use = (!needs.layers.is_empty() || !needs.blobs.is_empty())
            && needs.layers.iter().all(|layer| pins.layers.is_pinned(layer))
            && needs.blobs.iter().all(|blob| pins.blobs.is_pinned(blob));
        let layers = needs.layers.into_iter().map(Thing::Layer);
        let things = layers.chain(needs.blobs.into_iter().map(Thing::Blob));
        let bytes = things.map(|thing| self.charge(thing, charged)).sum();
        CacheEntry {
            kind: row.kind,
            label: row.label,
            bytes,
            created: row.created,
            last_used: row.last_used,
            in_use,
            committed: row.committed,
        }
    }

    /// What a thing takes of what nobody was charged for.
    fn charge(&self, thing: Thing, charged: &mut Charged) -> u64 {
        if !charged.things.insert(thing) {
            return 0;
        }
        let ledger = self.ledger();
        match thing {
            Thing::Layer(id) => ledger.layers().get(&id).map_or(0, |measure| {
                let shared = measure.shared.iter();
                let fresh = shared.filter(|(inode, _)| charged.inodes.insert(*inode));
                measure.own + fresh.map(|(_, bytes)| bytes).sum::<u64>()
            }),
            Thing::Blob(id) => ledger.blobs().get(&id).copied().unwrap_or(0),
            Thing::Volume(id) => ledger.volumes().get(&id).copied().unwrap_or(0),
        }
    }

    fn volume_entries(&self) -> Vec<CacheEntry> {
        let mut volumes: Vec<_> =
            self.ledger().volumes().iter().map(|(id, bytes)| (*id, *bytes)).collect();
        volumes.sort_unstable();
        let entry = |(id, bytes): (crate::volume::VolumeId, u64)| {
            let folder = self.state.path().join(id.folder());
            let key = fs::read_to_string(folder.join("key")).unwrap_or_default().replace('\0', "/");
            let time = |path: &std::path::Path| {
                let time = fs::metadata(path).and_then(|found| found.modified()).ok()?;
                Some(time.duration_since(UNIX_EPOCH).ok()?.as_nanos() as i64)
            };
            let kind = if id.number == MIRROR { "mirror" } else { "cache-volume" };
            CacheEntry {
                kind: kind.to_owned(),
                label: match id.number {
                    0 => format!("cache volume {key}"),
                    MIRROR => format!("mirror of {key}"),
                    number => format!("cache volume {key}, copy {number}"),
                },
                bytes,
                created: time(&folder).unwrap_or(0),
                last_used: time(&folder.join("key")).unwrap_or(0),
                in_use: self.state.pins().volumes.is_pinned(&id),
                committed: true,
            }
        };
        volumes.into_iter().map(entry).collect()
    }
}
