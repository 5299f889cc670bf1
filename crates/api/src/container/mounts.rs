//! Mounts of a container: directories, files, cache volumes, temporary file systems.
//!
//! Mounting over a path replaces what was mounted there or below it: mounts do not stack.

use super::CacheMount;
use super::{Container, MountPoint, MountSource};
use crate::cache_volume::{CacheSharingMode, CacheVolume};
use crate::directory::Directory;
use crate::edit::{Edit, Filter};
use crate::file::File;
use crate::owner::OwnerSpec;
use crate::paths;
use crate::services::Services;
use crate::tree::Tree;
use crate::volume::Volume;
use graph::{Args, Builder, Context, Op, Ref};
use protocol::Error;

pub(super) fn install(builder: &mut Builder) {
    builder
        .install::<WithMountedDirectory>()
        .install::<WithMountedFile>()
        .install::<WithMountedCache>()
        .install::<WithMountedTemp>()
        .install::<WithMountedVolume>()
        .install::<WithoutMount>()
        .install::<Mounts>();
}

/// Mounts a directory. What commands write to it stays with the container.
#[derive(Args)]
struct WithMountedDirectory {
    /// Replace `$VAR` and `${VAR}` in the path by the container's variables.
    #[arg(default = "false")]
    expand: bool,
    /// `user[:group]` that owns everything in it; unchanged when empty.
    #[arg(default = "\"\"")]
    owner: String,
    /// Where.
    path: String,
    /// The directory.
    source: Ref<Directory>,
    /// Let no command write to it.
    #[arg(default = "false")]
    read_only: bool,
    /// Give it to the container's user instead.
    #[arg(default = "false")]
    inherit_owner: bool,
}

impl Op for WithMountedDirectory {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withMountedDirectory";

    async fn run(&self, container: &Container, cx: &Context) -> Result<Container, Error> {
        let services = cx.get::<Services>()?;
        let path = container.mount_path(&self.path, self.expand)?;
        let tree = match container.mount_owner(&self.owner, self.inherit_owner, cx).await? {
            None => self.source.as_tree(services).await?,
            Some(owner) => {
                let source = self.source.as_source(services).await?;
                let (path, filter, mode) = (String::new(), Filter::default(), None);
                let edit = Edit::CopyDirectory { source, path, filter, mode, owner };
                Tree::empty().edited(edit, services).await?
            }
        };
        Ok(container.mounted(path, MountSource::Directory(tree), self.read_only))
    }
}

/// Mounts a file. What commands write to it stays with the container.
#[derive(Args)]
struct WithMountedFile {
    /// Replace `$VAR` and `${VAR}` in the path by the container's variables.
    #[arg(default = "false")]
    expand: bool,
    /// `user[:group]` that owns it; unchanged when empty.
    #[arg(default = "\"\"")]
    owner: String,
    /// Where.
    path: String,
    /// The file.
    source: Ref<File>,
    /// Give it to the container's user instead.
    #[arg(default = "false")]
    inherit_owner: bool,
}

impl Op for WithMountedFile {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withMountedFile";

    async fn run(&self, container: &Container, cx: &Context) -> Result<Container, Error> {
        let services = cx.get::<Services>()?;
        let path = container.mount_path(&self.path, self.expand)?;
        let owner = container.mount_owner(&self.owner, self.inherit_owner, cx).await?;
        let name = paths::name(&path).to_owned();
        let edit = Edit::CopyFile {
            source: self.source.as_source(services).await?,
            path: name.clone(),
            mode: None,
            owner: owner.unwrap_or(OwnerSpec::Source),
        };
        let tree = Tree::empty().edited(edit, services).await?;
        Ok(container.mounted(path, MountSource::File { tree, name }, false))
    }
}

/// Mounts a cache volume: files that stay from run to run, whatever becomes of the container.
#[derive(Args)]
struct WithMountedCache {
    /// The volume.
    cache: Ref<CacheVolume>,
    /// Replace `$VAR` and `${VAR}` in the path by the container's variables.
    #[arg(default = "false")]
    expand: bool,
    /// `user[:group]` that owns a new volume and all that it starts with.
    #[arg(default = "\"\"")]
    owner: String,
    /// Where.
    path: String,
    /// Who may use it at the same time.
    #[arg(default = "SHARED")]
    sharing: CacheSharingMode,
    /// What an empty volume starts with.
    source: Option<Ref<Directory>>,
    /// Give a new volume to the container's user instead.
    #[arg(default = "false")]
    inherit_owner: bool,
}

impl Op for WithMountedCache {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withMountedCache";

    async fn run(&self, container: &Container, cx: &Context) -> Result<Container, Error> {
        let services = cx.get::<Services>()?;
        let path = container.mount_path(&self.path, self.expand)?;
        // What the mount says goes before what the volume says.
        let sharing = match self.sharing {
            CacheSharingMode::Shared => self.cache.sharing,
            given => given,
        };
        let seed = self.source.as_deref().or(self.cache.source.as_deref());
        let seed = match seed {
            Some(source) => Some(source.as_tree(services).await?),
            None => None,
        };
        let named = match &self.owner[..] {
            "" if !self.inherit_owner => &self.cache.owner[..],
            given => given,
        };
        let owner = container.mount_owner(named, self.inherit_owner, cx).await?;
        let cache = CacheMount { key: self.cache.key.clone(), sharing, seed, owner };
        Ok(container.mounted(path, MountSource::Cache(cache), false))
    }
}

/// Mounts an empty file system that lives in memory and is gone after each command.
#[derive(Args)]
struct WithMountedTemp {
    /// Replace `$VAR` and `${VAR}` in the path by the container's variables.
    #[arg(default = "false")]
    expand: bool,
    /// Where.
    path: String,
    /// Most bytes it may hold.
    size: Option<i64>,
}

impl Op for WithMountedTemp {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withMountedTemp";

    async fn run(&self, container: &Container, _: &Context) -> Result<Container, Error> {
        let size = match self.size {
            None => None,
            Some(size) if size > 0 => Some(size.unsigned_abs()),
            Some(size) => {
                return Err(Error::user(format!("a size of {size} bytes: give more than 0")));
            }
        };
        let path = container.mount_path(&self.path, self.expand)?;
        Ok(container.mounted(path, MountSource::Temporary { size }, false))
    }
}

/// Mounts a volume as it is. Commands that have it run every time, and what they write to it is seen by
/// all others at once.
#[derive(Args)]
struct WithMountedVolume {
    /// Where.
    path: String,
    /// The volume.
    volume: Ref<Volume>,
    /// Let no command write to it.
    #[arg(default = "false")]
    read_only: bool,
    /// Replace `$VAR` and `${VAR}` in the path by the container's variables.
    #[arg(default = "false")]
    expand: bool,
}

impl Op for WithMountedVolume {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withMountedVolume";

    async fn run(&self, container: &Container, _: &Context) -> Result<Container, Error> {
        let path = container.mount_path(&self.path, self.expand)?;
        Ok(container.mounted(path, MountSource::Volume(self.volume.arc()), self.read_only))
    }
}

/// Takes a mount away, a secret's too.
#[derive(Args)]
struct WithoutMount {
    /// Replace `$VAR` and `${VAR}` in the path by the container's variables.
    #[arg(default = "false")]
    expand: bool,
    /// Where it is.
    path: String,
}

impl Op for WithoutMount {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withoutMount";

    async fn run(&self, container: &Container, _: &Context) -> Result<Container, Error> {
        let path = container.absolute(&self.path, self.expand)?;
        let mut changed = container.clone();
        changed.mounts.retain(|mount| mount.path != path);
        changed.secrets.unmount(&path);
        Ok(changed)
    }
}

/// Paths of all mounts, in the order they were made.
#[derive(Args)]
struct Mounts {}

impl Op for Mounts {
    type Parent = Container;
    type Output = Vec<String>;
    const NAME: &'static str = "mounts";

    async fn run(&self, container: &Container, _: &Context) -> Result<Vec<String>, Error> {
        Ok(container.mounts.iter().map(|mount| mount.path.clone()).collect())
    }
}

impl Container {
    /// Whether commands see something that changes while nobody looks.
    pub(super) fn is_live(&self) -> bool {
        self.mounts.iter().any(|mount| matches!(mount.source, MountSource::Volume(_)))
    }

    pub(super) fn mount_path(&self, path: &str, expand: bool) -> Result<String, Error> {
        let path = self.absolute(path, expand)?;
        if path == "/" {
            let error = Error::user("the root directory cannot be mounted over");
            return Err(error.with_hint("replace the root file system with `withRootfs`"));
        }
        Ok(path)
    }

    /// The owner to give a mount; none leaves it as it is.
    async fn mount_owner(
        &self,
        named: &str,
        inherit: bool,
        cx: &Context,
    ) -> Result<Option<OwnerSpec>, Error> {
        if named.is_empty() && !inherit {
            return Ok(None);
        }
        self.owner(named, inherit, cx).await.map(Some)
    }

    fn mounted(&self, path: String, source: MountSource, read_only: bool) -> Self {
        let mut changed = self.clone();
        changed.mounts.retain(|mount| paths::below(&path, &mount.path).is_none());
        changed.mounts.push(MountPoint { path, source, read_only });
        changed
    }
}
