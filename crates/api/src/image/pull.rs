//! Images from registries: what a name means, which of several images fits, and its tree.

use super::access::{Access, Reach};
use super::error::{checked, named, of_image, of_registry};
use super::layers::{self, Planned};
use super::origin::{decode, encode, key};
use super::sources::Source;
use super::unpack::Expected;
use super::{Images, layers::chains};
use crate::lock::{self, Lookup};
use crate::services::Services;
use crate::tree::Tree;
use graph::{Context, Hold, Remembered, Span};
use image::{Descriptor, Digest as Sha, Document, ImageConfig, Manifest, Platform};
use protocol::attach::LockPolicy;
use protocol::{Digest, Error};
use registry::{Fetched, Reference, Registries};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use store::{Needs, Snapshot, Store};

/// What a look-up of an image is called where it is recorded.
pub(crate) const OPERATION: &str = "container.from";
/// How deep indexes may nest.
const MAX_NESTING: usize = 4;

/// An image that is in the store.
pub(crate) struct Pulled {
    pub(crate) config: ImageConfig,
    pub(crate) tree: Tree,
    /// Its name with its digest, where it has one.
    pub(crate) reference: Option<String>,
}

/// What is remembered of an image.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) config: Vec<u8>,
    pub(super) snapshot: Snapshot,
}

impl Record {
    /// The record with its layers kept on disk.
    pub(super) fn pinned(bytes: &[u8], store: &Store) -> Option<Self> {
        let record: Self = decode(bytes)?;
        Some(Self { snapshot: store.pin(&record.snapshot)?, ..record })
    }

    /// The record as it is remembered.
    pub(super) fn remembered(self, label: String) -> Result<Remembered, Error> {
        let needs = Needs::new().snapshot(&self.snapshot).encode();
        let value = encode(&self)?;
        Ok(Remembered { value, kind: "image", label, needs, hold: Hold::new(self) })
    }

    /// What a user of the image sees; `name` says which it is.
    pub(super) fn opened(self, name: &str, reference: Option<String>) -> Result<Pulled, Error> {
        let layers = self.snapshot.layers().len();
        let config = ImageConfig::parse(&self.config, layers).map_err(of_image(name))?;
        let tree = match layers::identity(&config.rootfs.diff_ids) {
            Some(identity) => Tree::settled(identity, self.snapshot),
            None => Tree::empty(),
        };
        Ok(Pulled { config, tree, reference })
    }
}

impl Images {
    /// The image of a name for a platform.
    pub(crate) async fn pull(
        &self,
        access: &Access,
        (address, reach): (&str, Reach),
        platform: &str,
        cx: &Context,
    ) -> Result<Pulled, Error> {
        let reference = Reference::parse(address).map_err(of_registry)?;
        let access = reach.apply(access, &reference);
        let services = cx.get::<Services>()?.clone();
        let wanted = Platform::parse(platform);
        let registries = access.registries.clone();
        let top = match reference.digest() {
            Some(digest) => {
                let digest = checked(digest)?;
                document(&registries, &reference, &digest, &services.store).await?
            }
            None if lock::is_used(cx) => {
                let lookup = Lookup {
                    operation: OPERATION,
                    inputs: vec![reference.to_string(), platform.to_owned()],
                    policy: LockPolicy::Pin,
                };
                let resolve = async {
                    let fetched = self.resolved(&access, (&reference, reach), cx).await?;
                    keep_document(&services.store, &fetched)?;
                    Ok(fetched.digest.to_string())
                };
                let digest = recorded(&lock::settled(cx, lookup, resolve).await?, &reference)?;
                document(&registries, &reference, &digest, &services.store).await?
            }
            None => {
                let fetched = self.resolved(&access, (&reference, reach), cx).await?;
                keep_document(&services.store, &fetched)?;
                (checked(&fetched.digest)?, fetched)
            }
        };
        let full = reference.with_digest(top.1.digest.clone()).to_string();
        let (digest, manifest) =
            choose(&registries, &reference, top, &wanted, &services.store).await?;
        let action = key("action:image", &digest);
        let usable = {
            let store = services.store.clone();
            move |bytes: &[u8]| Record::pinned(bytes, &store).map(Hold::new)
        };
        let work = Pull {
            registries,
            reference: reference.with_digest(named(&digest)),
            name: reference.to_string(),
            manifest,
            services: services.clone(),
            span: cx.span().clone(),
        };
        let made = cx.action(action, &usable, work.run()).await?;
        let record = Record::pinned(&made, &services.store);
        let record =
            record.ok_or_else(|| Error::internal("the record of an image cannot be read"))?;
        record.opened(&reference.to_string(), Some(full))
    }
}

/// A digest as it is in the lock.
fn recorded(text: &str, reference: &Reference) -> Result<Sha, Error> {
    let digest = text.parse::<registry::Digest>().map_err(of_registry).and_then(|it| checked(&it));
    digest.map_err(|_| {
        Error::user(format!("`ci-tool.lock`: `{text}` is no digest of `{reference}`"))
            .with_hint("record it again with `--lock=live`")
    })
}

/// A document by its digest, from the store if it was ever seen.
async fn document(
    registries: &Registries,
    reference: &Reference,
    digest: &Sha,
    store: &Store,
) -> Result<(Sha, Arc<Fetched>), Error> {
    let known = store.action(&document_key(digest));
    let known = known.and_then(|bytes| decode::<(String, Vec<u8>)>(&bytes));
    if let Some((media_type, bytes)) = known.filter(|(_, bytes)| Sha::of(bytes) == *digest) {
        return Ok((*digest, Arc::new(Fetched { digest: named(digest), media_type, bytes })));
    }
    let reference = reference.with_digest(named(digest));
    let fetched = registries.manifest(&reference).await.map_err(of_registry)?;
    keep_document(store, &fetched)?;
    Ok((*digest, Arc::new(fetched)))
}

fn keep_document(store: &Store, fetched: &Fetched) -> Result<(), Error> {
    let value = encode(&(&fetched.media_type, &fetched.bytes[..]))?;
    let (kind, label) = ("image-manifest", format!("manifest {}", fetched.digest));
    let remembered = store::Remembered { value, kind, label, needs: Needs::new().encode() };
    store.put_action(document_key(&checked(&fetched.digest)?), remembered);
    Ok(())
}

fn document_key(digest: &Sha) -> Digest {
    key("image:document", digest)
}

/// The manifest that fits a platform, with its digest.
async fn choose(
    registries: &Registries,
    reference: &Reference,
    top: (Sha, Arc<Fetched>),
    wanted: &Platform,
    store: &Store,
) -> Result<(Sha, Manifest), Error> {
    let name = reference.to_string();
    let (mut digest, mut fetched) = top;
    for _ in 0..MAX_NESTING {
        let parsed = Document::parse(&fetched.media_type, &fetched.bytes);
        match parsed.map_err(of_image(&name))? {
            Document::Manifest(manifest) => return Ok((digest, manifest)),
            Document::Index(index) => {
                let next = index.pick(wanted).map_err(of_image(&name))?.digest;
                (digest, fetched) = document(registries, reference, &next, store).await?;
            }
        }
    }
    Err(Error::user(format!("image `{name}`: its indexes nest deeper than {MAX_NESTING}")))
}

/// A pull that is to be done.
struct Pull {
    registries: Registries,
    reference: Reference,
    name: String,
    manifest: Manifest,
    services: Arc<Services>,
    span: Span,
}

impl Pull {
    async fn run(self) -> Result<Remembered, Error> {
        let config = self.config().await?;
        let layers = self.manifest.layers.len();
        let parsed = ImageConfig::parse(&config, layers).map_err(of_image(&self.name))?;
        let diff_ids = &parsed.rootfs.diff_ids;
        let chains = chains(diff_ids);
        let planned = self.manifest.layers.iter().zip(diff_ids.iter().zip(chains));
        let planned = planned.map(|(layer, (diff_id, chain))| Planned {
            expected: Expected {
                image: self.name.clone(),
                diff_id: *diff_id,
                blob: Some(layer.digest),
            },
            chain,
            size: layer.size,
            source: Source::Registry {
                registries: self.registries.clone(),
                reference: self.reference.clone(),
                descriptor: descriptor(layer),
            },
            repository: Some(self.reference.name()),
        });
        let title = format!("pull {}", self.name);
        let snapshot =
            layers::unpacked(planned.collect(), &self.services, &self.span, &title).await?;
        Record { config, snapshot }.remembered(self.name)
    }

    async fn config(&self) -> Result<Vec<u8>, Error> {
        let config = &self.manifest.config;
        let limit = image::MAX_DOCUMENT_BYTES;
        let fetched = self.registries.small_blob(&self.reference, &descriptor(config), limit).await;
        fetched.map_err(of_registry)
    }
}

/// A descriptor in the words of the registry's crate.
pub(super) fn descriptor(descriptor: &Descriptor) -> registry::Descriptor {
    registry::Descriptor { digest: named(&descriptor.digest), size: descriptor.size }
}
