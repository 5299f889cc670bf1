//! The one database of the engine: memo, call records and what is known of layers.
//!
//! ```text
//! db.sqlite (WAL, user_version = SCHEMA)
//!   actions(key, kind, label, created, last_used, needs, value)
//!                                               what effectful work has given, and which layers
//!                                               and blobs that is worth nothing without
//!   sizes(layer, bytes, shared)                 how much room layers take
//!   manifests(layer, digest, scrubbed)          layers that are on disk, the digest of what is
//!                                               written beside each, when it was read as a whole
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
mod manifests;
mod schema;
mod seal;
mod space;
mod writer;

pub(crate) use space::ActionRow;

use crate::durable::Durable;
use crate::snapshot::LayerId;
use crate::{Error, Remembered};
use batch::{Action, Batch};
use protocol::Digest;
use rusqlite::{Connection, OptionalExtension, Params, Row};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};
use writer::Queue;

/// Read connections that are kept; more are opened when more readers come at once.
const POOL: usize = 4;
/// A use is written down again only after so many seconds, so that a hit costs no write.
const TOUCH_AFTER: i64 = 3600;
/// Characters of a label that are kept.
const LONGEST_LABEL: usize = 200;

pub(crate) struct Database {
    path: PathBuf,
    readers: Mutex<Vec<Connection>>,
    queue: Arc<Queue>,
    /// When actions were used last, in nanoseconds since 1970: the file knows it less exactly.
    uses: Mutex<HashMap<Digest, i64>>,
    writer: Option<JoinHandle<()>>,
    word: Option<String>,
}

impl Database {
    /// Opens the database in the state folder, a damaged one anew. What rows name is brought to disk
    /// by `durable` before they are committed.
    pub(crate) fn open(state: &Path, durable: Arc<Durable>) -> Result<Self, Error> {
        let path = state.join("db.sqlite");
        let (connection, word) = schema::open_or_renew(&path)?;
        let queue = Arc::new(Queue::default());
        let worker = Arc::clone(&queue);
        let marker = schema::damage_marker(&path);
        let told = Arc::downgrade(&queue);
        durable.on_progress(move || {
            if let Some(queue) = told.upgrade() {
                queue.look_again();
            }
        });
        let writer = std::thread::Builder::new()
            .name("database".to_owned())
            .spawn(move || worker.run(connection, &marker, &durable))
            .map_err(Error::io("start the writer of", &path))?;
        let (readers, uses) = (Mutex::default(), Mutex::default());
        Ok(Self { path, readers, queue, uses, writer: Some(writer), word })
    }

    /// What the user is to be told about how it was opened.
    pub(crate) fn word(&self) -> Option<&str> {
        self.word.as_deref()
    }

    pub(crate) fn action(&self, key: &Digest) -> Option<Vec<u8>> {
        if let Some(pending) = self.queue.pending(|batch| batch.actions.get(key).cloned()) {
            let row = pending?;
            self.note_use(*key, row.created);
            return Some(row.value.clone());
        }
        let sql = "SELECT value, last_used FROM actions WHERE key = ?1";
        let row = self.read(sql, [key.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)));
        let (value, last_used): (Vec<u8>, i64) = row?;
        let value = self.unseal(key, value)?;
        self.note_use(*key, last_used);
        Some(value)
    }

    pub(crate) fn put_action(&self, key: Digest, remembered: Remembered) {
        self.queue.put_action(key, row(remembered));
    }

    pub(crate) fn put_unhurried(&self, key: Digest, remembered: Remembered) {
        self.queue.put_unhurried(key, row(remembered));
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
        let record = self.unseal(digest, record)?;
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
        let record = self.unseal(&digest, record)?;
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

    /// Notes that an action was used: at once in memory, and in the file if that was long ago.
    fn note_use(&self, key: Digest, last_used: i64) {
        let now = now_in_nanoseconds();
        self.uses.lock().unwrap_or_else(PoisonError::into_inner).insert(key, now);
        if now - last_used > TOUCH_AFTER * 1_000_000_000 {
            self.queue.touch(|batch| batch.used_actions.insert(key, now).is_none());
        }
    }

    fn touch_call(&self, digest: Digest, last_used: i64) {
        if now() - last_used > TOUCH_AFTER {
            self.queue.touch(|batch| batch.used_calls.insert(digest));
        }
    }

    /// The value of a row; one that is damaged is a miss, and the whole file is not trusted any more.
    fn unseal(&self, key: &Digest, stored: Vec<u8>) -> Option<Vec<u8>> {
        let value = seal::unseal(key, stored);
        if value.is_none() {
            tracing::warn!("a row of `{}` is damaged", self.path.display());
            schema::mark_damaged(&schema::damage_marker(&self.path));
        }
        value
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
pub(crate) fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() as i64
}

fn row(remembered: Remembered) -> Arc<Action> {
    let Remembered { value, kind, mut label, needs } = remembered;
    if let Some((end, _)) = label.char_indices().nth(LONGEST_LABEL) {
        label.truncate(end);
    }
    Arc::new(Action { value, kind, label, needs, created: now_in_nanoseconds() })
}

/// Nanoseconds since 1970.
fn now_in_nanoseconds() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as i64
}

#[cfg(test)]
mod tests;
