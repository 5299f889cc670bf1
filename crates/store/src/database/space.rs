//! Rows that say what is needed and how much room it takes, and their going.

use super::batch::Batch;
use super::{Database, schema};
use crate::snapshot::LayerId;
use crate::space::Measure;
use protocol::Digest;
use rusqlite::{Connection, Transaction};
use std::collections::HashMap;
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
    /// Hands out every remembered result, one after the other, because there may be very many. Says
    /// whether that were all; a row that is put while this runs may be missing.
    pub(crate) fn each_action(&self, take: &mut dyn FnMut(ActionRow)) -> bool {
        // What waits first, then the file: a row that is committed between the two is seen.
        let mut pending = Pending::default();
        self.queue.each_pending(|batch| pending.add(batch));
        let mut told = |mut row: ActionRow| {
            let uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
            let used = uses.get(&row.key).copied().unwrap_or(0);
            drop(uses);
            row.last_used = row.last_used.max(used);
            if pending.forgotten.get(&row.key) != Some(&row.created) {
                take(row);
            }
        };
        let read = schema::open_reader(&self.path)
            .and_then(|file| stored_actions(&file, &pending.actions, &mut told));
        for (_, row) in std::mem::take(&mut pending.actions) {
            row.into_iter().for_each(&mut told);
        }
        match read {
            Ok(()) => true,
            Err(error) => {
                self.miss::<()>(&error);
                false
            }
        }
    }

    /// Forgets results by key and time, unless they were put anew since then.
    pub(crate) fn forget_actions(&self, rows: &[(Digest, i64)]) {
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        rows.iter().for_each(|(key, _)| {
            uses.remove(key);
        });
        drop(uses);
        self.queue.put(|batch| {
            for (key, created) in rows {
                let pending = batch.actions.get(key).and_then(Option::as_ref);
                if pending.is_some_and(|pending| pending.created == *created) {
                    batch.actions.insert(*key, None);
                }
                batch.forgotten.insert(*key, *created);
            }
        });
    }

    /// How much room layers take, as far as that was measured.
    pub(crate) fn sizes(&self) -> HashMap<LayerId, Arc<Measure>> {
        let read = schema::open_reader(&self.path).and_then(|file| sizes(&file));
        read.unwrap_or_else(|error| {
            // What is missing is measured again, so this alone is no reason to begin anew.
            tracing::warn!("cannot read sizes from `{}`: {error}", self.path.display());
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

/// Rows that are not committed.
#[derive(Default)]
struct Pending {
    /// None for a row that is removed.
    actions: HashMap<Digest, Option<ActionRow>>,
    forgotten: HashMap<Digest, i64>,
}

impl Pending {
    /// Adds a batch, which is newer than those before.
    fn add(&mut self, batch: &Batch) {
        for (key, row) in &batch.actions {
            let row = row.as_ref().map(|row| ActionRow {
                key: *key,
                kind: row.kind.to_owned(),
                label: row.label.clone(),
                created: row.created,
                last_used: row.created,
                needs: row.needs.clone(),
                committed: false,
            });
            self.actions.insert(*key, row);
        }
        self.forgotten.extend(batch.forgotten.iter().map(|(key, created)| (*key, *created)));
    }
}

/// Hands out the rows of the file that are not among the others.
fn stored_actions(
    file: &Connection,
    others: &HashMap<Digest, Option<ActionRow>>,
    take: &mut dyn FnMut(ActionRow),
) -> rusqlite::Result<()> {
    let sql = "SELECT key, kind, label, created, last_used, needs FROM actions";
    let mut statement = file.prepare(sql)?;
    let mut found = statement.query([])?;
    while let Some(row) = found.next()? {
        let key = Digest::from_bytes(row.get(0)?);
        if others.contains_key(&key) {
            continue;
        }
        take(ActionRow {
            key,
            kind: row.get(1)?,
            label: row.get(2)?,
            created: row.get(3)?,
            last_used: row.get(4)?,
            needs: row.get(5)?,
            committed: true,
        });
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
