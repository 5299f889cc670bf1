//! [`Services`]: what the operations of this crate work with, put into every session by the engine.

use crate::cache_volume::Turns;
use crate::debian::Assembler;
use crate::http::Web;
use crate::image::Images;
use crate::surroundings::Surroundings;
use protocol::Error;
use sandbox::{Errands, Sandbox};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use store::{Snapshot, Store, Target, View};

/// Engine-wide services.
pub struct Services {
    /// Content at rest.
    pub store: Store,
    /// Where commands run.
    pub sandbox: Sandbox,
    /// What the sandbox mounts onto and so must exist in every root.
    pub targets: Vec<Target>,
    /// Makes Debian images.
    pub debian: Assembler,
    /// Images of registries and archives.
    pub images: Images,
    /// Files of web servers.
    pub web: Web,
    /// Runs programs of the host.
    pub errands: Arc<Errands>,
    /// Repositories of git.
    pub git: crate::git::Service,
    /// Who uses which cache volume.
    pub volumes: Turns,
    /// Who blocks a thread of the runtime.
    pub slots: Slots,
    /// What of the engine's settings a command can observe; part of every action.
    pub observable: Observable,
    /// What a command gets of the machine beyond that; part of no action.
    pub surroundings: Surroundings,
}

/// Settings of the engine that a command can observe, and that so belong to its cache key.
#[derive(Clone, Debug)]
pub struct Observable {
    /// The network mode, by name.
    pub network: &'static str,
}

impl Services {
    /// Runs work that blocks, and is nearly always short, on this very thread: a hop to another one
    /// and back takes longer than the work. Most threads of the runtime stay free of it, however
    /// slow the disk becomes: what is more than a few at a time makes room for others first.
    pub(crate) fn in_place<T>(&self, work: impl FnOnce() -> T) -> T {
        let slot = self.slots.take();
        match tokio::runtime::Handle::current().runtime_flavor() {
            tokio::runtime::RuntimeFlavor::MultiThread if slot.is_none() => {
                tokio::task::block_in_place(work)
            }
            _ => work(),
        }
    }

    /// Looks at a tree, off the async threads.
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        snapshot: Snapshot,
        look: impl FnOnce(&View) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let store = self.store.clone();
        self.blocking(move || look(&store.view(&snapshot))).await
    }

    /// Runs blocking work off the async threads.
    pub(crate) async fn blocking<T, E>(
        &self,
        work: impl FnOnce() -> Result<T, E> + Send + 'static,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        E: Into<Error> + Send + 'static,
    {
        match tokio::task::spawn_blocking(work).await {
            Ok(result) => result.map_err(Into::into),
            Err(failed) => Err(Error::internal(format!("a worker thread failed: {failed}"))),
        }
    }
}

/// How many threads of the runtime may block at a time. The engine has twice as many.
const SLOTS: usize = 2;

/// Counts the threads of the runtime that block.
#[derive(Debug, Default)]
pub struct Slots(AtomicUsize);

/// The right to block one.
struct Slot<'a>(&'a Slots);

impl Slots {
    fn take(&self) -> Option<Slot<'_>> {
        let more = |taken: usize| (taken < SLOTS).then_some(taken + 1);
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.ok().map(|_| Slot(self))
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
