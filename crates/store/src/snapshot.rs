//! [`Snapshot`]: an immutable file tree, named by the layers it is made of.
//!
//! A snapshot says how a tree is put together, not what is in it: two snapshots with equal content
//! may have different layers, and merging changes the list without changing the tree. Identity is
//! therefore never taken from here; `Store::tree_digest` gives the identity of the content.

use crate::pins::LayerPin;
use rustix::rand::{GetRandomFlags, getrandom};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

/// The name of one committed layer: 128 random bits, 32 hex digits in text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LayerId([u8; 16]);

/// A layer, or the directory inside a layer that is used as if it were the root of one.
///
/// One that came out of the store keeps its layer from being collected, and so do its clones. One
/// that was read from a record or made by name does not: `Store::pin` gives one that does.
#[derive(Clone, Serialize, Deserialize)]
pub struct LayerRef {
    /// Which layer.
    pub id: LayerId,
    /// Directory in the layer that is taken as its root: empty, or relative such as `a/b`. It never
    /// begins or ends with a slash and never passes through a symbolic link.
    pub root: Box<str>,
    #[serde(skip)]
    pin: Option<LayerPin>,
}

/// An ordered list of layers, oldest first. The empty list is the empty directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Snapshot(Arc<[LayerRef]>);

/// The text is not 32 hex digits.
#[derive(Debug, thiserror::Error)]
#[error("a layer id is 32 hex digits")]
pub struct ParseLayerIdError;

impl LayerId {
    /// A new name that nothing has yet.
    pub fn random() -> Self {
        let mut bytes = [0_u8; 16];
        let mut filled = 0;
        while filled < bytes.len() {
            filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty()).unwrap_or(0);
        }
        Self(bytes)
    }

    /// The raw bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    pub(crate) const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl LayerRef {
    /// The whole layer, by name only.
    pub fn whole(id: LayerId) -> Self {
        Self { id, root: "".into(), pin: None }
    }

    /// The whole layer, which stays on disk as long as this does.
    pub(crate) fn pinned(id: LayerId, pin: LayerPin) -> Self {
        Self { id, root: "".into(), pin: Some(pin) }
    }

    /// The same with a pin.
    #[must_use]
    pub(crate) fn with_pin(&self, pin: LayerPin) -> Self {
        Self { id: self.id, root: self.root.clone(), pin: Some(pin) }
    }

    /// The same by name only, for who remembers it without needing it.
    #[must_use]
    pub(crate) fn without_pin(&self) -> Self {
        Self { id: self.id, root: self.root.clone(), pin: None }
    }

    /// Another directory of the same layer as the root, with the same pin.
    #[must_use]
    pub(crate) fn rooted(&self, root: Box<str>) -> Self {
        Self { id: self.id, root, pin: self.pin.clone() }
    }
}

/// Pins are no part of what a layer is.
impl PartialEq for LayerRef {
    fn eq(&self, other: &Self) -> bool {
        (self.id, &self.root) == (other.id, &other.root)
    }
}

impl Eq for LayerRef {}

impl Hash for LayerRef {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.id, &self.root).hash(state);
    }
}

impl fmt::Debug for LayerRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LayerRef").field("id", &self.id).field("root", &self.root).finish()
    }
}

impl Snapshot {
    /// The empty directory.
    pub fn empty() -> Self {
        Self::default()
    }

    /// The layers, oldest first.
    pub fn layers(&self) -> &[LayerRef] {
        &self.0
    }

    /// This tree with one more layer on top.
    #[must_use]
    pub fn push(&self, layer: LayerRef) -> Self {
        self.0.iter().cloned().chain([layer]).collect()
    }
}

impl Default for Snapshot {
    fn default() -> Self {
        Self(Arc::new([]))
    }
}

impl FromIterator<LayerRef> for Snapshot {
    fn from_iter<I: IntoIterator<Item = LayerRef>>(layers: I) -> Self {
        Self(layers.into_iter().collect())
    }
}

impl fmt::Display for LayerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0; 32];
        hex::encode_to_slice(self.0, &mut digits).map_err(|_| fmt::Error)?;
        f.write_str(std::str::from_utf8(&digits).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for LayerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for LayerId {
    type Err = ParseLayerIdError;

    fn from_str(text: &str) -> Result<Self, ParseLayerIdError> {
        let mut bytes = [0; 16];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| ParseLayerIdError)?;
        Ok(Self(bytes))
    }
}

impl Serialize for LayerId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            self.0.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for LayerId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
        } else {
            <[u8; 16]>::deserialize(deserializer).map(Self)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layer_id_text_round_trips() {
        let id = LayerId::random();
        assert_eq!(id.to_string().parse::<LayerId>().unwrap(), id);
        for bad in ["", "zz", "+0000000000000000000000000000001", &"0".repeat(33)] {
            assert!(bad.parse::<LayerId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn push_leaves_the_parent_alone() {
        let base = Snapshot::empty().push(LayerRef::whole(LayerId::random()));
        let longer = base.push(LayerRef::whole(LayerId::random()));
        assert_eq!(base.layers().len(), 1);
        assert_eq!(longer.layers().len(), 2);
        assert_eq!(longer.layers()[0], base.layers()[0]);
    }
}
