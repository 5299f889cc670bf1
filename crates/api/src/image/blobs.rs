//! The blob of each layer of an image: which it is, and its bytes when somebody needs them.
//!
//! Blobs are a cache. One that is not here any more is fetched from the repository it came from, or
//! written again from the layer, which gives the same bytes.

use super::assemble::Form;
use super::error::named;
use super::origin::{self, Origin};
use super::pack::{self, Index, Packed};
use super::sources::{Source, blocking};
use crate::services::Services;
use graph::Context;
use image::{Compression, Digest as Sha};
use protocol::{Digest, Error};
use registry::{Reference, Registries, quiet};
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write as _};
use store::{BlobId, BlobPin, LayerRef, Needs, Remembered, Snapshot, Store};

/// A layer of an image that goes out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Layer {
    pub(super) diff_id: Sha,
    /// Digest and bytes of its blob.
    pub(super) digest: Sha,
    pub(super) size: u64,
    pub(super) compression: Compression,
    /// Time of its newest entry, if it is ours.
    pub(super) newest: Option<i64>,
    /// The index that it has, if it can be read file by file.
    pub(super) index: Option<Index>,
    /// The blob it came from, if it came with an image.
    pub(super) origin: Option<Origin>,
    /// Whether it was written for the first time just now, so that nobody has it.
    #[serde(skip)]
    pub(super) fresh: bool,
}

/// The blob of a layer, written now where it must be.
pub(super) async fn make(
    services: &Services,
    snapshot: &Snapshot,
    number: usize,
    form: Form,
    cx: &Context,
) -> Result<Layer, Error> {
    let layers = snapshot.layers();
    let (layer, store) = (layers[number].clone(), services.store.clone());
    let Some(origin) = origin::of(&store, &layer) else {
        let compression = form.compression.unwrap_or(Compression::Gzip);
        let below: Snapshot = layers[..number].iter().cloned().collect();
        let (packed, fresh) = ours(&store, layer, below, compression).await?;
        return Ok(Layer { fresh, ..layer_of(&packed, compression, None) });
    };
    let wanted = wanted(&origin, form);
    if wanted == origin.compression {
        let packed = Packed {
            diff_id: origin.diff_id,
            digest: origin.blob,
            size: origin.size,
            newest: None,
            index: None,
        };
        return Ok(layer_of(&packed, wanted, Some(origin)));
    }
    let registries = services.images.access(&[], cx).registries;
    let packed = recoded(&store, &registries, &origin, wanted).await?;
    Ok(layer_of(&packed, wanted, Some(origin)))
}

/// How a layer that came with an image goes out.
fn wanted(origin: &Origin, form: Form) -> Compression {
    // An archive that does not name blobs has plain ones, which nobody asked for.
    form.compression.unwrap_or(match origin.named {
        true => origin.compression,
        false => Compression::Gzip,
    })
}

/// The blob that a layer came with, if it goes out as it is.
pub(super) fn known_blob(store: &Store, layer: &LayerRef, form: Form) -> Option<Sha> {
    let origin = origin::of(store, layer)?;
    (wanted(&origin, form) == origin.compression).then_some(origin.blob)
}

fn layer_of(packed: &Packed, compression: Compression, origin: Option<Origin>) -> Layer {
    Layer {
        diff_id: packed.diff_id,
        digest: packed.digest,
        size: packed.size,
        compression,
        newest: packed.newest,
        index: packed.index,
        origin,
        fresh: false,
    }
}

/// Whether a layer is ours and its blob is still to be written.
pub(super) fn is_unpacked(store: &Store, snapshot: &Snapshot, number: usize, form: Form) -> bool {
    let layers = snapshot.layers();
    let compression = form.compression.unwrap_or(Compression::Gzip);
    let key = || key(&layers[number], &layers[..number], compression);
    origin::of(store, &layers[number]).is_none() && packed_before(store, &key()).is_none()
}

/// The bytes of a layer's blob, kept here while the pin is held.
pub(super) async fn ensure(
    store: &Store,
    registries: &Registries,
    snapshot: &Snapshot,
    number: usize,
    layer: &Layer,
) -> Result<BlobPin, Error> {
    if let Some(pin) = origin::kept_blob(store, &layer.digest) {
        return Ok(pin);
    }
    let again = match &layer.origin {
        Some(origin) if origin.blob == layer.digest => {
            return original(store, registries, origin).await;
        }
        Some(origin) => recoded(store, registries, origin, layer.compression).await?,
        None => {
            let (part, store) = (snapshot.layers()[number].clone(), store.clone());
            let below: Snapshot = snapshot.layers()[..number].iter().cloned().collect();
            let compression = layer.compression;
            blocking(move || pack::pack(&store, &part, &below, compression)).await?
        }
    };
    let gone = || Error::internal(format!("layer {} cannot be written again", layer.digest));
    if again.digest != layer.digest {
        return Err(gone());
    }
    origin::kept_blob(store, &layer.digest).ok_or_else(gone)
}

/// What the blob of a layer of ours is remembered under.
fn key(layer: &LayerRef, below: &[LayerRef], compression: Compression) -> Digest {
    let mut key = Digest::builder("image:packed");
    key.number(super::FORMAT).number(super::PACKING).bytes(layer.id.as_bytes()).text(&layer.root);
    // Marks are written only where they hide something of what lies below.
    for part in below {
        key.bytes(part.id.as_bytes()).text(&part.root);
    }
    key.number(compression as u64).finish()
}

fn packed_before(store: &Store, key: &Digest) -> Option<Packed> {
    origin::decode(&store.action(key)?)
}

/// A layer of ours as a blob, written once; whether that was now.
async fn ours(
    store: &Store,
    layer: LayerRef,
    below: Snapshot,
    compression: Compression,
) -> Result<(Packed, bool), Error> {
    let key = key(&layer, below.layers(), compression);
    if let Some(packed) = packed_before(store, &key) {
        return Ok((packed, false));
    }
    let (worker, part) = (store.clone(), layer.clone());
    let packed = blocking(move || pack::pack(&worker, &part, &below, compression)).await?;
    let value = origin::encode(&packed)?;
    let needs = Needs::new().snapshot(&Snapshot::empty().push(layer)).encode();
    let label = format!("layer {}", packed.diff_id);
    store.put_shortcut(key, Remembered { value, kind: "image-layer", label, needs });
    Ok((packed, true))
}

/// The blob that a layer came with.
async fn original(
    store: &Store,
    registries: &Registries,
    origin: &Origin,
) -> Result<BlobPin, Error> {
    if let Some(pin) = origin::kept_blob(store, &origin.blob) {
        return Ok(pin);
    }
    let gone = || {
        let message = format!("layer {} of the image is not kept here any more", origin.blob);
        Error::environment(message).with_hint("import the image again")
    };
    let repository = origin.repository.as_ref().ok_or_else(gone)?;
    let reference = Reference::parse(&format!("{repository}@{}", origin.blob));
    let reference = reference.map_err(super::error::of_registry)?;
    let descriptor = registry::Descriptor { digest: named(&origin.blob), size: origin.size };
    let source = Source::Registry { registries: registries.clone(), reference, descriptor };
    let keeper = store.clone();
    let copy = move |bytes: &mut (dyn Read + Send)| {
        let mut blob = keeper.blob_writer()?;
        let copied = io::copy(bytes, &mut blob).and_then(|_| blob.flush());
        copied.map_err(|error| Error::environment(format!("cannot keep a layer: {error}")))?;
        Ok(blob.finish()?)
    };
    let kept: BlobId = source.read(quiet(), copy).await?;
    let found = Sha::from_bytes(*kept.as_bytes());
    if found != origin.blob {
        return Err(Error::environment(format!("layer {} came as {found}", origin.blob)));
    }
    origin::keep_blob(store, &origin.blob, origin.size).ok_or_else(gone)
}

/// The plain layer of an image in another compression: what it holds stays the same to the byte.
async fn recoded(
    store: &Store,
    registries: &Registries,
    origin: &Origin,
    compression: Compression,
) -> Result<Packed, Error> {
    let pin = original(store, registries, origin).await?;
    let (store, origin) = (store.clone(), origin.clone());
    blocking(move || {
        let file = store.read_blob(&BlobId::from_bytes(*origin.blob.as_bytes()))?;
        let packed = pack::recode(&store, file, &origin.diff_id, compression);
        drop(pin);
        packed
    })
    .await
}
