//! `CacheVolume`: files that stay from run to run, known by a key.

mod turns;

pub(crate) use turns::Turn;
pub use turns::Turns;

use crate::directory::Directory;
use graph::{Args, Builder, Context, Enum, Object, Op, Ref, Root};
use protocol::Error;
use std::sync::Arc;

pub(crate) fn install(builder: &mut Builder) {
    builder.install::<MakeCacheVolume>();
}

/// A cache volume.
pub(crate) struct CacheVolume {
    /// What it is known by, its namespace included.
    pub(crate) key: String,
    pub(crate) sharing: CacheSharingMode,
    /// What an empty volume starts with.
    pub(crate) source: Option<Arc<Directory>>,
    /// `user[:group]` of a new volume; empty is nobody in particular.
    pub(crate) owner: String,
}

impl Object for CacheVolume {
    const TYPE: &'static str = "CacheVolume";
}

/// Who may use a cache volume at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Enum)]
pub(crate) enum CacheSharingMode {
    /// Everybody at once.
    Shared,
    /// Each user has a copy when it is in use.
    Private,
    /// One at a time; others wait.
    Locked,
}

/// Names a cache volume; it is made when it is first mounted.
#[derive(Args)]
struct MakeCacheVolume {
    /// What the volume is known by.
    key: String,
    /// Keeps volumes with equal keys apart.
    #[arg(default = "\"\"")]
    namespace: String,
    /// What an empty volume starts with.
    source: Option<Ref<Directory>>,
    /// Who may use it at the same time.
    #[arg(default = "SHARED")]
    sharing: CacheSharingMode,
    /// `user[:group]` that owns a new volume and all that it starts with.
    #[arg(default = "\"\"")]
    owner: String,
}

impl Op for MakeCacheVolume {
    type Parent = Root;
    type Output = CacheVolume;
    const NAME: &'static str = "cacheVolume";

    async fn run(&self, _: &Root, _: &Context) -> Result<CacheVolume, Error> {
        if self.key.is_empty() {
            return Err(Error::user("the key of a cache volume is empty"));
        }
        let key = if self.namespace.is_empty() {
            self.key.clone()
        } else {
            format!("{}\0{}", self.namespace, self.key)
        };
        let source = self.source.as_ref().map(Ref::arc);
        Ok(CacheVolume { key, sharing: self.sharing, source, owner: self.owner.clone() })
    }
}
