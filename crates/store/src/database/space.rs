//! Rows that say what is needed and how much room it takes, and their going.

use super::batch::Batch;
use super::{Database, schema};
use crate::snapshot::LayerId;
use crate::space::Measure;
use protocol::Digest;
use rusqlite::{Connection, Transaction};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError};

/// What is known of a remembered result besides the result.
#[derive(Clone, Debug)]
pub(crate) struct ActionRow {
    pub(crate) key: Digest,
    pub(crate) kind: String,
    pub(crate) label: String,
    /// Nanoseconds since 1970.
    pub(crate) created: i64,
    pub(crate) last_used: i64,
    /// Encoded; see `Needs`.
    pub(crate) needs: Vec<u8>,
    /// Whether it survives the end of the process.
    pub(crate) committed: bool,
}

impl Database {
    /// Every remembered result; none if they cannot all be read. A row that is put while this runs
    /// may be missing.
    pub(crate) fn actions(&self) -> Option<Vec<ActionRow>> {
        // What waits first, then the file: a row that is committed between the two is seen.
        let mut rows = HashMap::new();
        let (mut removed, mut forgotten) = (HashSet::new(), HashMap::new());
        self.queue.each_pending(|batch| {
            pending(batch, &mut rows, &mut removed);
            forgotten.extend(batch.forgotten.iter().map(|(key, created)| (*key, *created)));
        });
        let read = schema::open_reader(&self.path).and_then(|file| each_action(&file, &mut rows));
        if let Err(error) = read {
            return self.miss(&error);
        }
        removed.iter().for_each(|key| {
            rows.remove(key);
        });
        let uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        let there = |row: &ActionRow| forgotten.get(&row.key) != Some(&row.created);
        let mut rows: Vec<ActionRow> = rows.into_values().filter(there).collect();
        for row in &mut rows {
            row.last_used = row.last_used.max(uses.get(&row.key).copied().unwrap_or(0));
        }
        Some(rows)
    }

    /// Forgets results, unless they were put anew since these rows were read.
    pub(crate) fn forget_actions(&self, rows: &[&ActionRow]) {
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        rows.iter().for_each(|row| {
            uses.remove(&row.key);
        });
        drop(uses);
        self.queue.put(|batch| {
            for row in rows {
                let pending = batch.actions.get(&row.key).and_then(Option::as_ref);
                if pending.is_some_and(|pending| pending.created == row.created) {
                    batch.actions.insert(row.key, None);
                }
                batch.forgotten.insert(row.key, row.created);
            }
        });
    }

    /// How much room layers take, as far as that was measured.
    pub(crate) fn sizes(&self) -> HashMap<LayerId, Arc<Measure>> {
        let read = schema::open_reader(&self.path).and_then(|file| sizes(&file));
        read.unwrap_or_else(|error| {
            self.miss::<()>(&error);
            HashMap::new()
        })
    }

    /// Notes how much room a layer takes. Committed together with other rows.
    pub(crate) fn put_size(&self, layer: LayerId, measure: Arc<Measure>) {
        self.queue.touch(|batch| batch.sizes.insert(layer, measure).is_none());
    }

    /// Forgets all that is known of layers.
    pub(crate) fn forget_layers(&self, layers: &[LayerId]) {
        self.queue.put(|batch| {
            batch.merges.retain(|_, (layer, _)| !layers.contains(layer));
            for layer in layers {
                batch.sizes.remove(layer);
                batch.gone.insert(*layer);
            }
        });
    }
}

fn pending(batch: &Batch, rows: &mut HashMap<Digest, ActionRow>, removed: &mut HashSet<Digest>) {
    for (key, row) in &batch.actions {
        removed.remove(key);
        let Some(row) = row else {
            rows.remove(key);
            removed.insert(*key);
            continue;
        };
        let row = ActionRow {
            key: *key,
            kind: row.kind.to_owned(),
            label: row.label.clone(),
            created: row.created,
            last_used: row.created,
            needs: row.needs.clone(),
            committed: false,
        };
        rows.insert(*key, row);
    }
}

fn each_action(file: &Connection, rows: &mut HashMap<Digest, ActionRow>) -> rusqlite::Result<()> {
    let sql = "SELECT key, kind, label, created, last_used, needs FROM actions";
    let mut statement = file.prepare(sql)?;
    let mut found = statement.query([])?;
    while let Some(row) = found.next()? {
        let key = Digest::from_bytes(row.get(0)?);
        if rows.contains_key(&key) {
            continue;
        }
        let row = ActionRow {
            key,
            kind: row.get(1)?,
            label: row.get(2)?,
            created: row.get(3)?,
            last_used: row.get(4)?,
            needs: row.get(5)?,
            committed: true,
        };
        rows.insert(key, row);
    }
    Ok(())
}

fn sizes(file: &Connection) -> rusqlite::Result<HashMap<LayerId, Arc<Measure>>> {
    let mut statement = file.prepare("SELECT layer, bytes, shared FROM sizes")?;
    let mut found = statement.query([])?;
    let mut sizes = HashMap::new();
    while let Some(row) = found.next()? {
        let bytes: i64 = row.get(1)?;
        let shared: Vec<u8> = row.get(2)?;
        if let Some(measure) = Measure::decode(bytes.unsigned_abs(), &shared) {
            sizes.insert(LayerId::from_bytes(row.get(0)?), Arc::new(measure));
        }
    }
    Ok(sizes)
}

/// Writes what a batch has of all this.
pub(super) fn put(transaction: &Transaction<'_>, batch: &Batch) -> rusqlite::Result<()> {
    let mut put = transaction.prepare_cached("INSERT OR REPLACE INTO sizes VALUES (?1, ?2, ?3)")?;
    for (layer, measure) in &batch.sizes {
        put.execute((layer.as_bytes(), measure.own as i64, measure.encode_shared()))?;
    }
    let sql = "DELETE FROM actions WHERE key = ?1 AND created = ?2";
    let mut forget = transaction.prepare_cached(sql)?;
    for (key, created) in &batch.forgotten {
        forget.execute((key.as_bytes(), created))?;
    }
    let mut unmerge = transaction.prepare_cached("DELETE FROM merges WHERE layer = ?1")?;
    let mut unmeasure = transaction.prepare_cached("DELETE FROM sizes WHERE layer = ?1")?;
    for layer in &batch.gone {
        unmerge.execute([layer.to_string()])?;
        unmeasure.execute([layer.as_bytes()])?;
    }
    Ok(())
}
