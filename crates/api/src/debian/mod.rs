//! Debian images: a root file system made of packages, from the archives the host trusts.
//!
//! [`Assembler::image`] is the way in. In order of reading: `host` (which archives, whose keys),
//! `release` (what they signed), `plan` (which packages), `unpack` (each .deb a layer; all of these belong to the `depot`), `base` and
//! `extend` (files together, then one run of dpkg in the sandbox, driven by `script`). Everything is
//! remembered by what it was made from, so a second image downloads, unpacks and configures only
//! what the first did not have, and an image that was made before needs neither network nor index.

mod address;
mod base;
mod cache;
mod configure;
mod depot;
mod error;
mod extend;
mod host;
mod locked;
mod locks;
mod plan;
mod release;
mod report;
mod script;
#[cfg(test)]
mod tests;
mod unpack;

pub use address::Address;
pub use error::Error;
pub use plan::Package;
pub use report::{Report, Step};

use depot::Depot;
use fetch::Fetcher;
use graph::Context;
use host::Origin;
use plan::Plan;
use protocol::Digest;
use sandbox::Sandbox;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;
use store::{Needs, Remembered, Snapshot, Store, Target};

/// Raised when equal plans may give another image.
const FORMAT: u64 = 3;

/// Where packages come from.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The host's configuration of apt: `/etc/apt`.
    pub apt: PathBuf,
    /// An archive, by URL or directory, instead of those that the host's apt uses.
    pub mirror: Option<String>,
    /// Keys that may sign an archive which names none itself.
    pub keyring: Option<PathBuf>,
    /// How old the state of a suite may grow.
    pub refresh: Duration,
    /// Folder for downloads, which several engines may share and which is not ours to clean. Without it downloads are
    /// part of the store.
    pub cache: Option<PathBuf>,
}

/// Makes Debian images.
pub struct Assembler {
    depot: Depot,
    sandbox: Sandbox,
    /// What the sandbox mounts onto.
    targets: Vec<Target>,
}

/// An image that is there.
#[derive(Clone, Debug)]
pub struct Image {
    /// What the image is equal under: archives, keys and packages.
    pub identity: Digest,
    /// Its root file system.
    pub snapshot: Snapshot,
    /// Every package, with its exact version.
    pub packages: Vec<Package>,
    /// Whether nothing had to be made.
    pub cached: bool,
}

impl Assembler {
    /// Does nothing yet. `targets` are what the sandbox mounts onto in every root.
    pub fn new(
        store: Store,
        sandbox: Sandbox,
        targets: Vec<Target>,
        fetcher: Fetcher,
        settings: Settings,
    ) -> Self {
        Self { depot: Depot::new(store, fetcher, settings), sandbox, targets }
    }

    /// The image of an address, made now where it is not there; told as parts of the call's span.
    pub async fn image(&self, address: &Address, cx: &Context) -> Result<Image, protocol::Error> {
        let image = self.assemble(address, cx.span()).await?;
        if image.cached {
            cx.span().mark_cached();
        }
        Ok(image)
    }

    /// The packages that the image of an address has now, as a text for a lock.
    pub(crate) async fn resolved(
        &self,
        address: &Address,
        cx: &Context,
    ) -> Result<String, protocol::Error> {
        let _held = self.depot.hold().await?;
        let (plan, origins) = self.plan(address, cx.span()).await?;
        Ok(locked::to_text(&plan, &origins))
    }

    /// The image of the packages that a text of [`Self::resolved`] names.
    pub(crate) async fn locked_image(
        &self,
        address: &Address,
        text: &str,
        cx: &Context,
    ) -> Result<Image, protocol::Error> {
        let _held = self.depot.hold().await?;
        let origins = self.depot.origins(address).await?;
        let plan = locked::from_text(text, &origins)?;
        let image = self.of_plan(plan, &origins, cx.span()).await.map_err(|error| match error {
            Error::Fetch(fetch::Error::NotFound { url }) => Error::NotKept { url },
            error => error,
        })?;
        if image.cached {
            cx.span().mark_cached();
        }
        Ok(image)
    }

    /// The image of an address, made now where it is not there.
    pub async fn assemble(&self, address: &Address, report: &dyn Report) -> Result<Image, Error> {
        let _held = self.depot.hold().await?;
        let (plan, origins) = self.plan(address, report).await?;
        self.of_plan(plan, &origins, report).await
    }

    async fn plan(
        &self,
        address: &Address,
        report: &dyn Report,
    ) -> Result<(Plan, Vec<Origin>), Error> {
        let origins = self.depot.origins(address).await?;
        let suites = origins.iter().map(|origin| self.depot.suite(origin));
        let suites = futures::future::try_join_all(suites).await?;
        let plan = self.depot.plan(address, &suites, report).await?;
        Ok((plan, origins))
    }

    async fn of_plan(
        &self,
        plan: Plan,
        origins: &[Origin],
        report: &dyn Report,
    ) -> Result<Image, Error> {
        let identity = identity(&plan, &plan.added, origins);
        let found = self.remembered(&identity);
        let cached = found.is_some();
        let snapshot = match found {
            Some(snapshot) => snapshot,
            None => self.make(&plan, origins, report).await?,
        };
        let packages = plan.base.into_iter().chain(plan.added).collect();
        Ok(Image { identity, snapshot, packages, cached })
    }

    fn remembered(&self, identity: &Digest) -> Option<Snapshot> {
        let snapshot: Snapshot = postcard::from_bytes(&self.depot.store.action(identity)?).ok()?;
        self.depot.store.pin(&snapshot)
    }

    async fn make(
        &self,
        plan: &Plan,
        origins: &[Origin],
        report: &dyn Report,
    ) -> Result<Snapshot, Error> {
        let base = identity(plan, &[], origins);
        let work = async { self.make_base(plan, origins, report).await };
        let base = self.once(base, label(&plan.base), work).await?;
        if plan.added.is_empty() {
            return Ok(base);
        }
        let whole = identity(plan, &plan.added, origins);
        let label = label(&plan.added);
        self.once(whole, label, async { self.add(&base, plan, report).await }).await
    }

    /// Makes a snapshot unless it is there, one at a time, and remembers it.
    async fn once(
        &self,
        key: Digest,
        label: String,
        work: impl Future<Output = Result<Snapshot, Error>>,
    ) -> Result<Snapshot, Error> {
        let _only_one = self.depot.locks.hold(key).await;
        if let Some(snapshot) = self.remembered(&key) {
            return Ok(snapshot);
        }
        let snapshot = work.await?;
        let (value, needs) = (encode(&snapshot)?, Needs::new().snapshot(&snapshot).encode());
        let remembered = Remembered { value, kind: "debian", label, needs };
        self.depot.store.put_action(key, remembered);
        Ok(snapshot)
    }
}

/// What an image of these packages is equal under.
fn identity(plan: &Plan, added: &[Package], origins: &[Origin]) -> Digest {
    let mut digest = Digest::builder("debian:image");
    digest.number(FORMAT).number(origins.len() as u64);
    origins.iter().for_each(|origin| origin.digest_into(&mut digest));
    for packages in [&plan.base[..], added] {
        digest.number(packages.len() as u64);
        for package in packages {
            digest.bytes(&package.sha256).number(u64::from(package.automatic));
        }
    }
    digest.finish()
}

/// Packages in a line for people.
fn label(packages: &[Package]) -> String {
    let names: Vec<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    format!("{} Debian packages: {}", names.len(), names.join(" "))
}

fn encode(value: &impl Serialize) -> Result<Vec<u8>, Error> {
    postcard::to_stdvec(value)
        .map_err(|error| Error::Internal(format!("cannot encode a record: {error}")))
}

/// Runs blocking work off the async threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(failed) => Err(Error::Internal(format!("a worker thread failed: {failed}"))),
    }
}
