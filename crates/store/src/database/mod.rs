//! The one database of the engine: memo, call records and what is known of layers.
//!
//! ```text
//! db.sqlite (WAL, user_version = SCHEMA)
//!   actions(key, value, created, last_used)     what effectful work has given
//!   calls(digest, handle, record, last_used)    the calls behind ids that were handed out
//!   merges(input, layer, level)                 which layer stands for a list of layers
//!   digests(snapshot, tree)                     content digest of a list of layers
//!   meta(name, value)                           facts about the store itself
//! ```
//!
//! Writes never wait: rows go into a [`Batch`] in memory, which reads consult first, and one thread
//! commits batches. The database is a cache: a damaged one is moved aside and begun anew, a row that
//! cannot be read is a miss. It must never be the reason that the engine does not start.

mod batch;
mod schema;
mod writer;

use crate::Error;
use crate::snapshot::LayerId;
use batch::Batch;
use protocol::Digest;
use rusqlite::{Connection, OptionalExtension, Params, Row};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};
use writer::Queue;

/// Read connections that are kept; more are opened when more readers come at once.
const POOL: usize = 4;
/// A use is written down again only after so many seconds, so that a hit costs no write.
const TOUCH_AFTER: i64 = 3600;

pub(crate) struct Database {
    path: PathBuf,
    readers: Mutex<Vec<Connection>>,
    queue: Arc<Queue>,
    writer: Option<JoinHandle<()>>,
}

impl Database {
    /// Opens the database in the state folder, a damaged one anew.
    pub(crate) fn open(state: &Path) -> Result<Self, Error> {
        let path = state.join("db.sqlite");
        let connection = schema::open_or_renew(&path)?;
        let queue = Arc::new(Queue::default());
        let worker = Arc::clone(&queue);
        let marker = schema::damage_marker(&path);
        let writer = std::thread::Builder::new()
            .name("database".to_owned())
            .spawn(move || worker.run(connection, &marker))
            .map_err(Error::io("start the writer of", &path))?;
        Ok(Self { path, readers: Mutex::default(), queue, writer: Some(writer) })
    }

    pub(crate) fn action(&self, key: &Digest) -> Option<Vec<u8>> {
        if let Some(pending) = self.queue.pending(|batch| batch.actions.get(key).cloned()) {
            return pending.map(|value| value.to_vec());
        }
        let sql = "SELECT value, last_used FROM actions WHERE key = ?1";
        let row = self.read(sql, [key.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)));
        let (value, last_used): (Vec<u8>, i64) = row?;
        if now() - last_used > TOUCH_AFTER {
            self.queue.touch(|batch| batch.used_actions.insert(*key));
        }
        Some(value)
    }

    pub(crate) fn put_action(&self, key: Digest, value: Vec<u8>) {
        self.queue.put(|batch| {
            batch.actions.insert(key, Some(value.into()));
        });
    }

    pub(crate) fn remove_action(&self, key: &Digest) {
        self.queue.put(|batch| {
            batch.actions.insert(*key, None);
        });
    }

    pub(crate) fn call(&self, digest: &Digest) -> Option<Vec<u8>> {
        if let Some(pending) = self.queue.pending(|batch| batch.calls.get(digest).cloned()) {
            return Some(pending.to_vec());
        }
        let sql = "SELECT record, last_used FROM calls WHERE digest = ?1";
        let row = self.read(sql, [digest.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)));
        let (record, last_used): (Vec<u8>, i64) = row?;
        self.touch_call(*digest, last_used);
        Some(record)
    }

    pub(crate) fn call_by_handle(&self, handle: u64) -> Option<(Digest, Vec<u8>)> {
        if let Some(found) = self.queue.pending(|batch| batch.by_handle(handle)) {
            return Some((found.0, found.1.to_vec()));
        }
        let sql = "SELECT record, last_used, digest FROM calls WHERE handle = ?1";
        let row = self.read(sql, [handle as i64], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get::<_, [u8; 32]>(2)?))
        });
        let (record, last_used, digest): (Vec<u8>, i64, _) = row?;
        let digest = Digest::from_bytes(digest);
        self.touch_call(digest, last_used);
        Some((digest, record))
    }

    pub(crate) fn put_calls(&self, records: Vec<(Digest, Vec<u8>)>) {
        self.queue.put(|batch| {
            for (digest, record) in records {
                batch.handles.insert(digest.handle(), digest);
                batch.calls.insert(digest, record.into());
            }
        });
    }

    /// The layer that stands for a list of layers, with its merge level.
    pub(crate) fn merge(&self, input: &Digest) -> Option<(LayerId, u8)> {
        if let Some(found) = self.queue.pending(|batch| batch.merges.get(input).copied()) {
            return Some(found);
        }
        let sql = "SELECT layer, level FROM merges WHERE input = ?1";
        let row = self.read(sql, [input.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)));
        let (layer, level): (String, u8) = row?;
        Some((layer.parse().ok()?, level))
    }

    pub(crate) fn put_merge(&self, input: Digest, layer: LayerId, level: u8) {
        self.queue.put(|batch| {
            batch.merges.insert(input, (layer, level));
        });
    }

    /// How often the layers below this one have been merged; 0 for one that was written directly.
    pub(crate) fn level(&self, layer: LayerId) -> u8 {
        let pending = |batch: &Batch| {
            batch.merges.values().find(|(merged, _)| *merged == layer).map(|(_, level)| *level)
        };
        if let Some(level) = self.queue.pending(pending) {
            return level;
        }
        let sql = "SELECT level FROM merges WHERE layer = ?1";
        self.read(sql, [layer.to_string()], |row| row.get(0)).unwrap_or(0)
    }

    pub(crate) fn tree_digest(&self, snapshot: &Digest) -> Option<Digest> {
        if let Some(found) = self.queue.pending(|batch| batch.digests.get(snapshot).copied()) {
            return Some(found);
        }
        let sql = "SELECT tree FROM digests WHERE snapshot = ?1";
        self.read(sql, [snapshot.as_bytes()], |row| row.get(0)).map(Digest::from_bytes)
    }

    pub(crate) fn put_tree_digest(&self, snapshot: Digest, tree: Digest) {
        self.queue.put(|batch| {
            batch.digests.insert(snapshot, tree);
        });
    }

    /// Returns when everything put before is committed and on disk.
    pub(crate) fn flush(&self) -> Result<(), Error> {
        self.queue.flush()
    }

    fn touch_call(&self, digest: Digest, last_used: i64) {
        if now() - last_used > TOUCH_AFTER {
            self.queue.touch(|batch| batch.used_calls.insert(digest));
        }
    }

    /// One row. What cannot be read is a miss: the database is a cache.
    fn read<T>(
        &self,
        sql: &str,
        key: impl Params,
        take: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Option<T> {
        let pooled = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match pooled.map_or_else(|| schema::open_reader(&self.path), Ok) {
            Ok(connection) => connection,
            Err(error) => return self.miss(&error),
        };
        let row = connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_row(key, take).optional());
        match row {
            Ok(row) => {
                let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
                if readers.len() < POOL {
                    readers.push(connection);
                }
                row
            }
            Err(error) => self.miss(&error),
        }
    }

    fn miss<T>(&self, error: &rusqlite::Error) -> Option<T> {
        tracing::warn!("cannot read `{}`: {error}", self.path.display());
        if schema::is_damage(error) {
            schema::mark_damaged(&schema::damage_marker(&self.path));
        }
        None
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.queue.stop();
        if self.writer.take().is_some_and(|writer| writer.join().is_err()) {
            tracing::warn!("the writer of `{}` panicked", self.path.display());
        }
    }
}

/// Seconds since 1970.
fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() as i64
}

#[cfg(test)]
mod tests;
