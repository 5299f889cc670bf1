//! [`Pool`]: jobs that make more jobs, done by a few threads.
//!
//! The newest job is done first, so that a tree is walked in depth and little of it is under way.
//! Threads are started when there is work for them: most trees are small.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};

/// Jobs in the queue for which one more thread is worth its start.
const WORTH_A_THREAD: usize = 4;

/// Jobs and who does them.
pub(super) struct Pool<J> {
    queue: Mutex<Queue<J>>,
    more: Condvar,
    threads: usize,
}

struct Queue<J> {
    jobs: Vec<J>,
    /// Jobs under way: they may make more.
    running: usize,
    started: usize,
    /// No further job is begun.
    stopped: bool,
}

impl<J: Send> Pool<J> {
    /// A pool of this many threads, the caller's own counted in.
    pub(super) fn new(threads: usize) -> Self {
        let queue = Queue { jobs: vec![], running: 0, started: 1, stopped: false };
        Self { queue: Mutex::new(queue), more: Condvar::new(), threads }
    }

    /// Does the first job and all that come of it. `work` makes the worker of one thread.
    pub(super) fn run<W, F>(&self, first: J, work: &W)
    where
        W: Fn() -> F + Sync,
        F: FnMut(J),
    {
        self.add([first]);
        thread::scope(|scope| self.help(scope, work));
    }

    /// Adds jobs.
    pub(super) fn add(&self, jobs: impl IntoIterator<Item = J>) {
        self.lock().jobs.extend(jobs);
        self.more.notify_all();
    }

    /// Lets no further job begin.
    pub(super) fn stop(&self) {
        self.lock().stopped = true;
        self.more.notify_all();
    }

    fn help<'scope, W, F>(&'scope self, scope: &'scope Scope<'scope, '_>, work: &'scope W)
    where
        W: Fn() -> F + Sync,
        F: FnMut(J),
        J: 'scope,
    {
        let mut work_off = work();
        let mut queue = self.lock();
        loop {
            if queue.stopped {
                queue.jobs.clear();
            }
            if let Some(job) = queue.jobs.pop() {
                queue.running += 1;
                if queue.jobs.len() >= WORTH_A_THREAD && queue.started < self.threads {
                    queue.started += 1;
                    scope.spawn(move || self.help(scope, work));
                }
                drop(queue);
                let running = Running(self);
                work_off(job);
                drop(running);
                queue = self.lock();
                continue;
            }
            if queue.running == 0 {
                return;
            }
            queue = self.more.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A panic in a job leaves the queue whole.
    fn lock(&self) -> MutexGuard<'_, Queue<J>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A job under way. One that panics ends all, or the other threads would wait for what it makes.
struct Running<'a, J: Send>(&'a Pool<J>);

impl<J: Send> Drop for Running<'_, J> {
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        queue.running -= 1;
        queue.stopped |= thread::panicking();
        if queue.running == 0 {
            self.0.more.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    #[test]
    fn all_jobs_are_done_and_those_they_make() {
        let pool = Pool::new(3);
        let done = AtomicUsize::new(0);
        pool.run(6u32, &|| {
            |job| {
                done.fetch_add(1, Ordering::Relaxed);
                pool.add((0..job).map(|_| job - 1));
            }
        });
        // 6! / 0! + 6! / 1! + ... + 6! / 6!
        assert_eq!(done.into_inner(), 1957);
    }

    #[test]
    fn no_job_begins_after_a_stop() {
        let pool = Pool::new(2);
        let (done, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
        let late = AtomicUsize::new(0);
        pool.run(0, &|| {
            |job| {
                late.fetch_add(stopped.load(Ordering::SeqCst).into(), Ordering::SeqCst);
                if done.fetch_add(1, Ordering::SeqCst) == 10 {
                    pool.stop();
                    stopped.store(true, Ordering::SeqCst);
                }
                pool.add([job + 1, job + 1]);
            }
        });
        // The other thread may have taken one before.
        assert!(done.into_inner() > 10 && late.into_inner() <= 1);
    }
}
