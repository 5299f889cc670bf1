//! [`Needs`]: the layers and blobs that a remembered result is worth nothing without.
//!
//! Stored beside the result as one string of bytes, so that finding out what is still needed is one
//! pass over the database:
//!
//! ```text
//! format (1 byte), number of layers (4 bytes, little-endian), 16 bytes a layer, 32 bytes a blob
//! ```

use crate::blob::BlobId;
use crate::snapshot::{LayerId, Snapshot};
use std::collections::BTreeSet;

/// Format of the encoding.
const FORMAT: u8 = 1;

/// Layers and blobs that a result names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    pub(crate) layers: BTreeSet<LayerId>,
    pub(crate) blobs: BTreeSet<BlobId>,
}

impl Needs {
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// One layer.
    pub(crate) fn of_layer(layer: LayerId) -> Self {
        Self { layers: BTreeSet::from([layer]), blobs: BTreeSet::new() }
    }

    /// Adds all layers of a snapshot.
    #[must_use]
    pub fn snapshot(mut self, snapshot: &Snapshot) -> Self {
        self.layers.extend(snapshot.layers().iter().map(|layer| layer.id));
        self
    }

    /// Adds a blob.
    #[must_use]
    pub fn blob(mut self, blob: &BlobId) -> Self {
        self.blobs.insert(*blob);
        self
    }

    /// As it is stored.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(5 + 16 * self.layers.len() + 32 * self.blobs.len());
        bytes.push(FORMAT);
        bytes.extend((self.layers.len() as u32).to_le_bytes());
        self.layers.iter().for_each(|layer| bytes.extend(layer.as_bytes()));
        self.blobs.iter().for_each(|blob| bytes.extend(blob.as_bytes()));
        bytes
    }

    /// What was stored; none if it cannot be read. No bytes at all are no needs.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let Some((format, rest)) = bytes.split_first() else { return Some(Self::default()) };
        let (count, rest) = rest.split_first_chunk::<4>()?;
        let end = (u32::from_le_bytes(*count) as usize).checked_mul(16)?;
        let (layers, blobs) = rest.split_at_checked(end)?;
        let ((layers, []), (blobs, [])) = (layers.as_chunks::<16>(), blobs.as_chunks::<32>())
        else {
            return None;
        };
        (*format == FORMAT).then(|| Self {
            layers: layers.iter().map(|bytes| LayerId::from_bytes(*bytes)).collect(),
            blobs: blobs.iter().map(|bytes| BlobId::from_bytes(*bytes)).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LayerRef;

    #[test]
    fn needs_read_back_and_damage_does_not() {
        let snapshot = Snapshot::empty()
            .push(LayerRef::whole(LayerId::random()))
            .push(LayerRef::whole(LayerId::random()));
        let needs = Needs::new().snapshot(&snapshot).snapshot(&snapshot).blob(&BlobId::of(b"a"));
        let bytes = needs.encode();
        assert_eq!(Needs::decode(&bytes), Some(needs));
        assert_eq!(Needs::decode(&[]), Some(Needs::new()));
        for bad in
            [&bytes[..bytes.len() - 1], &bytes[..7], &[9, 0, 0, 0, 0], &[1, 255, 255, 255, 255]]
        {
            assert_eq!(Needs::decode(bad), None);
        }
    }
}
