//! `Container`: a root file system, mounts and a configuration; what commands run in.
//!
//! The value is plain data and cheap to clone. Which tree a path belongs to (the root or a mount) is
//! decided by [`Container::locate`] alone; every field that reads or writes a path goes through it.

mod annotations;
mod background;
mod bindings;
mod captures;
mod config;
mod duration;
mod exec;
mod failure;
mod files;
mod from;
mod gpus;
mod healthcheck;
mod host_store;
mod look;
mod mounts;
mod outcome;
mod places;
mod ports;
mod publish;
mod run;
mod secrets;
mod sockets;
mod steps;
mod streams;
mod terminal;
mod variables;
mod volumes;

pub(crate) use sockets::{Listening, lend_socket};

use crate::cache_volume::CacheSharingMode;
use crate::directory::Directory;
use crate::edit::Edit;
use crate::expand::expand;
use crate::file::File;
use crate::image::{Auth, Base, Step};
use crate::owner::OwnerSpec;
use crate::paths;
use crate::services::Services;
use crate::tree::Tree;
use crate::volume::Volume;
pub(crate) use background::{Alive, Background, Beside};
use bindings::Binding;
pub(crate) use exec::Powers;
use graph::{Builder, Extensions, Object};
pub(crate) use healthcheck::Healthcheck;
use outcome::Outcome;
pub(crate) use ports::{ExposedPort, NetworkProtocol, port_number};
use protocol::Error;
use secrets::Secrets;
use sockets::SocketMount;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
pub(crate) use steps::{StepCommand, StepMount};
use terminal::TerminalCommand;

/// Search path where a container sets none.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A container, as a value.
#[derive(Clone)]
pub struct Container {
    /// `os/arch[/variant]` as it was given.
    platform: Arc<str>,
    rootfs: Tree,
    config: Arc<Config>,
    mounts: Vec<MountPoint>,
    /// Of the last command, if one has run.
    last: Option<Arc<Outcome>>,
    /// The image it began from.
    base: Option<Arc<Base>>,
    /// The full name of that image, as long as the configuration is still the image's.
    image_ref: Option<Arc<str>>,
    /// What the manifest of an image made from it will say.
    annotations: Vec<(String, String)>,
    /// Logins for registries; no part of any cache key.
    auths: Vec<Auth>,
    /// Variables that commands see and that are no part of any cache key, image or service.
    volatile: Vec<(String, String)>,
    /// What only commands see.
    secrets: Secrets,
    /// Sockets of the client's machine; no part of any cache key.
    sockets: Vec<SocketMount>,
    /// Services that commands reach.
    bindings: Vec<Binding>,
    /// Device nodes of graphics processors.
    gpus: Vec<String>,
    /// What a terminal runs.
    terminal: Option<TerminalCommand>,
    /// How it was made since it began from an image, where a Dockerfile says.
    steps: Arc<Vec<Step>>,
}

/// What an image says about running it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Config {
    env: Vec<(String, String)>,
    workdir: String,
    user: String,
    entrypoint: Vec<String>,
    default_args: Vec<String>,
    labels: Vec<(String, String)>,
    ports: Vec<ExposedPort>,
    /// What only some programs know, as an image brought it: health checks, volumes and so on.
    other: BTreeMap<String, serde_json::Value>,
}

/// Something mounted over the root file system.
#[derive(Clone)]
struct MountPoint {
    /// Tidy and absolute.
    path: String,
    source: MountSource,
    read_only: bool,
}

#[derive(Clone)]
enum MountSource {
    /// A directory; what commands write to it stays with the container value.
    Directory(Tree),
    /// One file, in a tree of its own under this name.
    File {
        tree: Tree,
        name: String,
    },
    Cache(CacheMount),
    Volume(Arc<Volume>),
    Temporary {
        size: Option<u64>,
    },
}

/// A cache volume as it is mounted.
#[derive(Clone)]
struct CacheMount {
    key: String,
    sharing: CacheSharingMode,
    /// What an empty volume starts with.
    seed: Option<Tree>,
    /// Who owns a new volume; none leaves what it starts with as it is.
    owner: Option<OwnerSpec>,
}

/// Where a path of the container is kept.
enum Place<'a> {
    Root,
    Mount(&'a MountPoint, usize),
}

impl Object for Container {
    const TYPE: &'static str = "Container";

    fn is_whole(&self, extensions: &Extensions) -> bool {
        extensions.get::<Services>().is_none_or(|services| !self.is_lost(services))
    }
}

/// Adds the fields of `Container`.
pub(crate) fn install(builder: &mut Builder) {
    annotations::install(builder);
    bindings::install(builder);
    config::install(builder);
    exec::install(builder);
    files::install(builder);
    gpus::install(builder);
    from::install(builder);
    look::install(builder);
    healthcheck::install(builder);
    host_store::install(builder);
    mounts::install(builder);
    ports::install(builder);
    publish::install(builder);
    secrets::install(builder);
    sockets::install(builder);
    streams::install(builder);
    terminal::install(builder);
    variables::install(builder);
}

impl Container {
    /// Whether something that it is made of was found missing or damaged.
    fn is_lost(&self, services: &Services) -> bool {
        self.trees().any(|tree| tree.is_lost(services))
            || self.last.as_ref().is_some_and(|outcome| outcome.is_lost(&services.store))
    }

    /// The root file system and everything mounted that belongs to the value.
    fn trees(&self) -> impl Iterator<Item = &Tree> {
        let mounts = self.mounts.iter().filter_map(|mount| match &mount.source {
            MountSource::Directory(tree) | MountSource::File { tree, .. } => Some(tree),
            _ => None,
        });
        mounts.chain([&self.rootfs])
    }

    /// An empty container for a platform.
    pub(crate) fn scratch(platform: &str) -> Self {
        Self {
            platform: platform.into(),
            rootfs: Tree::empty(),
            config: Arc::new(Config::default()),
            mounts: vec![],
            last: None,
            base: None,
            image_ref: None,
            annotations: vec![],
            auths: vec![],
            volatile: vec![],
            secrets: Secrets::default(),
            sockets: vec![],
            bindings: vec![],
            gpus: vec![],
            terminal: None,
            steps: Arc::default(),
        }
    }

    fn with_config(&self, change: impl FnOnce(&mut Config)) -> Self {
        let mut changed = self.clone();
        change(Arc::make_mut(&mut changed.config));
        changed.image_ref = None;
        changed
    }

    fn env(&self, name: &str) -> Option<&str> {
        self.config.env.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The text, with variables replaced where that was asked for. Secrets and volatile variables would
    /// land in names.
    fn expanded(&self, text: &str, asked: bool) -> Result<String, Error> {
        if !asked {
            return Ok(text.to_owned());
        }
        let refused = Cell::new(None);
        let expanded = expand(text, &|name| {
            if self.secrets.has_variable(name) {
                refused.set(Some(("secret", name.to_owned())));
            } else if self.is_volatile(name) {
                refused.set(Some(("volatile", name.to_owned())));
            }
            self.env(name).map(str::to_owned)
        });
        match refused.take() {
            None => Ok(expanded),
            Some((kind, name)) => {
                let message = format!("expand cannot be used with {kind} env variable \"{name}\"");
                Err(Error::user(message))
            }
        }
    }

    /// A path argument, tidy and absolute.
    fn absolute(&self, path: &str, expand: bool) -> Result<String, Error> {
        Ok(paths::absolute(&self.config.workdir, &self.expanded(path, expand)?))
    }

    /// The innermost mount that covers a path, and the path below it.
    fn locate<'a, 'p>(&'a self, path: &'p str) -> (Place<'a>, &'p str) {
        let covering = self
            .mounts
            .iter()
            .enumerate()
            .filter_map(|(index, mount)| Some((mount, index, paths::below(&mount.path, path)?)))
            .max_by_key(|(mount, ..)| mount.path.len());
        match covering {
            Some((mount, index, rest)) => (Place::Mount(mount, index), rest),
            None => (Place::Root, path.trim_start_matches('/')),
        }
    }

    /// The directory at a path, wherever that is kept.
    fn directory_at(&self, path: &str) -> Result<Directory, Error> {
        match self.locate(path) {
            (Place::Root, rest) => Ok(Directory::below(self.rootfs.clone(), rest)),
            (Place::Mount(mount, _), rest) => match &mount.source {
                MountSource::Directory(tree) => Ok(Directory::below(tree.clone(), rest)),
                MountSource::File { .. } => {
                    Err(Error::user(format!("path {path} is a file, not a directory")))
                }
                other => Err(other.unreadable(path)),
            },
        }
    }

    /// The file at a path, wherever that is kept.
    fn file_at(&self, path: &str) -> Result<File, Error> {
        match self.locate(path) {
            (Place::Root, rest) => Ok(File::below(self.rootfs.clone(), rest)),
            (Place::Mount(mount, _), rest) => match &mount.source {
                MountSource::Directory(tree) => Ok(File::below(tree.clone(), rest)),
                MountSource::File { tree, name } if rest.is_empty() => {
                    Ok(File::below(tree.clone(), name).renamed(paths::name(path)))
                }
                MountSource::File { .. } => {
                    Err(Error::user(format!("{path}: no such file or directory")))
                }
                other => Err(other.unreadable(path)),
            },
        }
    }

    /// Applies an edit to whatever is kept at `path`; `edit` gets the path below that.
    async fn edit_at(
        &self,
        path: &str,
        services: &Services,
        edit: impl FnOnce(String) -> Edit,
    ) -> Result<Self, Error> {
        let mut changed = self.clone();
        match self.locate(path) {
            (Place::Root, rest) => {
                changed.rootfs = self.rootfs.edited(edit(rest.to_owned()), services).await?;
            }
            (Place::Mount(mount, index), rest) => match &mount.source {
                MountSource::Directory(tree) => {
                    let tree = tree.edited(edit(rest.to_owned()), services).await?;
                    changed.mounts[index].source = MountSource::Directory(tree);
                }
                MountSource::File { tree, name } if rest.is_empty() => {
                    let (tree, name) =
                        (tree.edited(edit(name.clone()), services).await?, name.clone());
                    changed.mounts[index].source = MountSource::File { tree, name };
                }
                MountSource::File { .. } => {
                    return Err(Error::user(format!("path {path} is below a mounted file")));
                }
                other => return Err(other.unreadable(path)),
            },
        }
        Ok(changed)
    }
}

impl MountSource {
    /// Why a path in this mount can be neither read nor written from outside.
    fn unreadable(&self, path: &str) -> Error {
        match self {
            Self::Cache(_) => Error::user(format!("{path}: cannot retrieve path from cache")),
            Self::Volume(_) => Error::user(format!("{path}: cannot retrieve path from volume")),
            _ => Error::user(format!("{path}: cannot retrieve path from tmpfs")),
        }
    }
}
