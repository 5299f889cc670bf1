//! Tasks that end with their owner, so that nothing outlives what it works for.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::{JoinHandle, JoinSet};

/// Aborts its task when dropped.
#[derive(Debug)]
pub(crate) struct Task(JoinHandle<()>);

impl Task {
    /// Starts a task.
    pub(crate) fn spawn(future: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(future))
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Spawns the tasks of one connection. The HTTP library leaves a connection open for as long as a
/// request is on its way; ours must end with its session, requests or not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spawner(Arc<Mutex<JoinSet<()>>>);

/// Aborts everything that its spawner spawned when dropped.
#[derive(Debug)]
pub(crate) struct Spawned(Spawner);

impl Spawner {
    /// Who owns what is spawned.
    pub(crate) fn owner(&self) -> Spawned {
        Spawned(self.clone())
    }

    fn lock(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F> hyper::rt::Executor<F> for Spawner
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, future: F) {
        let mut tasks = self.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            future.await;
        });
    }
}

impl Spawned {
    /// Lets what was spawned run to its own end.
    pub(crate) fn detach(self) {
        self.0.lock().detach_all();
    }
}

impl Drop for Spawned {
    fn drop(&mut self) {
        self.0.lock().abort_all();
    }
}
