//! Images as files: the whole in one archive, or one document or layer of it.

use super::assemble::{Assembled, Form, Recipe, assemble};
use super::blobs;
use super::origin::{decode, encode};
use super::publish::{assembled, index};
use super::sources::blocking;
use crate::file::File;
use crate::services::Services;
use crate::tree::Tree;
use graph::Context;
use image::archive::{Blob, Contents, Source, Stream};
use image::{Compression, Descriptor, Digest as Sha, Role};
use protocol::{Digest, Error, SpanKind};
use std::io::{self, Read};
use store::{BlobId, BlobPin, Meta, Needs, Remembered, Snapshot, Store, Timestamp};

/// Permissions of an archive: images may hold what is not everybody's.
const MODE: u32 = 0o600;

/// The archive of an image, or of one for each platform.
pub(crate) async fn tarball(recipes: &[Recipe], form: Form, cx: &Context) -> Result<File, Error> {
    let services = cx.get::<Services>()?;
    let images = assembled(recipes, form, cx).await?;
    let top = match &images[..] {
        [only] => only.descriptor(),
        several => {
            let index = index(several, form.family).to_bytes();
            Descriptor::of(form.family.media_type(Role::Index), &index)
        }
    };
    let store = &services.store;
    kept(store, "image:archive", &top.digest, "image.tar", async {
        let span = cx.span().child("write image", SpanKind::Work);
        let registries = services.images.access(&[], cx).registries;
        let mut pins = vec![];
        for image in &images {
            for (number, layer) in image.layers.iter().enumerate() {
                let pin = blobs::ensure(store, &registries, &image.snapshot, number, layer).await?;
                pins.push((layer.digest, layer.size, pin));
            }
        }
        let contents = contents(&images, top.clone(), form, (store, &pins));
        let snapshot = write(store, "image.tar", Stream::new(contents), pins).await?;
        span.done();
        Ok(snapshot)
    })
    .await
}

/// The manifest of an image.
pub(crate) async fn manifest(recipe: &Recipe, form: Form, cx: &Context) -> Result<File, Error> {
    let assembled = assemble(recipe, form, cx).await?;
    let digest = assembled.descriptor().digest;
    document(&cx.get::<Services>()?.store, &digest, assembled.manifest).await
}

/// One blob of an image by its digest.
pub(crate) async fn layer(
    recipe: &Recipe,
    id: &str,
    form: Form,
    cx: &Context,
) -> Result<File, Error> {
    let services = cx.get::<Services>()?;
    let store = &services.store;
    let assembled = assemble(recipe, form, cx).await?;
    let wanted: Sha =
        id.parse().map_err(|error: image::ParseDigestError| Error::user(error.to_string()))?;
    if wanted == assembled.config_digest() {
        return document(store, &wanted, assembled.config).await;
    }
    let found = assembled.layers.iter().position(|layer| layer.digest == wanted);
    let number = found.ok_or_else(|| Error::user(format!("the image has no layer {wanted}")))?;
    let layer = &assembled.layers[number];
    let ending = match layer.compression {
        Compression::None => "tar",
        Compression::Gzip | Compression::EStarGz => "tar.gz",
        Compression::Zstd => "tar.zst",
    };
    let name = format!("{}.{ending}", wanted.hex());
    kept(store, "image:blob file", &wanted, &name, async {
        let registries = services.images.access(&[], cx).registries;
        let pin = blobs::ensure(store, &registries, &assembled.snapshot, number, layer).await?;
        let bytes = store.read_blob(&BlobId::from_bytes(*wanted.as_bytes()))?;
        write(store, &name, bytes, pin).await
    })
    .await
}

async fn document(store: &Store, digest: &Sha, bytes: Vec<u8>) -> Result<File, Error> {
    let name = format!("{}.json", digest.hex());
    kept(store, "image:document file", digest, &name, async {
        write(store, &name, io::Cursor::new(bytes), ()).await
    })
    .await
}

/// A file that is a function of a digest, written if it is not there.
async fn kept(
    store: &Store,
    what: &str,
    digest: &Sha,
    name: &str,
    work: impl Future<Output = Result<Snapshot, Error>>,
) -> Result<File, Error> {
    let identity =
        Digest::builder(what).number(super::FORMAT).bytes(digest.as_bytes()).text(name).finish();
    let known = store.action(&identity).and_then(|bytes| decode::<Snapshot>(&bytes));
    let snapshot = match known.and_then(|snapshot| store.pin(&snapshot)) {
        Some(snapshot) => snapshot,
        None => {
            let snapshot = work.await?;
            let (value, needs) = (encode(&snapshot)?, Needs::new().snapshot(&snapshot).encode());
            let label = format!("file {name} of image {digest}");
            store.put_action(identity, Remembered { value, kind: "image-file", label, needs });
            snapshot
        }
    };
    Ok(File::below(Tree::settled(identity, snapshot), name))
}

/// A tree with just one file. `hold` is let go when it is written.
async fn write(
    store: &Store,
    name: &str,
    mut bytes: impl Read + Send + 'static,
    hold: impl Send + 'static,
) -> Result<Snapshot, Error> {
    let (store, name) = (store.clone(), name.to_owned());
    blocking(move || {
        let mut layer = store.new_layer()?;
        let meta = Meta { mode: MODE, mtime: Timestamp::now(), ..Meta::default() };
        layer.file(&name, &meta, &mut bytes)?;
        drop(hold);
        Ok(Snapshot::empty().push(layer.commit()?))
    })
    .await
}

/// What goes into the archive. Docker's own form knows one image only.
fn contents(
    images: &[Assembled],
    top: Descriptor,
    form: Form,
    (store, layers): (&Store, &[(Sha, u64, BlobPin)]),
) -> Contents {
    let of_bytes = |bytes: Vec<u8>| Blob {
        digest: Sha::of(&bytes),
        size: bytes.len() as u64,
        source: Source::Bytes(bytes),
    };
    let mut blobs: Vec<Blob> = layers
        .iter()
        .map(|(digest, size, _)| {
            let (store, id) = (store.clone(), BlobId::from_bytes(*digest.as_bytes()));
            let open = move || {
                let blob = store.read_blob(&id).map_err(io::Error::other)?;
                Ok(Box::new(blob) as Box<dyn Read + Send>)
            };
            Blob { digest: *digest, size: *size, source: Source::Open(Box::new(open)) }
        })
        .collect();
    for image in images {
        blobs.push(of_bytes(image.config.clone()));
        blobs.push(of_bytes(image.manifest.clone()));
    }
    let docker = match images {
        [only] => {
            let layers = only.layers.iter().map(|layer| layer.digest).collect();
            Some((only.config_digest(), layers))
        }
        several => {
            blobs.push(of_bytes(index(several, form.family).to_bytes()));
            None
        }
    };
    Contents { top: vec![top], blobs, docker }
}
