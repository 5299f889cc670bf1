//! Watching what commands write while they run.
//!
//! A command writes through the kernel and asks nobody. So the free space of the disk is looked at
//! while commands run, the more often the less there is. When the engine's own reserve, what is to stay free or the limit
//! of the store is in danger and collecting does not help, the command that has written most is
//! stopped.

use super::disk::Disk;
use super::{Full, Limits, Measure, Shared};
use crate::scratch::Scratch;
use crate::volume::Volume;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long the thread goes on looking after the last command, so that a row of short ones does not
/// wake it each time.
const LINGER: Duration = Duration::from_secs(5);
/// How fast a command may be able to write, in bytes a millisecond.
pub(super) const SPEED: u64 = 2_000_000;
/// How often the disk is looked at, at least and at most.
const SHORTEST: Duration = Duration::from_millis(5);
const LONGEST: Duration = Duration::from_millis(250);
/// How long a command that was stopped may take to let go before another one is.
const PATIENCE: Duration = Duration::from_secs(2);

/// What runs, and who is told to stop.
#[derive(Default)]
pub(super) struct Watched {
    list: Mutex<List>,
    changed: Condvar,
}

#[derive(Default)]
struct List {
    next: u64,
    runs: Vec<Run>,
    /// Whether the thread waits for a command to begin.
    resting: bool,
    stop: bool,
}

struct Run {
    number: u64,
    folders: Vec<PathBuf>,
    /// None once it was called.
    stop: Option<Box<dyn FnOnce(Full) + Send>>,
}

/// A command that is watched until this is dropped.
pub struct RunWatch {
    shared: Arc<Shared>,
    number: u64,
    began: Instant,
}

impl RunWatch {
    /// Says so if the disk is full, or was at some time since this began.
    pub fn full(&self) -> Option<Full> {
        let seen = *self.shared.seen_full.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = seen.filter(|seen| *seen >= self.began);
        self.shared.full_disk().or_else(|| seen.map(|_| self.shared.no_disk_left()))
    }
}

impl Watched {
    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn stop(&self) {
        self.lock().stop = true;
        self.changed.notify_all();
    }

    /// Waits a while, or for a command to begin; says whether there is something to look at.
    fn wait(&self, pause: Duration, busy: &mut Instant) -> Option<bool> {
        let mut list = self.lock();
        if !list.runs.is_empty() {
            *busy = Instant::now();
        }
        if busy.elapsed() > LINGER {
            list.resting = true;
            while list.runs.is_empty() && !list.stop {
                list = self.changed.wait(list).unwrap_or_else(PoisonError::into_inner);
            }
            list.resting = false;
        } else {
            let waited = self.changed.wait_timeout_while(list, pause, |list| !list.stop);
            list = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        (!list.stop).then_some(!list.runs.is_empty())
    }
}

impl Shared {
    /// Watches a command. `stop` is called when it must end for want of room.
    pub(crate) fn watch(
        self: &Arc<Self>,
        scratches: &[&Scratch],
        volumes: &[&Volume],
        stop: impl FnOnce(Full) + Send + 'static,
    ) -> RunWatch {
        let own = scratches.iter().map(|scratch| scratch.work().to_owned());
        let folders = own.chain(volumes.iter().map(|volume| volume.path().to_owned())).collect();
        let mut list = self.watched.lock();
        let number = list.next;
        list.next += 1;
        list.runs.push(Run { number, folders, stop: Some(Box::new(stop)) });
        let resting = list.resting;
        drop(list);
        if resting {
            self.watched.changed.notify_all();
        }
        RunWatch { shared: Arc::clone(self), number, began: Instant::now() }
    }

    /// The body of the thread that watches.
    pub(super) fn watch_always(&self) {
        let (mut pause, mut busy) = (LONGEST, Instant::now());
        let mut stopped: Option<Instant> = None;
        while let Some(running) = self.watched.wait(pause, &mut busy) {
            pause = LONGEST;
            if !running {
                continue;
            }
            self.refresh_account();
            let left = self.left();
            pause = Duration::from_millis(left / SPEED).clamp(SHORTEST, LONGEST);
            let patient = stopped.is_some_and(|when| when.elapsed() < PATIENCE);
            if left > 0 || patient || self.make_room(1).is_ok() {
                continue;
            }
            stopped = Some(Instant::now());
            self.stop_largest();
        }
    }

    /// Bytes that commands may write before something must happen.
    fn left(&self) -> u64 {
        let disk = Disk::of(self.state.path());
        let free = disk.free.saturating_sub(Limits::own_reserve(disk.size));
        if free == 0 {
            // What a command wrote may vanish with its failure.
            let now = Some(Instant::now());
            *self.seen_full.lock().unwrap_or_else(PoisonError::into_inner) = now;
        }
        match self.limits.spare(&disk, self.used_about(&disk)) {
            0 if free > 0 => self.limits.spare(&disk, self.used_exactly()),
            left => left,
        }
    }

    /// Stops the command that has written most.
    fn stop_largest(&self) {
        let list = self.watched.lock();
        let going: Vec<(u64, Vec<PathBuf>)> = list
            .runs
            .iter()
            .filter(|run| run.stop.is_some())
            .map(|run| (run.number, run.folders.clone()))
            .collect();
        drop(list);
        let size = |path: &PathBuf| {
            let below = path.strip_prefix(self.state.path()).unwrap_or(path);
            Measure::of(&self.state, below.as_os_str().as_bytes()).map_or(0, |measure| measure.own)
        };
        let largest = going.iter().max_by_key(|(_, folders)| folders.iter().map(size).sum::<u64>());
        let Some((number, _)) = largest else { return };
        let full = self.full();
        let mut list = self.watched.lock();
        let run = list.runs.iter_mut().find(|run| run.number == *number);
        let stop = run.and_then(|run| run.stop.take());
        drop(list);
        if let Some(stop) = stop {
            tracing::warn!("a command is stopped: {full}");
            stop(full);
        }
    }
}

impl Drop for RunWatch {
    fn drop(&mut self) {
        self.shared.watched.lock().runs.retain(|run| run.number != self.number);
    }
}
