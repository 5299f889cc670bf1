//! Images to registries.

use super::access::{Access, Reach};
use super::assemble::{Assembled, Form, Plan, Recipe};
use super::error::{named, of_registry};
use super::sources::blocking;
use super::{AT_ONCE, Images, blobs};
use crate::services::Services;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use graph::{Context, Span};
use image::{Digest as Sha, Family, Index, Role};
use protocol::{Error, SpanKind, Unit};
use registry::{MemorySource, OpenUpload, Progress, Reference, Registries};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use store::{BlobId, BlobPin, Store};
use tokio::io::AsyncSeekExt as _;

/// Largest blob that is read as a whole before it is sent: a disk that answers at once costs more in pieces.
const IN_MEMORY: u64 = 4 << 20;

impl Images {
    /// Pushes an image, or one for each platform under one name, and gives the name with its digest.
    pub(crate) async fn publish(
        &self,
        access: &Access,
        (address, reach): (&str, Reach),
        (recipes, form): (&[Recipe], Form),
        cx: &Context,
    ) -> Result<String, Error> {
        let reference = Reference::parse(address).map_err(of_registry)?;
        if reference.digest().is_some() {
            return Err(Error::user(format!(
                "`{address}` names a digest: an image is published under a tag"
            )));
        }
        let registries = reach.apply(access, &reference).registries;
        let store = cx.get::<Services>()?.store.clone();
        let plans = plans(recipes, form, cx).await?;
        let new = plans.iter().map(|plan| plan.new_blobs(&store)).sum::<usize>();
        let known = plans.iter().flat_map(|plan| plan.known_blobs(&store)).collect();
        let opened = open(&registries, &reference, new.min(AT_ONCE));
        let (images, opened, asked) = futures::try_join!(
            finished(plans, cx),
            opened.map(Ok),
            ask(&registries, &reference, known)
        )?;
        let push = Push {
            span: cx.span().child(format!("push {reference}"), SpanKind::Work),
            store,
            registries,
            reference,
            opened: Mutex::new(opened),
            asked,
            done: Arc::default(),
            total: images.iter().flat_map(|image| &image.layers).map(|layer| layer.size).sum(),
        };
        // A manifest may come only when all it names is there.
        futures::try_join!(push.layers(&images), push.configs(&images))?;
        push.manifests(&images, form.family).await
    }
}

/// The images of recipes, of which no two may be for the same platform.
pub(super) async fn assembled(
    recipes: &[Recipe],
    form: Form,
    cx: &Context,
) -> Result<Vec<Assembled>, Error> {
    finished(plans(recipes, form, cx).await?, cx).await
}

async fn plans<'a>(
    recipes: &'a [Recipe],
    form: Form,
    cx: &Context,
) -> Result<Vec<Plan<'a>>, Error> {
    let mut platforms = HashSet::new();
    let mut plans = Vec::with_capacity(recipes.len());
    for recipe in recipes {
        if !platforms.insert(&recipe.platform) {
            let message = format!("two variants of the image are for {}", recipe.platform);
            return Err(Error::user(message));
        }
        plans.push(Plan::new(recipe, form, cx).await?);
    }
    Ok(plans)
}

async fn finished(plans: Vec<Plan<'_>>, cx: &Context) -> Result<Vec<Assembled>, Error> {
    let mut images = Vec::with_capacity(plans.len());
    for plan in plans {
        images.push(plan.finish(cx).await?);
    }
    Ok(images)
}

/// Opens uploads while the blobs for them are made. One that cannot be opened now is opened, and its
/// failure told, when its blob is there.
async fn open(registries: &Registries, reference: &Reference, count: usize) -> Vec<OpenUpload> {
    let each = (0..count).map(|_| registries.open_upload(reference));
    futures::future::join_all(each).await.into_iter().flatten().collect()
}

/// Asks which blobs a repository has, while others are made.
async fn ask(
    registries: &Registries,
    reference: &Reference,
    blobs: HashSet<Sha>,
) -> Result<HashMap<Sha, bool>, Error> {
    let each = blobs.into_iter().map(async |blob| {
        let has = registries.has_blob(reference, &named(&blob)).await.map_err(of_registry)?;
        Ok((blob, has))
    });
    futures::stream::iter(each).buffer_unordered(AT_ONCE).try_collect().await
}

/// The index over several images: what was said of each stands there too.
pub(super) fn index(images: &[Assembled], family: Family) -> Index {
    let entries = images.iter().map(|image| {
        let mut descriptor = image.descriptor();
        if let Ok(image::Document::Manifest(manifest)) =
            image::Document::parse(&image.media_type, &image.manifest)
        {
            descriptor.annotations = manifest.annotations;
        }
        descriptor
    });
    Index::new(family, entries.collect())
}

/// A push on its way.
struct Push {
    registries: Registries,
    reference: Reference,
    store: Store,
    /// Uploads that wait for a blob.
    opened: Mutex<Vec<OpenUpload>>,
    /// What the repository said of blobs already.
    asked: HashMap<Sha, bool>,
    span: Span,
    done: Arc<AtomicU64>,
    total: u64,
}

impl Push {
    async fn layers(&self, images: &[Assembled]) -> Result<(), Error> {
        let (mut seen, mut work) = (HashSet::new(), vec![]);
        for image in images {
            for (number, layer) in image.layers.iter().enumerate() {
                if seen.insert(layer.digest) {
                    work.push(self.layer(image, number));
                }
            }
        }
        futures::stream::iter(work).buffer_unordered(AT_ONCE).try_collect::<()>().await
    }

    /// Pushes a layer unless the registry has it or can take it over from another repository.
    async fn layer(&self, image: &Assembled, number: usize) -> Result<(), Error> {
        let layer = &image.layers[number];
        let (digest, size) = (named(&layer.digest), layer.size);
        if !layer.fresh && (self.has_layer(layer).await? || self.mounted(layer).await?) {
            self.further(size);
            return Ok(());
        }
        let id = BlobId::from_bytes(*layer.digest.as_bytes());
        let descriptor = registry::Descriptor { digest, size };
        match self.push(image, number, (id, &descriptor)).await {
            // A blob that is damaged here is refused there. Then it is given up, and comes anew.
            Err(_) if self.is_damaged(id).await => {
                self.push(image, number, (id, &descriptor)).await
            }
            pushed => pushed,
        }
    }

    async fn has_layer(&self, layer: &blobs::Layer) -> Result<bool, Error> {
        match self.asked.get(&layer.digest) {
            Some(has) => Ok(*has),
            None => self.has(&named(&layer.digest)).await,
        }
    }

    async fn has(&self, digest: &registry::Digest) -> Result<bool, Error> {
        self.registries.has_blob(&self.reference, digest).await.map_err(of_registry)
    }

    fn take_opened(&self) -> Option<OpenUpload> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    async fn push(
        &self,
        image: &Assembled,
        number: usize,
        (id, descriptor): (BlobId, &registry::Descriptor),
    ) -> Result<(), Error> {
        let layer = &image.layers[number];
        let pin =
            blobs::ensure(&self.store, &self.registries, &image.snapshot, number, layer).await?;
        let (store, size) = (self.store.clone(), descriptor.size);
        let source = Arc::new(StoredBlob { store, id, size, _pin: pin });
        let through = (self.take_opened(), source as Arc<dyn registry::Source>);
        let pushed =
            self.registries.push_absent_blob(&self.reference, descriptor, through, self.progress());
        pushed.await.map_err(of_registry)
    }

    /// Whether the bytes of a blob are not what they were.
    async fn is_damaged(&self, id: BlobId) -> bool {
        let store = self.store.clone();
        let read = blocking(move || {
            let copied = io::copy(&mut store.read_blob(&id)?, &mut io::sink());
            Ok(copied.map_err(store::Error::from_read("a layer of an image"))?)
        });
        read.await.is_err()
    }

    async fn mounted(&self, layer: &blobs::Layer) -> Result<bool, Error> {
        let origin = layer.origin.as_ref().filter(|origin| origin.blob == layer.digest);
        let Some(repository) = origin.and_then(|origin| origin.repository.as_deref()) else {
            return Ok(false);
        };
        let here = format!("{}/", self.reference.registry());
        let Some(repository) = repository.strip_prefix(&here) else { return Ok(false) };
        if repository == self.reference.repository() {
            return Ok(false);
        }
        let mounted =
            self.registries.mount_blob(&self.reference, &named(&layer.digest), repository).await;
        // The bytes can always be pushed instead.
        Ok(mounted.unwrap_or(false))
    }

    async fn configs(&self, images: &[Assembled]) -> Result<(), Error> {
        for image in images {
            let config = registry::Descriptor {
                digest: named(&image.config_digest()),
                size: image.config.len() as u64,
            };
            let opened = self.take_opened();
            if opened.is_none() && self.has(&config.digest).await? {
                continue;
            }
            let source = Arc::new(MemorySource::new(image.config.clone()));
            let through = (opened, source as Arc<dyn registry::Source>);
            let quiet = registry::quiet();
            let pushed = self.registries.push_absent_blob(&self.reference, &config, through, quiet);
            pushed.await.map_err(of_registry)?;
        }
        Ok(())
    }

    /// Pushes manifests, and gives the name with its digest.
    async fn manifests(self, images: &[Assembled], family: Family) -> Result<String, Error> {
        let digest = match images {
            [only] => self.manifest(&self.reference, &only.media_type, &only.manifest).await?,
            several => {
                for image in several {
                    let digest = named(&image.descriptor().digest);
                    let reference = self.reference.with_digest(digest);
                    self.manifest(&reference, &image.media_type, &image.manifest).await?;
                }
                let index = index(several, family).to_bytes();
                self.manifest(&self.reference, family.media_type(Role::Index), &index).await?
            }
        };
        self.span.done();
        Ok(self.reference.with_digest(digest).to_string())
    }

    async fn manifest(
        &self,
        reference: &Reference,
        media_type: &str,
        bytes: &[u8],
    ) -> Result<registry::Digest, Error> {
        let pushed = self.registries.push_manifest(reference, media_type, bytes);
        pushed.await.map_err(of_registry)
    }

    /// Adds to the sum what one blob is further.
    fn progress(&self) -> Progress {
        let (span, sum, total) = (self.span.clone(), self.done.clone(), self.total);
        let before = AtomicU64::new(0);
        Arc::new(move |done, _| {
            let more = done.saturating_sub(before.swap(done, Ordering::Relaxed));
            let now = sum.fetch_add(more, Ordering::Relaxed) + more;
            span.progress(now, Some(total.max(now)), Unit::Bytes);
        })
    }

    fn further(&self, bytes: u64) {
        let now = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.span.progress(now, Some(self.total.max(now)), Unit::Bytes);
    }
}

/// A blob of the store that is pushed.
struct StoredBlob {
    store: Store,
    id: BlobId,
    size: u64,
    _pin: BlobPin,
}

impl registry::Source for StoredBlob {
    fn open(&self, from: u64) -> futures::future::BoxFuture<'_, io::Result<registry::Reader>> {
        Box::pin(async move {
            let mut file = self.store.open_blob(&self.id).map_err(io::Error::other)?;
            if self.size <= IN_MEMORY {
                let rest = tokio::task::spawn_blocking(move || rest(&mut file, from)).await??;
                return Ok(Box::new(io::Cursor::new(rest)) as registry::Reader);
            }
            let mut file = tokio::fs::File::from_std(file);
            file.seek(io::SeekFrom::Start(from)).await?;
            file.set_max_buf_size(1 << 20);
            Ok(Box::new(file) as registry::Reader)
        })
    }
}

fn rest(file: &mut File, from: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![];
    file.seek(io::SeekFrom::Start(from))?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}
