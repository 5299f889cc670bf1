//! What building from a Dockerfile does to a container: its configuration, its root, its commands.
//!
//! Commands run by the very path of `withExec`, so that both share what was made before.

use super::config::set;
use super::exec::ReturnType;
use super::ports::ExposedPort;
use super::run::Command;
use super::secrets::SecretFile;
use super::sockets::SocketMount;
use super::{CacheMount, Container, MountPoint, MountSource};
use crate::cache_volume::CacheSharingMode;
use crate::image::Step;
use crate::owner::OwnerSpec;
use crate::paths;
use crate::secret::Secret;
use crate::socket::Socket;
use crate::tree::Tree;
use graph::Context;
use protocol::Error;
use sandbox::Network;
use serde_json::Value;
use std::sync::Arc;

/// A command of one step. Nothing of it but what it writes to the root stays with the container.
pub(crate) struct StepCommand {
    /// Program and arguments.
    pub(crate) args: Vec<String>,
    /// All variables that are part of what the step is.
    pub(crate) env: Vec<(String, String)>,
    /// Further variables that make no other step of it.
    pub(crate) volatile: Vec<(String, String)>,
    /// What it sees besides the root, in order.
    pub(crate) mounts: Vec<StepMount>,
    /// What it can reach; none is what the engine says.
    pub(crate) network: Option<Network>,
    /// Whether process 1 is the engine's own.
    pub(crate) init: bool,
}

/// Something that only one command sees. Paths are tidy and absolute.
pub(crate) enum StepMount {
    /// A directory; what is written to it is thrown away.
    Directory { path: String, tree: Tree, read_only: bool },
    /// One file, in a tree of its own under this name.
    File { path: String, tree: Tree, name: String, read_only: bool },
    /// A cache volume.
    Cache {
        path: String,
        key: String,
        sharing: CacheSharingMode,
        seed: Option<Tree>,
        owner: Option<OwnerSpec>,
        read_only: bool,
    },
    /// An empty file system in memory.
    Temporary { path: String, size: Option<u64> },
    /// A secret as a file.
    Secret { path: String, mode: u32, owner: OwnerSpec, secret: Arc<Secret> },
    /// A secret as a variable.
    SecretVariable { name: String, secret: Arc<Secret> },
    /// A socket of the client's machine.
    Socket { path: String, owner: OwnerSpec, socket: Arc<Socket> },
}

impl Container {
    /// `os/arch[/variant]` as it was given.
    pub(crate) fn platform(&self) -> &str {
        &self.platform
    }

    /// An empty container for a platform that knows the same logins.
    pub(crate) fn blank(&self, platform: &str) -> Self {
        Self { auths: self.auths.clone(), ..Self::scratch(platform) }
    }

    /// This container as if nothing had run in it.
    pub(crate) fn without_outcome(mut self) -> Self {
        self.last = None;
        self
    }

    /// The root file system.
    pub(crate) fn root(&self) -> &Tree {
        &self.rootfs
    }

    /// Replaces the root file system.
    pub(crate) fn set_root(&mut self, tree: Tree) {
        self.rootfs = tree;
    }

    /// All variables, in the order they were set.
    pub(crate) fn variables(&self) -> &[(String, String)] {
        &self.config.env
    }

    /// Sets a variable.
    pub(crate) fn set_variable(&mut self, name: &str, value: String) {
        *self = self.with_config(|config| set(&mut config.env, name, value));
    }

    /// Sets a label.
    pub(crate) fn set_label(&mut self, name: &str, value: String) {
        *self = self.with_config(|config| set(&mut config.labels, name, value));
    }

    /// A path from the working directory, tidy and absolute.
    pub(crate) fn path_from_workdir(&self, path: &str) -> String {
        paths::absolute(&self.config.workdir, path)
    }

    /// Sets the working directory.
    pub(crate) fn set_workdir(&mut self, path: String) {
        *self = self.with_config(|config| config.workdir = path);
    }

    /// The user that commands run as.
    pub(crate) fn user(&self) -> &str {
        &self.config.user
    }

    /// Sets the user that commands run as.
    pub(crate) fn set_user(&mut self, user: String) {
        *self = self.with_config(|config| config.user = user);
    }

    /// Sets what goes before the arguments.
    pub(crate) fn set_entrypoint(&mut self, args: Vec<String>) {
        *self = self.with_config(|config| config.entrypoint = args);
    }

    /// Sets the arguments where none are given.
    pub(crate) fn set_default_args(&mut self, args: Vec<String>) {
        *self = self.with_config(|config| config.default_args = args);
    }

    /// Says that it listens on a port, `80/tcp`; false for what is no port.
    pub(crate) fn expose(&mut self, port: &str) -> bool {
        let Some(port) = ExposedPort::parse(port) else { return false };
        *self = self.with_config(|config| config.expose(port));
        true
    }

    /// What an image says that only some programs know.
    pub(crate) fn extra(&self, name: &str) -> Option<&Value> {
        self.config.other.get(name)
    }

    /// Sets what only some programs know; null takes it away.
    pub(crate) fn set_extra(&mut self, name: &str, value: Value) {
        *self = self.with_config(|config| match value {
            Value::Null => drop(config.other.remove(name)),
            value => drop(config.other.insert(name.to_owned(), value)),
        });
    }

    /// Writes down what was done, for the history of an image. Nothing is done yet by an empty text.
    pub(crate) fn note_step(&mut self, text: &str, wrote: bool) {
        let tree = wrote.then(|| self.rootfs.clone());
        Arc::make_mut(&mut self.steps).push(Step { text: text.to_owned(), tree });
    }

    /// Who made the image.
    pub(crate) fn set_author(&mut self, author: String) {
        let mut base = self.base.as_deref().cloned().unwrap_or_default();
        base.author = Some(author);
        self.base = Some(Arc::new(base));
    }

    /// The container after a command of one step.
    pub(crate) async fn after_step(&self, step: StepCommand, cx: &Context) -> Result<Self, Error> {
        let mut inside = self.with_config(|config| config.env = step.env);
        inside.volatile = step.volatile;
        step.mounts.into_iter().for_each(|mount| inside.mount_for_step(mount));
        let command = Command {
            args: step.args,
            expect: ReturnType::Success,
            all_capabilities: false,
            nests: false,
            init: step.init,
            stdin: String::new(),
            redirect_stdin: None,
            redirect_stdout: None,
            redirect_stderr: None,
            network: step.network,
        };
        let after = super::run::run(&inside, command, cx).await?;
        let mut changed = self.clone();
        changed.rootfs = after.rootfs;
        changed.last = after.last;
        Ok(changed)
    }

    fn mount_for_step(&mut self, mount: StepMount) {
        let (path, source, read_only) = match mount {
            StepMount::Directory { path, tree, read_only } => {
                (path, MountSource::Directory(tree), read_only)
            }
            StepMount::File { path, tree, name, read_only } => {
                (path, MountSource::File { tree, name }, read_only)
            }
            StepMount::Cache { path, key, sharing, seed, owner, read_only } => {
                (path, MountSource::Cache(CacheMount { key, sharing, seed, owner }), read_only)
            }
            StepMount::Temporary { path, size } => (path, MountSource::Temporary { size }, false),
            StepMount::Secret { path, mode, owner, secret } => {
                self.secrets.unmount(&path);
                self.secrets.files.push(SecretFile { path, mode, owner, secret });
                return;
            }
            StepMount::SecretVariable { name, secret } => {
                self.secrets.variables.retain(|(known, _)| *known != name);
                self.secrets.variables.push((name, secret));
                return;
            }
            StepMount::Socket { path, owner, socket } => {
                self.sockets.retain(|known| known.path != path);
                self.sockets.push(SocketMount { path, owner, socket });
                return;
            }
        };
        self.mounts.retain(|mount| mount.path != path);
        self.mounts.push(MountPoint { path, source, read_only });
    }
}
