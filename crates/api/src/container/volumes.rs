//! The cache volumes of one command: whose turn it is, and which copy.

use super::{CacheMount, Container, MountSource};
use crate::cache_volume::{CacheSharingMode, Turn};
use crate::owner;
use crate::services::Services;
use crate::volume::{self as live, Serving};
use graph::Context;
use protocol::{DigestBuilder, Error};
use std::collections::{BTreeMap, HashMap};
use store::{Mount, Snapshot, Volume};

/// A volume that a command uses.
pub(super) struct OpenVolume {
    pub(super) key: String,
    pub(super) volume: Volume,
    /// After the volume, so that it is put down before the next one's turn.
    _turn: Turn,
}

/// All volumes that a command uses.
#[derive(Default)]
pub(super) struct Opened {
    /// Those that the engine keeps.
    pub(super) volumes: Vec<OpenVolume>,
    /// Those of other machines, by where they are to be mounted.
    elsewhere: HashMap<String, Mount>,
}

impl Opened {
    /// One that the engine keeps.
    pub(super) fn find(&self, key: &str) -> Result<&Volume, Error> {
        let found = self.volumes.iter().find(|open| open.key == key);
        found.map(|open| &open.volume).ok_or_else(|| Error::internal("a volume was not opened"))
    }

    /// A live volume, for a path that it is mounted at.
    pub(super) fn mount(&mut self, live: &live::Volume, path: &str) -> Result<Mount, Error> {
        if let live::Volume::Engine(kept) = live {
            return Ok(self.find(&kept.key)?.mount_below(&kept.subdir)?);
        }
        self.elsewhere.remove(path).ok_or_else(|| Error::internal("a volume was not opened"))
    }
}

/// Opens the volumes of a container, each when it is its turn. With them come those who answer for what is elsewhere.
///
/// One that is mounted twice is opened once, as the strictest of its mounts wants it. All commands
/// take their turns in the same order, so that no two wait for each other.
pub(super) async fn open(
    container: &Container,
    rootfs: &Snapshot,
    services: &Services,
    cx: &Context,
) -> Result<(Opened, Vec<Serving>), Error> {
    let mut wanted: BTreeMap<&str, (CacheSharingMode, &CacheMount)> = BTreeMap::new();
    let (mut opened, mut elsewhere, mut serving) = (vec![], HashMap::new(), vec![]);
    for mount in &container.mounts {
        match &mount.source {
            MountSource::Cache(cache) => {
                let (sharing, _) = wanted.entry(&cache.key).or_insert((cache.sharing, cache));
                *sharing = cache.sharing.max(*sharing);
            }
            // Nobody waits for a volume that all share as it is.
            MountSource::Volume(live) => match &**live {
                live::Volume::Engine(kept)
                    if opened.iter().all(|open: &OpenVolume| open.key != kept.key) =>
                {
                    let shared = CacheSharingMode::Shared;
                    let turn = services.volumes.take(&kept.key, shared, cx.span()).await;
                    let volume = services.in_place(|| services.store.cache_volume(&kept.key))?;
                    opened.push(OpenVolume { key: kept.key.clone(), volume, _turn: turn });
                }
                live::Volume::Engine(_) => {}
                live::Volume::Sshfs(there) => {
                    let mounted = there.mount(cx).await?;
                    elsewhere.insert(mount.path.clone(), mounted.mount);
                    serving.push(mounted.serving);
                }
            },
            _ => {}
        }
    }
    for (key, (sharing, cache)) in wanted {
        let turn = services.volumes.take(key, sharing, cx.span()).await;
        let volume = open_one(cache, turn.number, rootfs, services).await?;
        opened.push(OpenVolume { key: key.to_owned(), volume, _turn: turn });
    }
    Ok((Opened { volumes: opened, elsewhere }, serving))
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
