//! Rows about the manifests of layers: which layers are on disk, and what is in them.

use super::batch::Batch;
use super::{Database, now, schema};
use crate::snapshot::LayerId;
use protocol::Digest;
use rusqlite::{Connection, Params, Transaction};
use std::collections::HashMap;

/// One row of `manifests`; none for one that is removed.
pub(super) type Manifest = Option<(Digest, i64)>;

impl Database {
    /// Digest of the manifest of a layer; none for a layer that no committed row names.
    pub(crate) fn manifest(&self, layer: LayerId) -> Option<Digest> {
        if let Some(pending) = self.queue.pending(|batch| batch.manifests.get(&layer).copied()) {
            return pending.map(|(digest, _)| digest);
        }
        let sql = "SELECT digest FROM manifests WHERE layer = ?1";
        self.read(sql, [layer.as_bytes()], |row| row.get(0)).map(Digest::from_bytes)
    }

    /// Notes the manifest of a layer that was read as a whole at this time, in seconds since 1970.
    pub(crate) fn put_manifest(&self, layer: LayerId, digest: Digest, read: i64) {
        self.queue.put(|batch| {
            batch.manifests.insert(layer, Some((digest, read)));
        });
    }

    pub(crate) fn remove_manifest(&self, layer: LayerId) {
        self.queue.put(|batch| {
            batch.manifests.insert(layer, None);
        });
    }

    /// All layers that committed rows may name; none if that cannot be found out.
    pub(crate) fn manifests(&self) -> Option<HashMap<LayerId, Digest>> {
        self.rows("SELECT layer, digest FROM manifests", []).map(|rows| rows.into_iter().collect())
    }

    /// The layer that was read as a whole longest ago, if that was before a time.
    pub(crate) fn next_to_scrub(&self, before: i64) -> Option<(LayerId, Digest)> {
        let mut skipped = vec![];
        self.queue.each_pending(|batch| skipped.extend(batch.manifests.keys().copied()));
        let sql = "SELECT layer, digest FROM manifests WHERE scrubbed < ?1
                   ORDER BY scrubbed LIMIT ?2";
        let limit = skipped.len() as i64 + 1;
        let oldest = self.rows(sql, [before, limit])?;
        oldest.into_iter().find(|(layer, _)| !skipped.contains(layer))
    }

    /// Layers with the digests of their manifests; none if they cannot be read.
    fn rows(&self, sql: &str, parameters: impl Params) -> Option<Vec<(LayerId, Digest)>> {
        let read = |file: Connection| {
            let mut statement = file.prepare(sql)?;
            let rows = statement.query_map(parameters, |row| {
                Ok((LayerId::from_bytes(row.get(0)?), Digest::from_bytes(row.get(1)?)))
            })?;
            rows.collect()
        };
        match schema::open_reader(&self.path).and_then(read) {
            Ok(rows) => Some(rows),
            Err(error) => self.miss(&error),
        }
    }
}

/// Writes the rows of a batch; those of layers that were collected go.
pub(super) fn put(transaction: &Transaction<'_>, batch: &Batch) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO manifests(layer, digest, scrubbed) VALUES (?1, ?2, ?3)";
    let mut put = transaction.prepare_cached(sql)?;
    let mut remove = transaction.prepare_cached("DELETE FROM manifests WHERE layer = ?1")?;
    for (layer, row) in &batch.manifests {
        match row {
            Some((digest, read)) => {
                put.execute((layer.as_bytes(), digest.as_bytes(), read.min(&now())))?
            }
            None => remove.execute([layer.as_bytes()])?,
        };
    }
    for layer in &batch.gone {
        remove.execute([layer.as_bytes()])?;
    }
    Ok(())
}
