//! The thread that commits, and the rows that wait for it.
//!
//! Rows gather for a moment so that many puts cost one commit. While a batch is being committed it
//! stays visible to readers, and it is dropped only after the commit, so a row is always found in
//! one place or the other. A flush cuts the gathering short.

use super::batch::Batch;
use super::{now, schema};
use crate::Error;
use rusqlite::{Connection, Transaction};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long rows gather. A result must be safe within a second of being usable.
const GATHER: Duration = Duration::from_millis(100);
/// How long the writer waits before it tries again what could not be committed.
const RETRY: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    current: Batch,
    committing: Option<Arc<Batch>>,
    /// Batches the writer has taken, and those it is through with.
    taken: u64,
    done: u64,
    /// Why the last batch could not be committed; its rows are in `current` again.
    failure: Option<String>,
    hurry: bool,
    stop: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks in the rows that are not committed, newest first.
    pub(super) fn pending<T>(&self, look: impl Fn(&Batch) -> Option<T>) -> Option<T> {
        let state = self.lock();
        look(&state.current).or_else(|| state.committing.as_deref().and_then(look))
    }

    /// Adds rows and has them committed soon.
    pub(super) fn put(&self, add: impl FnOnce(&mut Batch)) {
        let mut state = self.lock();
        let idle = state.current.is_empty();
        add(&mut state.current);
        drop(state);
        if idle {
            self.changed.notify_all();
        }
    }

    /// Notes a use, which is committed together with the next rows.
    pub(super) fn touch(&self, note: impl FnOnce(&mut Batch) -> bool) {
        note(&mut self.lock().current);
    }

    pub(super) fn flush(&self) -> Result<(), Error> {
        let mut state = self.lock();
        let target = state.taken + u64::from(!state.current.is_empty());
        if state.done >= target {
            return Ok(());
        }
        state.hurry = true;
        self.changed.notify_all();
        while state.done < target {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        match &state.failure {
            Some(failure) => Err(Error::Commit(failure.clone())),
            None => Ok(()),
        }
    }

    /// Has the writer commit what is left and end.
    pub(super) fn stop(&self) {
        self.lock().stop = true;
        self.changed.notify_all();
    }

    /// The body of the writer's thread.
    pub(super) fn run(&self, mut connection: Connection, damage_marker: &Path) {
        if let Err(error) = schema::expire_calls(&connection) {
            tracing::warn!("cannot expire old call records: {error}");
        }
        while let Some(batch) = self.take() {
            let result = commit(&mut connection, &batch);
            drop(batch);
            if let Err(error) = &result {
                tracing::warn!("cannot commit to the database: {error}");
                if schema::is_damage(error) {
                    schema::mark_damaged(damage_marker);
                }
            }
            self.finish(result);
        }
    }

    /// Waits for rows and moves them to `committing`; nothing when it is time to end.
    fn take(&self) -> Option<Arc<Batch>> {
        let mut state = self.lock();
        while state.current.is_empty() && !state.stop {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let pause = if state.failure.is_some() { RETRY } else { GATHER };
        let until = Instant::now() + pause;
        while !state.hurry && !state.stop {
            let Some(left) = until.checked_duration_since(Instant::now()) else { break };
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        // After a stop a batch that failed is not tried for ever.
        let failed = state.stop && state.failure.is_some();
        if failed || (state.current.is_empty() && !state.current.has_uses()) {
            return None;
        }
        state.hurry = false;
        state.taken += 1;
        let batch = Arc::new(std::mem::take(&mut state.current));
        state.committing = Some(Arc::clone(&batch));
        Some(batch)
    }

    fn finish(&self, result: rusqlite::Result<()>) {
        let mut state = self.lock();
        let batch = state.committing.take();
        state.done = state.taken;
        match result {
            Ok(()) => state.failure = None,
            Err(error) => {
                state.failure = Some(error.to_string());
                if let Some(batch) = batch.and_then(Arc::into_inner) {
                    state.current.restore(batch);
                }
            }
        }
        drop(state);
        self.changed.notify_all();
    }
}

/// Writes a batch. It stays visible to readers until this is over.
fn commit(connection: &mut Connection, batch: &Batch) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    put_actions(&transaction, batch)?;
    put_calls(&transaction, batch)?;
    put_layer_facts(&transaction, batch)?;
    put_uses(&transaction, batch)?;
    transaction.commit()
}

fn put_actions(transaction: &Transaction<'_>, batch: &Batch) -> rusqlite::Result<()> {
    let mut put = transaction.prepare_cached(
        "INSERT INTO actions(key, value, created, last_used) VALUES (?1, ?2, ?3, ?3)
         ON CONFLICT(key) DO UPDATE SET value = ?2, last_used = ?3",
    )?;
    let mut remove = transaction.prepare_cached("DELETE FROM actions WHERE key = ?1")?;
    for (key, value) in &batch.actions {
        match value {
            Some(value) => put.execute((key.as_bytes(), &value[..], now()))?,
            None => remove.execute([key.as_bytes()])?,
        };
    }
    Ok(())
}

fn put_calls(transaction: &Transaction<'_>, batch: &Batch) -> rusqlite::Result<()> {
    let mut put = transaction.prepare_cached(
        "INSERT INTO calls(digest, handle, record, last_used) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT(digest) DO UPDATE SET record = ?3, last_used = ?4",
    )?;
    for (digest, record) in &batch.calls {
        put.execute((digest.as_bytes(), digest.handle() as i64, &record[..], now()))?;
    }
    Ok(())
}

fn put_layer_facts(transaction: &Transaction<'_>, batch: &Batch) -> rusqlite::Result<()> {
    let mut put =
        transaction.prepare_cached("INSERT OR REPLACE INTO merges VALUES (?1, ?2, ?3)")?;
    for (input, (layer, level)) in &batch.merges {
        put.execute((input.as_bytes(), layer.to_string(), level))?;
    }
    let mut put = transaction.prepare_cached("INSERT OR REPLACE INTO digests VALUES (?1, ?2)")?;
    for (snapshot, tree) in &batch.digests {
        put.execute((snapshot.as_bytes(), tree.as_bytes()))?;
    }
    Ok(())
}

fn put_uses(transaction: &Transaction<'_>, batch: &Batch) -> rusqlite::Result<()> {
    let tables = [("actions", "key", &batch.used_actions), ("calls", "digest", &batch.used_calls)];
    for (table, key, used) in tables {
        let sql = format!("UPDATE {table} SET last_used = ?2 WHERE {key} = ?1");
        let mut touch = transaction.prepare_cached(&sql)?;
        for digest in used {
            touch.execute((digest.as_bytes(), now()))?;
        }
    }
    Ok(())
}
