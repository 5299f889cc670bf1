//! The cache volumes of one command: whose turn it is, and which copy.

use super::{CacheMount, Container, MountSource};
use crate::cache_volume::{CacheSharingMode, Turn};
use crate::owner;
use crate::services::Services;
use graph::Span;
use protocol::{DigestBuilder, Error};
use std::collections::BTreeMap;
use store::{Snapshot, Volume};

/// A volume that a command uses.
pub(super) struct OpenVolume {
    pub(super) key: String,
    pub(super) volume: Volume,
    /// After the volume, so that it is put down before the next one's turn.
    _turn: Turn,
}

/// Opens the volumes of a container, each when it is its turn.
///
/// One that is mounted twice is opened once, as the strictest of its mounts wants it. All commands
/// take their turns in the same order, so that no two wait for each other.
pub(super) async fn open(
    container: &Container,
    rootfs: &Snapshot,
    services: &Services,
    span: &Span,
) -> Result<Vec<OpenVolume>, Error> {
    let mut wanted: BTreeMap<&str, (CacheSharingMode, &CacheMount)> = BTreeMap::new();
    let mut opened = vec![];
    for mount in &container.mounts {
        match &mount.source {
            MountSource::Cache(cache) => {
                let (sharing, _) = wanted.entry(&cache.key).or_insert((cache.sharing, cache));
                *sharing = cache.sharing.max(*sharing);
            }
            // Nobody waits for a volume that all share as it is.
            MountSource::Volume(live)
                if opened.iter().all(|open: &OpenVolume| open.key != live.key) =>
            {
                let turn = services.volumes.take(&live.key, CacheSharingMode::Shared, span).await;
                let volume = services.in_place(|| services.store.cache_volume(&live.key))?;
                opened.push(OpenVolume { key: live.key.clone(), volume, _turn: turn });
            }
            _ => {}
        }
    }
    for (key, (sharing, cache)) in wanted {
        let turn = services.volumes.take(key, sharing, span).await;
        let volume = open_one(cache, turn.number, rootfs, services).await?;
        opened.push(OpenVolume { key: key.to_owned(), volume, _turn: turn });
    }
    Ok(opened)
}

async fn open_one(
    cache: &CacheMount,
    number: u32,
    rootfs: &Snapshot,
    services: &Services,
) -> Result<Volume, Error> {
    let seed = match &cache.seed {
        Some(tree) => tree.snapshot(services).await?,
        None => Snapshot::empty(),
    };
    let store = services.store.clone();
    let (key, owner, rootfs) = (cache.key.clone(), cache.owner.clone(), rootfs.clone());
    let open = move || {
        let view = store.view(&rootfs);
        let owner = match owner {
            Some(owner) => owner.resolve(&|path| owner::read_small_file(&view, path))?,
            None => None,
        };
        Ok::<_, Error>(store.seeded_cache_volume((&key, number), &store.view(&seed), owner)?)
    };
    // Copying what a new volume starts with can take long; nearly always it is there.
    if cache.seed.is_some() { services.blocking(open).await } else { services.in_place(open) }
}

/// Feeds the name of a command with what an empty volume would start with. What is in one that is
/// not empty is no part of any name.
pub(super) async fn digest_into<'a>(
    cache: &CacheMount,
    digest: &'a mut DigestBuilder,
    services: &Services,
) -> Result<&'a mut DigestBuilder, Error> {
    if let Some(seed) = &cache.seed {
        digest.text("seed").digest(&seed.identity(services).await?);
    }
    if let Some(owner) = &cache.owner {
        owner.digest_into(digest);
    }
    Ok(digest)
}
