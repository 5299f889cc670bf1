//! Images in registries: manifests and blobs in and out over HTTP, by the distribution protocol.
//!
//! Start with [`Registries`]: one for the engine, [`Registries::with_credentials`] for who asks.
//! [`Reference`] is a name of an image. What is pulled is verified against its digest always: a
//! [`Blob`] gives its last bytes only when all of them were right. What fails in passing is tried
//! again with growing pauses; a cut download or upload goes on where it stopped. Dropping a future
//! or a [`Blob`] cancels it.
//!
//! This is a client of our own, not one of the published ones, because the parts that matter here
//! are those that they leave out: mirrors, several certificates and protocols by host, resuming in
//! the middle of a blob, limits on silence, keys that never follow a redirect, and errors that name
//! a rate limit. What is left, some requests over `reqwest`, is small.
//!
//! Nothing here reads the environment or knows what is in an image.

mod blob;
mod credentials;
mod digest;
mod error;
mod manifest;
mod push;
mod reference;
mod settings;
mod source;
mod wire;

pub use blob::Blob;
pub use credentials::{
    Anonymous, Chain, Credential, Credentials, DockerConfig, Found, Given, Places,
};
pub use digest::{Descriptor, Digest, Verifier};
pub use error::Error;
pub use manifest::Fetched;
pub use push::OpenUpload;
pub use reference::Reference;
pub use settings::{Host, Progress, Protocol, Settings, quiet};
pub use source::{FileSource, MemorySource, Reader, Source};

use std::fmt;
use std::sync::Arc;
use wire::{Clients, Endpoint, Endpoints, Keyring, Tries};

/// All registries. Cheap to clone; clones share connections and what registries have said.
#[derive(Clone)]
pub struct Registries {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    settings: Settings,
    clients: Arc<Clients>,
    endpoints: Arc<Endpoints>,
    keyring: Keyring,
}

impl Registries {
    /// Does nothing yet: HTTP clients are built when an address first needs them.
    pub fn new(mut settings: Settings) -> Self {
        let hosts = std::mem::take(&mut settings.hosts).into_iter();
        let canonical = |name: String| reference::canonical_registry(&name).to_owned();
        settings.hosts = hosts.map(|(name, host)| (canonical(name), host)).collect();
        let (clients, endpoints) = (Arc::default(), Arc::default());
        Self {
            inner: Arc::new(Inner { settings, clients, endpoints, keyring: Keyring::default() }),
        }
    }

    /// The same for somebody else. Connections are shared, what was let in is not.
    #[must_use]
    pub fn with_credentials(&self, credentials: Arc<dyn Credentials>) -> Self {
        self.changed(|settings| settings.credentials = credentials)
    }

    /// The same with other settings of one registry, by name.
    #[must_use]
    pub fn with_host(&self, registry: &str, change: impl FnOnce(&mut Host)) -> Self {
        let registry = reference::canonical_registry(registry).to_owned();
        let mut changed =
            self.changed(|settings| change(settings.hosts.entry(registry).or_default()));
        // How hosts speak was found out under other rules, and whoever is elsewhere is so for a while.
        if let Some(inner) = Arc::get_mut(&mut changed.inner) {
            inner.endpoints = Arc::default();
            if inner.settings.hosts.values().any(|host| host.address.is_some()) {
                inner.clients = Arc::default();
            }
        }
        changed
    }

    /// The digest that a name means now.
    pub async fn resolve(&self, reference: &Reference) -> Result<Digest, Error> {
        manifest::resolve(&self.inner, reference).await
    }

    /// A manifest or index by tag or digest, verified.
    pub async fn manifest(&self, reference: &Reference) -> Result<Fetched, Error> {
        manifest::fetch(&self.inner, reference).await
    }

    /// A blob from its first byte on.
    pub async fn blob(
        &self,
        reference: &Reference,
        descriptor: &Descriptor,
        progress: Progress,
    ) -> Result<Blob, Error> {
        self.rest_of_blob(reference, descriptor, Verifier::new(&descriptor.digest), progress).await
    }

    /// The rest of a blob of which somebody has the beginning, which went through the verifier.
    pub async fn rest_of_blob(
        &self,
        reference: &Reference,
        descriptor: &Descriptor,
        beginning: Verifier,
        progress: Progress,
    ) -> Result<Blob, Error> {
        Blob::open(self.clone(), (reference, descriptor), beginning, progress).await
    }

    /// A small blob, as a whole.
    pub async fn small_blob(
        &self,
        reference: &Reference,
        descriptor: &Descriptor,
        limit: u64,
    ) -> Result<Vec<u8>, Error> {
        blob::fetch_small(self, reference, descriptor, limit).await
    }

    /// Whether a repository has a blob.
    pub async fn has_blob(&self, reference: &Reference, digest: &Digest) -> Result<bool, Error> {
        push::has_blob(&self.inner, reference, digest).await
    }

    /// Takes a blob over from another repository of the same registry. False when that was not to
    /// be: the blob is then pushed.
    pub async fn mount_blob(
        &self,
        reference: &Reference,
        digest: &Digest,
        from: &str,
    ) -> Result<bool, Error> {
        push::mount_blob(&self.inner, reference, digest, from).await
    }

    /// Pushes a blob, unless it is there already: false then.
    pub async fn push_blob(
        &self,
        reference: &Reference,
        descriptor: &Descriptor,
        source: Arc<dyn Source>,
        progress: Progress,
    ) -> Result<bool, Error> {
        if self.has_blob(reference, &descriptor.digest).await? {
            progress(descriptor.size, Some(descriptor.size));
            return Ok(false);
        }
        self.push_absent_blob(reference, descriptor, (None, source), progress).await?;
        Ok(true)
    }

    /// Opens an upload for a blob that is yet to be made.
    pub async fn open_upload(&self, reference: &Reference) -> Result<OpenUpload, Error> {
        push::open(&self.inner, reference).await
    }

    /// Pushes a blob without asking first whether it is there, through an upload that is open already
    /// where there is one.
    pub async fn push_absent_blob(
        &self,
        reference: &Reference,
        descriptor: &Descriptor,
        through: (Option<OpenUpload>, Arc<dyn Source>),
        progress: Progress,
    ) -> Result<(), Error> {
        push::upload(&self.inner, (reference, descriptor), through, progress).await
    }

    /// Pushes a manifest or index under the reference's tag, or under its digest where it has one.
    pub async fn push_manifest(
        &self,
        reference: &Reference,
        media_type: &str,
        bytes: &[u8],
    ) -> Result<Digest, Error> {
        push::push_manifest(&self.inner, reference, media_type, bytes).await
    }

    fn changed(&self, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = self.inner.settings.clone();
        change(&mut settings);
        let (clients, endpoints) = (self.inner.clients.clone(), self.inner.endpoints.clone());
        Self {
            inner: Arc::new(Inner { settings, clients, endpoints, keyring: Keyring::default() }),
        }
    }
}

impl fmt::Debug for Registries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registries").field("settings", &self.inner.settings).finish_non_exhaustive()
    }
}

impl Inner {
    /// The registry itself.
    fn origin(&self, reference: &Reference) -> Endpoint {
        Endpoint::of_registry(&self.settings, reference.registry())
    }

    /// Who is asked before it for what is pulled.
    fn mirrors(&self, reference: &Reference) -> Result<Vec<Endpoint>, Error> {
        self.endpoints.mirrors(&self.settings, reference.registry())
    }

    /// A mirror that failed is left alone for a while, unless it merely does not have it.
    fn pass_over(&self, mirror: &Endpoint, error: &Error) {
        tracing::debug!(mirror = mirror.host, %error, "a mirror is passed over");
        if !matches!(error, Error::NotFound { .. }) {
            self.endpoints.rest(mirror);
        }
    }

    /// Who has somebody else to ask tries less often.
    fn tries(&self, endpoint: &Endpoint) -> Tries {
        let attempts = self.settings.attempts;
        let attempts = if endpoint.is_mirror { attempts.min(2) } else { attempts };
        Tries::new(&self.settings, attempts)
    }
}
