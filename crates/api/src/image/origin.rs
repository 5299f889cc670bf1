//! What the store remembers of images: which layer an image's layer became, and where it came from.

use super::FORMAT;
use image::{Compression, Digest as Sha};
use protocol::{Digest, Error};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use store::{BlobId, BlobPin, LayerRef, Needs, Remembered, Snapshot, Store};

/// The blob that a layer of the store was unpacked from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Origin {
    /// Digest of the plain layer.
    pub(super) diff_id: Sha,
    /// Digest of the blob.
    pub(super) blob: Sha,
    /// Bytes of the blob.
    pub(super) size: u64,
    pub(super) compression: Compression,
    /// The repository that has it, `registry/repository`.
    pub(super) repository: Option<String>,
    /// Whether the image named the blob itself; some archives name only the plain layer.
    pub(super) named: bool,
}

/// A layer of an image that is in the store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Known {
    pub(super) layer: LayerRef,
    /// Whether it says itself what the root looks like.
    pub(super) describes_root: bool,
}

/// The name of what is remembered under a digest.
pub(super) fn key(what: &str, digest: &Sha) -> Digest {
    Digest::builder(what).number(FORMAT).bytes(digest.as_bytes()).finish()
}

/// A layer that is the same over any tree.
pub(super) fn alone(diff_id: &Sha) -> Digest {
    key("image:layer", diff_id)
}

/// A layer over exactly those that the chain names.
pub(super) fn in_chain(chain: &Sha) -> Digest {
    key("image:chain", chain)
}

/// The layer under a key, kept on disk while it is held.
pub(super) fn known(store: &Store, key: &Digest) -> Option<Known> {
    let known: Known = decode(&store.action(key)?)?;
    let layer = store.pin_layer(&known.layer)?;
    Some(Known { layer, ..known })
}

/// Remembers a layer, and the blob it came from.
pub(super) fn remember(
    store: &Store,
    key: Digest,
    known: &Known,
    origin: &Origin,
) -> Result<(), Error> {
    let needs = Needs::new().snapshot(&Snapshot::empty().push(known.layer.clone())).encode();
    let label = format!("layer {}", origin.diff_id);
    let put = |key, value, needs: &[u8]| {
        let (label, needs) = (label.clone(), needs.to_vec());
        store.put_action(key, Remembered { value, kind: "image-layer", label, needs });
    };
    put(of_layer(&known.layer), encode(origin)?, &needs);
    put(key, encode(known)?, &needs);
    Ok(())
}

/// The blob that a layer of the store came from.
pub(super) fn of(store: &Store, layer: &LayerRef) -> Option<Origin> {
    if !layer.root.is_empty() {
        return None;
    }
    decode(&store.action(&of_layer(layer))?)
}

fn of_layer(layer: &LayerRef) -> Digest {
    Digest::builder("image:origin").number(FORMAT).bytes(layer.id.as_bytes()).finish()
}

/// Keeps a blob as long as there is room for it.
pub(super) fn keep_blob(store: &Store, blob: &Sha, size: u64) -> Option<BlobPin> {
    let id = BlobId::from_bytes(*blob.as_bytes());
    let pin = store.pin_blob(&id)?;
    let (needs, label) = (Needs::new().blob(&id).encode(), format!("blob {blob}, {size} bytes"));
    let value = vec![];
    store.put_shortcut(
        key("image:blob", blob),
        Remembered { value, kind: "image-blob", label, needs },
    );
    Some(pin)
}

/// A blob that is here, kept on disk while it is held.
pub(super) fn kept_blob(store: &Store, blob: &Sha) -> Option<BlobPin> {
    // The look also says that it was used.
    store.action(&key("image:blob", blob))?;
    store.pin_blob(&BlobId::from_bytes(*blob.as_bytes()))
}

pub(super) fn encode(value: &impl Serialize) -> Result<Vec<u8>, Error> {
    postcard::to_stdvec(value)
        .map_err(|error| Error::internal(format!("a record cannot be written: {error}")))
}

pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    postcard::from_bytes(bytes).ok()
}
