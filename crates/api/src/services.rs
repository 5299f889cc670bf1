//! [`Services`]: what the operations of this crate work with, put into every session by the engine.

use crate::debian::Assembler;
use protocol::Error;
use sandbox::Sandbox;
use store::{Store, Target};

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
    /// What of the engine's settings a command can observe; part of every action.
    pub observable: Observable,
}

/// Settings of the engine that a command can observe, and that so belong to its cache key.
#[derive(Clone, Debug)]
pub struct Observable {
    /// The network mode, by name.
    pub network: &'static str,
}

impl Services {
    /// Runs work that blocks, and is nearly always short, on this very thread, which saves a hop to
    /// another one and back. The runtime's other tasks go on elsewhere meanwhile.
    pub(crate) fn in_place<T>(&self, work: impl FnOnce() -> T) -> T {
        match tokio::runtime::Handle::current().runtime_flavor() {
            tokio::runtime::RuntimeFlavor::MultiThread => tokio::task::block_in_place(work),
            _ => work(),
        }
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
