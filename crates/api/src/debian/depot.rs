//! [`Depot`]: packages, from the archives that the host trusts to layers of the store. What becomes of
//! them in an image is none of its business, so it needs no sandbox.

use super::Settings;
use super::address::Address;
use super::cache::Cache;
use super::error::Error;
use super::host::{self, Origin};
use super::locks::Locks;
use fetch::Fetcher;
use store::{Store, Volume};
use tokio::sync::Semaphore;

/// What downloads are called among what the store keeps.
const MIRROR: &str = "Debian packages";

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
        let own = || store.mirror_path(MIRROR);
        let cache = Cache::new(settings.cache.clone().unwrap_or_else(own));
        Self {
            store,
            fetcher,
            cache,
            settings,
            locks: Locks::default(),
            unpackers: Semaphore::new(processors),
            architecture: debian::native_architecture().unwrap_or_default(),
        }
    }

    /// Keeps the downloads until what is given is dropped: who works with them holds that. A folder that is not ours
    /// stays by itself.
    pub(super) async fn hold(&self) -> Result<Option<Volume>, Error> {
        let (store, cache) = (self.store.clone(), self.cache.clone());
        let ours = self.settings.cache.is_none();
        super::blocking(move || {
            let held = if ours { Some(store.mirror(MIRROR)?) } else { None };
            cache.prepare()?;
            Ok(held)
        })
        .await
    }

    /// Sees to it that a download has room, if it counts.
    pub(super) async fn make_room(&self, bytes: u64) -> Result<(), Error> {
        if self.settings.cache.is_some() {
            return Ok(());
        }
        let store = self.store.clone();
        super::blocking(move || Ok(store.admit(bytes)?)).await
    }

    /// The archives of an address.
    pub(super) async fn origins(&self, address: &Address) -> Result<Vec<Origin>, Error> {
        if self.architecture.is_empty() {
            return Err(Error::Architecture(std::env::consts::ARCH));
        }
        let settings = self.settings.clone();
        let (suite, architecture) = (address.suite().to_owned(), self.architecture);
        super::blocking(move || host::origins(&settings, &suite, architecture)).await
    }
}
