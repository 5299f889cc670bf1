//! [`Depot`]: packages, from the archives that the host trusts to layers of the store. What becomes of
//! them in an image is none of its business, so it needs no sandbox.

use super::Settings;
use super::address::Address;
use super::cache::Cache;
use super::error::Error;
use super::host::{self, Origin};
use super::locks::Locks;
use fetch::Fetcher;
use store::Store;
use tokio::sync::Semaphore;

/// Gets packages.
pub(super) struct Depot {
    pub(super) store: Store,
    pub(super) fetcher: Fetcher,
    pub(super) settings: Settings,
    pub(super) cache: Cache,
    pub(super) locks: Locks,
    /// One permit a processor: unpacking is decoding.
    pub(super) unpackers: Semaphore,
    /// Debian's name for this machine; empty where it has none.
    pub(super) architecture: &'static str,
}

impl Depot {
    pub(super) fn new(store: Store, fetcher: Fetcher, settings: Settings) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            store,
            fetcher,
            cache: Cache::new(settings.cache.clone()),
            settings,
            locks: Locks::default(),
            unpackers: Semaphore::new(processors),
            architecture: debian::native_architecture().unwrap_or_default(),
        }
    }

    /// The archives of an address.
    pub(super) async fn origins(&self, address: &Address) -> Result<Vec<Origin>, Error> {
        if self.architecture.is_empty() {
            return Err(Error::Architecture(std::env::consts::ARCH));
        }
        let (settings, cache) = (self.settings.clone(), self.cache.clone());
        let (suite, architecture) = (address.suite().to_owned(), self.architecture);
        super::blocking(move || {
            cache.prepare()?;
            host::origins(&settings, &suite, architecture)
        })
        .await
    }
}
