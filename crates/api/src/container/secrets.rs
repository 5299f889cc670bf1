//! Secrets of a container: variables and files that only its commands see.
//!
//! They are no part of the root file system or of the image's configuration, so nothing that is
//! published or read back has them. A file is in memory and can only be read. The names of commands
//! hold digests of secrets under the engine's key.

use super::Container;
use crate::modes;
use crate::owner::{self, OwnerSpec};
use crate::secret::Secret;
use crate::services::Services;
use futures::future::try_join_all;
use graph::{Args, Builder, Context, LogStream, Op, Ref};
use protocol::{DigestBuilder, Error};
use redact::Redactor;
use std::sync::Arc;
use store::{Snapshot, Target, TargetKind};

/// Longest variable that the kernel takes, with its name, the sign between them and a zero.
const MAX_VARIABLE_BYTES: usize = 128 << 10;

pub(super) fn install(builder: &mut Builder) {
    builder
        .install::<WithSecretVariable>()
        .install::<WithoutSecretVariable>()
        .install::<WithMountedSecret>();
}

/// The secrets of a container, in the order they were given.
#[derive(Clone, Default)]
pub(super) struct Secrets {
    pub(super) variables: Vec<(String, Arc<Secret>)>,
    pub(super) files: Vec<SecretFile>,
}

#[derive(Clone)]
pub(super) struct SecretFile {
    /// Tidy and absolute.
    pub(super) path: String,
    pub(super) mode: u32,
    pub(super) owner: OwnerSpec,
    pub(super) secret: Arc<Secret>,
}

/// The secrets of one command, read.
pub(super) struct Revealed {
    /// Variables with their values.
    pub(super) variables: Vec<(String, String)>,
    files: Vec<(SecretFile, Arc<[u8]>)>,
    /// Finds them in what the command prints.
    redactor: Redactor,
}

/// Takes secrets out of both streams of a command.
struct Streams([redact::Stream; 2]);

impl Secrets {
    /// Whether a variable of this name is secret.
    pub(super) fn has_variable(&self, name: &str) -> bool {
        self.variables.iter().any(|(known, _)| known == name)
    }

    /// Takes away the file at a path.
    pub(super) fn unmount(&mut self, path: &str) {
        self.files.retain(|file| file.path != path);
    }

    /// What the files are mounted onto.
    pub(super) fn targets(&self) -> impl Iterator<Item = Target> {
        self.files.iter().map(|file| Target { path: file.path.clone(), kind: TargetKind::File })
    }

    fn is_empty(&self) -> bool {
        self.variables.is_empty() && self.files.is_empty()
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Secret>> {
        let variables = self.variables.iter().map(|(_, secret)| secret);
        variables.chain(self.files.iter().map(|file| &file.secret))
    }

    /// Feeds the name of a command with all that it can observe of them.
    pub(super) async fn digest_into(
        &self,
        digest: &mut DigestBuilder,
        cx: &Context,
    ) -> Result<(), Error> {
        if self.is_empty() {
            return Ok(());
        }
        let digests = try_join_all(self.all().map(|secret| secret.digest(cx))).await?;
        let mut digests = digests.iter();
        digest.text("secrets").number(self.variables.len() as u64);
        for ((name, _), sealed) in self.variables.iter().zip(digests.by_ref()) {
            digest.text(name).digest(sealed);
        }
        for (file, sealed) in self.files.iter().zip(digests) {
            digest.text(&file.path).number(u64::from(file.mode)).digest(sealed);
            file.owner.digest_into(digest);
        }
        Ok(())
    }

    /// Reads all of them, side by side.
    pub(super) async fn reveal(&self, cx: &Context) -> Result<Revealed, Error> {
        if self.is_empty() {
            return Ok(Revealed { variables: vec![], files: vec![], redactor: Redactor::none() });
        }
        let texts = self.variables.iter().map(|(_, secret)| secret.text(cx));
        let bytes = self.files.iter().map(|file| file.secret.plaintext(cx));
        let (texts, bytes) = futures::try_join!(try_join_all(texts), try_join_all(bytes))?;
        let redactor = Redactor::plain(
            texts.iter().map(String::as_bytes).chain(bytes.iter().map(|bytes| &**bytes)),
        );
        for ((name, secret), text) in self.variables.iter().zip(&texts) {
            if name.len() + text.len() + 2 > MAX_VARIABLE_BYTES {
                let message = format!("secret `{}` is too long for a variable", secret.name());
                let error = Error::user(message);
                return Err(error.with_hint("mount it as a file with `withMountedSecret`"));
            }
        }
        let names = self.variables.iter().map(|(name, _)| name.clone());
        let revealed = Revealed {
            variables: names.zip(texts).collect(),
            files: self.files.iter().cloned().zip(bytes).collect(),
            redactor,
        };
        self.warn(&revealed, cx);
        Ok(revealed)
    }

    /// Says which of them are too short to be hidden.
    fn warn(&self, revealed: &Revealed, cx: &Context) {
        for (secret, value) in self.all().zip(revealed.values()) {
            if redact::is_too_short(value) && !value.is_empty() {
                let (name, least) = (secret.name(), redact::SHORTEST);
                let warning = format!(
                    "warning: secret `{name}` is shorter than {least} bytes and is not hidden in output\n"
                );
                cx.span().log(LogStream::Engine, warning);
            }
        }
    }
}

impl Revealed {
    /// Takes them, and the token of the command's session if it has one, out of what the command prints,
    /// before anything of it is kept.
    pub(super) fn filter(&self, token: Option<&str>) -> Option<Box<dyn sandbox::Filter>> {
        let redactor = match token {
            Some(token) => Redactor::plain(self.values().chain([token.as_bytes()])),
            None => self.redactor.clone(),
        };
        let streams = || Streams([redactor.stream(), redactor.stream()]);
        (!redactor.is_empty()).then(|| Box::new(streams()) as Box<dyn sandbox::Filter>)
    }

    fn values(&self) -> impl Iterator<Item = &[u8]> {
        let texts = self.variables.iter().map(|(_, text)| text.as_bytes());
        texts.chain(self.files.iter().map(|(_, bytes)| &**bytes))
    }

    /// The files, each in a file system in memory of its own.
    pub(super) fn mounts(
        &self,
        rootfs: &Snapshot,
        services: &Services,
    ) -> Result<Vec<sandbox::MountPoint>, Error> {
        if self.files.is_empty() {
            return Ok(vec![]);
        }
        let view = services.store.view(rootfs);
        let mount = |(file, bytes): &(SecretFile, Arc<[u8]>)| {
            let owner = file.owner.resolve(&|path| owner::read_small_file(&view, path))?;
            let owner = owner.unwrap_or_default();
            let whole = sandbox::memory_file(bytes, file.mode, (owner.uid, owner.gid))
                .map_err(|error| Error::environment(error.to_string()))?;
            let part = services.store.part(&whole, sandbox::MEMORY_ENTRY)?;
            let source = sandbox::Source::Mount(part);
            Ok(sandbox::MountPoint { target: file.path.clone(), source, read_only: true })
        };
        self.files.iter().map(mount).collect()
    }
}

impl Streams {
    fn of(&mut self, stream: sandbox::Stream) -> &mut redact::Stream {
        let [stdout, stderr] = &mut self.0;
        match stream {
            sandbox::Stream::Stdout => stdout,
            sandbox::Stream::Stderr => stderr,
        }
    }
}

impl sandbox::Filter for Streams {
    fn pass(&mut self, stream: sandbox::Stream, piece: &[u8], passed: &mut Vec<u8>) {
        self.of(stream).push(piece, passed);
    }

    fn end(&mut self, stream: sandbox::Stream, passed: &mut Vec<u8>) {
        self.of(stream).finish(passed);
    }
}

/// Sets an environment variable to a secret. Commands see it; the container's configuration and images
/// made from it do not.
#[derive(Args)]
struct WithSecretVariable {
    /// Name of the variable.
    name: String,
    /// Its value.
    secret: Ref<Secret>,
}

impl Op for WithSecretVariable {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withSecretVariable";

    async fn run(&self, container: &Container, _: &Context) -> Result<Container, Error> {
        if self.name.is_empty() || self.name.contains(['=', '\0']) {
            return Err(Error::user(format!("`{}` cannot be the name of a variable", self.name)));
        }
        let mut changed = container.clone();
        changed.secrets.variables.retain(|(name, _)| *name != self.name);
        changed.secrets.variables.push((self.name.clone(), self.secret.arc()));
        Ok(changed)
    }
}

/// Removes an environment variable that is a secret.
#[derive(Args)]
struct WithoutSecretVariable {
    /// Name of the variable.
    name: String,
}

impl Op for WithoutSecretVariable {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withoutSecretVariable";

    async fn run(&self, container: &Container, _: &Context) -> Result<Container, Error> {
        let mut changed = container.clone();
        changed.secrets.variables.retain(|(name, _)| *name != self.name);
        Ok(changed)
    }
}

/// Mounts a secret as a file that commands can read. It is in memory and on no disk.
#[derive(Args)]
struct WithMountedSecret {
    /// Replace `$VAR` and `${VAR}` in the path by the container's variables.
    #[arg(default = "false")]
    expand: bool,
    /// Permission bits of the file.
    #[arg(default = "256")]
    mode: i64,
    /// `user[:group]` that owns it; root when empty.
    #[arg(default = "\"\"")]
    owner: String,
    /// Where.
    path: String,
    /// The secret.
    source: Ref<Secret>,
    /// Give it to the container's user instead.
    #[arg(default = "false")]
    inherit_owner: bool,
}

impl Op for WithMountedSecret {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withMountedSecret";

    async fn run(&self, container: &Container, cx: &Context) -> Result<Container, Error> {
        let path = container.mount_path(&self.path, self.expand)?;
        let mode = modes::required(self.mode)?;
        let owner = container.owner(&self.owner, self.inherit_owner, cx).await?;
        let mut changed = container.clone();
        changed.secrets.unmount(&path);
        let file = SecretFile { path, mode, owner, secret: self.source.arc() };
        changed.secrets.files.push(file);
        Ok(changed)
    }
}
