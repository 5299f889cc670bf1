//! The thread that commits, and the rows that wait for it.
//!
//! Rows gather for a moment so that many puts cost one commit. A row is taken only when the layers
//! and blobs that it names are on disk; one that has to wait for that holds up no other. While rows
//! are being committed they stay visible to readers, and they are dropped only after the commit, so
//! a row is always found in one place or the other. A flush cuts the gathering short.
//!
//! Some rows only save work that can be done again from what other rows name: a packed form of a layer,
//! say. They come soon after, and no flush waits for them.

use super::batch::{Action, Batch};
use super::seal::seal;
use super::{manifests, now, schema};
use crate::Error;
use crate::durable::{Durable, Stage};
use protocol::Digest;
use rusqlite::{Connection, Transaction};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long rows gather before what they name is brought to disk. A result must be safe within a
/// second of being usable.
const GATHER: Duration = Duration::from_millis(300);
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
    /// How often the writer has looked at the rows.
    rounds: u64,
    /// Rows in `current` that wait for what they need, by the round in which they were first met.
    waiting: HashMap<Digest, u64>,
    /// The oldest round of the rows that were taken last.
    leaving: u64,
    /// Whether rows were put since the last round.
    fresh: bool,
    /// Rows in `current` that no flush waits for.
    unhurried: HashSet<Digest>,
    /// Whether something that rows wait for may be on disk now.
    progress: bool,
    /// Whether the last rows could not be committed; they are in `current` again.
    failing: bool,
    /// How often rows could not be committed or had to be dropped, and why the last time.
    failures: u64,
    complaint: String,
    /// Who waits for a flush.
    flushing: usize,
    stop: bool,
}

impl State {
    /// The last round of which no row is left.
    fn done(&self) -> u64 {
        let oldest = self.waiting.values().min().map_or(self.rounds, |round| round - 1);
        let busy = self.committing.as_ref().map_or(self.rounds, |_| self.leaving - 1);
        oldest.min(busy)
    }

    /// Whether the writer has anything to do.
    fn has_work(&self) -> bool {
        let rows = self.fresh || self.has_unhurried_rows() || self.has_failed_rows();
        rows || self.progress || self.stop
    }

    /// Whether it is time to look at rows that no flush waits for.
    fn has_unhurried_rows(&self) -> bool {
        self.flushing == 0 && self.unhurried.iter().any(|key| !self.waiting.contains_key(key))
    }

    /// Whether rows wait that could not be committed.
    fn has_failed_rows(&self) -> bool {
        self.failing && !self.current.is_empty()
    }

    /// Begins a round and takes out the rows whose bytes are on disk.
    fn split(&mut self, durable: &Durable) -> Batch {
        (self.fresh, self.progress) = (false, false);
        self.rounds += 1;
        // Who waits for a flush does not wait for the disk to be done with these.
        let (hurry, unhurried) = (self.flushing > 0, &self.unhurried);
        let split = self.current.take_ready(&|key, needs| match hurry && unhurried.contains(key) {
            true => Stage::Later,
            false => durable.sync_before(needs),
        });
        durable.begin();
        let round = self.rounds;
        let earlier = std::mem::take(&mut self.waiting);
        let since = |key: Digest| match self.unhurried.contains(&key) {
            true => (key, u64::MAX),
            false => (key, earlier.get(&key).copied().unwrap_or(round)),
        };
        self.waiting = split.waiting.into_iter().map(since).collect();
        self.unhurried.retain(|key| self.current.actions.contains_key(key));
        let left = earlier.iter().filter(|(key, _)| !self.waiting.contains_key(*key));
        self.leaving = left.map(|(_, since)| *since).min().unwrap_or(round).min(round);
        if split.dropped > 0 {
            self.failures += 1;
            self.complaint = format!("{} results could not be brought to disk", split.dropped);
        }
        let mut ready = split.ready;
        // After the look at the rows: a layer that became safe since then is in no row of these.
        let made = durable.take_manifests().into_iter();
        ready.manifests.extend(made.map(|(layer, digest)| (layer, Some((digest, 0)))));
        ready
    }
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

    /// Looks at all rows that are not committed, oldest first.
    pub(super) fn each_pending(&self, mut look: impl FnMut(&Batch)) {
        let state = self.lock();
        state.committing.iter().for_each(|batch| look(batch));
        look(&state.current);
    }

    /// Adds rows and has them committed soon.
    pub(super) fn put(&self, add: impl FnOnce(&mut Batch)) {
        let mut state = self.lock();
        add(&mut state.current);
        if std::mem::replace(&mut state.fresh, true) {
            return;
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Adds an action.
    pub(super) fn put_action(&self, key: Digest, row: Arc<Action>) {
        self.lock().unhurried.remove(&key);
        self.put(|batch| drop(batch.actions.insert(key, Some(row))));
    }

    /// Adds an action that no flush waits for.
    pub(super) fn put_unhurried(&self, key: Digest, row: Arc<Action>) {
        let mut state = self.lock();
        // One that is waited for stays so.
        if state.current.actions.insert(key, Some(row)).is_none() {
            state.unhurried.insert(key);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Notes a use, which is committed together with the next rows.
    pub(super) fn touch(&self, note: impl FnOnce(&mut Batch) -> bool) {
        note(&mut self.lock().current);
    }

    /// Says that something rows wait for may be on disk now.
    pub(super) fn look_again(&self) {
        self.lock().progress = true;
        self.changed.notify_all();
    }

    pub(super) fn flush(&self) -> Result<(), Error> {
        let mut state = self.lock();
        let target = state.rounds + u64::from(state.fresh || state.has_failed_rows());
        let failures = state.failures;
        if state.done() >= target {
            return Ok(());
        }
        state.flushing += 1;
        self.changed.notify_all();
        while state.done() < target && state.failures == failures {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.flushing -= 1;
        // What had to stand back may go on.
        self.changed.notify_all();
        match state.failures == failures {
            true => Ok(()),
            false => Err(Error::Commit(state.complaint.clone())),
        }
    }

    /// Has the writer commit what is left and end.
    pub(super) fn stop(&self) {
        self.lock().stop = true;
        self.changed.notify_all();
    }

    /// The body of the writer's thread.
    pub(super) fn run(&self, mut connection: Connection, damage_marker: &Path, durable: &Durable) {
        if let Err(error) = schema::expire_calls(&connection) {
            tracing::warn!("cannot expire old call records: {error}");
        }
        while let Some(batch) = self.take(durable) {
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

    /// Waits for rows that can be committed and moves them to `committing`; nothing when it is time
    /// to end.
    fn take(&self, durable: &Durable) -> Option<Arc<Batch>> {
        let mut state = self.lock();
        loop {
            while !state.has_work() {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state = self.gather(state);
            // After a stop rows that failed are not tried for ever.
            if state.stop && state.failing {
                return None;
            }
            let batch = state.split(durable);
            if !batch.is_empty() || (state.stop && batch.has_uses()) {
                let batch = Arc::new(batch);
                state.committing = Some(Arc::clone(&batch));
                return Some(batch);
            }
            state.current.restore(batch);
            // What could not be committed may have been dropped since.
            state.failing &= !state.current.is_empty();
            if state.stop && state.waiting.is_empty() {
                return None;
            }
            self.changed.notify_all();
            while state.stop && !state.progress && !state.fresh {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Gives more rows the time to come, unless somebody waits or rows that came before are ready.
    fn gather<'a>(&self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let pause = if state.failing { RETRY } else { GATHER };
        let until = Instant::now() + pause;
        while state.flushing == 0 && !state.stop && !state.progress {
            let Some(left) = until.checked_duration_since(Instant::now()) else { break };
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state
    }

    fn finish(&self, result: rusqlite::Result<()>) {
        let mut state = self.lock();
        let batch = state.committing.take();
        match result {
            Ok(()) => state.failing = false,
            Err(error) => {
                state.failing = true;
                state.failures += 1;
                state.complaint = error.to_string();
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
    super::space::put(&transaction, batch)?;
    manifests::put(&transaction, batch)?;
    transaction.commit()
}

fn put_actions(transaction: &Transaction<'_>, batch: &Batch) -> rusqlite::Result<()> {
    let mut put = transaction.prepare_cached(
        "INSERT OR REPLACE INTO actions(key, kind, label, created, last_used, needs, value)
         VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6)",
    )?;
    let mut remove = transaction.prepare_cached("DELETE FROM actions WHERE key = ?1")?;
    for (key, value) in &batch.actions {
        match value {
            Some(row) => {
                let bytes = (&row.needs[..], seal(key, &row.value));
                let text = (row.kind, &row.label[..]);
                put.execute((key.as_bytes(), text.0, text.1, row.created, bytes.0, bytes.1))?
            }
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
        let record = seal(digest, record);
        put.execute((digest.as_bytes(), digest.handle() as i64, record, now()))?;
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
    let sql = "UPDATE actions SET last_used = ?2 WHERE key = ?1";
    let mut touch = transaction.prepare_cached(sql)?;
    for (key, time) in &batch.used_actions {
        touch.execute((key.as_bytes(), time))?;
    }
    let mut touch =
        transaction.prepare_cached("UPDATE calls SET last_used = ?2 WHERE digest = ?1")?;
    for digest in &batch.used_calls {
        touch.execute((digest.as_bytes(), now()))?;
    }
    Ok(())
}
