//! `CacheVolume`: files that stay from run to run, known by a key.

use graph::{Args, Builder, Context, Enum, Object, Op, Ref, Root};
use protocol::{Error, ErrorKind};

use crate::directory::Directory;

pub(crate) fn install(builder: &mut Builder) {
    builder.install::<MakeCacheVolume>();
}

/// A cache volume.
pub(crate) struct CacheVolume {
    pub(crate) key: String,
}

impl Object for CacheVolume {
    const TYPE: &'static str = "CacheVolume";
}

/// Who may use a cache volume at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
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
    /// `user[:group]` that owns its root.
    #[arg(default = "\"\"")]
    owner: String,
}

impl Op for MakeCacheVolume {
    type Parent = Root;
    type Output = CacheVolume;
    const NAME: &'static str = "cacheVolume";

    async fn run(&self, _: &Root, _: &Context) -> Result<CacheVolume, Error> {
        let missing = |what: &str| {
            let message = format!("`{what}` of cacheVolume is not implemented yet");
            Err(Error::new(ErrorKind::NotImplemented, message))
        };
        if self.sharing != CacheSharingMode::Shared {
            return missing("sharing");
        }
        if self.source.is_some() {
            return missing("source");
        }
        if !self.owner.is_empty() {
            return missing("owner");
        }
        if self.key.is_empty() {
            return Err(Error::user("the key of a cache volume is empty"));
        }
        let key = if self.namespace.is_empty() {
            self.key.clone()
        } else {
            format!("{}\0{}", self.namespace, self.key)
        };
        Ok(CacheVolume { key })
    }
}
