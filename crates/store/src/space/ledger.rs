//! [`Ledger`]: what everything in the store takes, each inode counted once.

use super::measure::Measure;
use crate::blob::BlobId;
use crate::snapshot::LayerId;
use crate::volume::VolumeId;
use std::collections::HashMap;
use std::sync::Arc;

/// What is on disk and how much it takes.
#[derive(Default)]
pub(crate) struct Ledger {
    layers: HashMap<LayerId, Arc<Measure>>,
    /// Bytes of inodes that layers share, and how many of the layers have them.
    links: HashMap<u64, (u64, u32)>,
    blobs: HashMap<BlobId, u64>,
    volumes: HashMap<VolumeId, u64>,
    total: u64,
}

impl Ledger {
    /// Bytes of everything.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Counts a layer, in place of what was known of it.
    pub(crate) fn put_layer(&mut self, id: LayerId, measure: Arc<Measure>) {
        self.remove_layer(&id);
        self.total += measure.own;
        for (inode, bytes) in &measure.shared {
            let (known, layers) = self.links.entry(*inode).or_insert((*bytes, 0));
            if *layers == 0 {
                self.total += *known;
            }
            *layers += 1;
        }
        self.layers.insert(id, measure);
    }

    /// Forgets a layer and gives the bytes that go with it.
    pub(crate) fn remove_layer(&mut self, id: &LayerId) -> u64 {
        let Some(measure) = self.layers.remove(id) else { return 0 };
        let mut freed = measure.own;
        for (inode, _) in &measure.shared {
            if let Some((bytes, layers)) = self.links.get_mut(inode) {
                *layers -= 1;
                if *layers == 0 {
                    freed += *bytes;
                    self.links.remove(inode);
                }
            }
        }
        self.total -= freed;
        freed
    }

    pub(crate) fn put_blob(&mut self, id: BlobId, bytes: u64) {
        let before = self.blobs.insert(id, bytes).unwrap_or(0);
        self.total = self.total - before + bytes;
    }

    pub(crate) fn remove_blob(&mut self, id: &BlobId) -> u64 {
        let freed = self.blobs.remove(id).unwrap_or(0);
        self.total -= freed;
        freed
    }

    pub(crate) fn put_volume(&mut self, id: VolumeId, bytes: u64) {
        let before = self.volumes.insert(id, bytes).unwrap_or(0);
        self.total = self.total - before + bytes;
    }

    pub(crate) fn remove_volume(&mut self, id: &VolumeId) -> u64 {
        let freed = self.volumes.remove(id).unwrap_or(0);
        self.total -= freed;
        freed
    }

    pub(crate) fn layers(&self) -> &HashMap<LayerId, Arc<Measure>> {
        &self.layers
    }

    pub(crate) fn blobs(&self) -> &HashMap<BlobId, u64> {
        &self.blobs
    }

    pub(crate) fn volumes(&self) -> &HashMap<VolumeId, u64> {
        &self.volumes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_inodes_count_once_until_the_last_layer_goes() {
        let mut ledger = Ledger::default();
        let (one, two) = (LayerId::random(), LayerId::random());
        let measure = |own, shared: &[(u64, u64)]| Arc::new(Measure { own, shared: shared.into() });
        ledger.put_layer(one, measure(10, &[]));
        assert_eq!(ledger.total(), 10);
        // The second layer links a file of the first, which is measured again.
        ledger.put_layer(two, measure(1, &[(7, 6)]));
        ledger.put_layer(one, measure(4, &[(7, 6)]));
        assert_eq!(ledger.total(), 11);
        assert_eq!(ledger.remove_layer(&one), 4);
        assert_eq!(ledger.total(), 7);
        assert_eq!(ledger.remove_layer(&two), 7);
        assert_eq!((ledger.total(), ledger.remove_layer(&two)), (0, 0));
        ledger.put_blob(BlobId::of(b"a"), 5);
        ledger.put_blob(BlobId::of(b"a"), 6);
        assert_eq!(ledger.total(), 6);
        assert_eq!(ledger.remove_blob(&BlobId::of(b"a")), 6);
        assert_eq!(ledger.total(), 0);
    }
}
