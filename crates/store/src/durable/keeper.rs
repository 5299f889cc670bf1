//! [`Keeper`]: the thread that looks after the store while nobody else does anything.
//!
//! After a start it collects layers that nobody knows; then it scrubs, layers first and then blobs. It has the lowest priority,
//! rests whenever something was made a moment ago, and reads no faster than [`RATE`].

use super::blobs::DueBlobs;
use super::inspector::Inspector;
use super::{orphans, scrub};
use crate::Error;
use crate::idle_thread::IdleThread;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Bytes a second that are read at most.
const RATE: u64 = 64 << 20;
/// How long nothing must have been made before anything is read again.
const QUIET: Duration = Duration::from_secs(10);
/// How long to rest when everything was read.
const REST: Duration = Duration::from_secs(600);

/// The thread, which ends with this.
pub(crate) struct Keeper {
    stop: Arc<Stop>,
    thread: Option<IdleThread>,
}

#[derive(Default)]
struct Stop {
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    fn is_set(&self) -> bool {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits, unless it is time to end; true when it is.
    fn rest(&self, time: Duration) -> bool {
        let stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(stopped, time, |stopped| !*stopped);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Keeper {
    pub(crate) fn start(inspector: Arc<Inspector>) -> Result<Self, Error> {
        let stop = Arc::new(Stop::default());
        let told = Arc::clone(&stop);
        let path = inspector.state.path().to_owned();
        let thread = std::thread::Builder::new().name("keeper".to_owned());
        let thread = IdleThread::spawn(thread, move || keep(&inspector, &told))
            .map_err(Error::io("start a thread for", path))?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        *self.stop.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stop.changed.notify_all();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::warn!("the thread that looks after the store panicked");
        }
    }
}

fn keep(inspector: &Inspector, stop: &Stop) {
    orphans::collect(inspector, &|| stop.is_set());
    let mut pace = |bytes: usize| {
        let time = Duration::from_nanos(bytes as u64 * 1_000_000_000 / RATE);
        !stop.rest(time)
    };
    let mut blobs = DueBlobs::default();
    while !stop.is_set() {
        let rest = match inspector.state.durable().until_quiet(QUIET) {
            Duration::ZERO if scrub::step(inspector, &mut pace) => continue,
            Duration::ZERO if blobs.step(inspector, &mut pace) => continue,
            Duration::ZERO => REST,
            busy => busy,
        };
        if stop.rest(rest) {
            return;
        }
    }
}
