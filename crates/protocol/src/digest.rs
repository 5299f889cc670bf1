//! [`Digest`]: the blake3 name of calls, actions and trees.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A 256-bit blake3 digest, written as 64 hex digits in text and as 32 bytes elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

/// Feeds a [`Digest`] field by field. Every field is prefixed by its length, so that two different
/// lists of fields never give the same bytes.
#[derive(Clone, Default)]
pub struct DigestBuilder(blake3::Hasher);

/// The text is not 64 hex digits.
#[derive(Debug, thiserror::Error)]
#[error("a digest is 64 hex digits")]
pub struct ParseDigestError;

impl Digest {
    /// The digest of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// A builder whose first field is `domain`, which keeps digests of different kinds apart.
    pub fn builder(domain: &str) -> DigestBuilder {
        let mut builder = DigestBuilder::default();
        builder.text(domain);
        builder
    }

    /// The digest with exactly these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The raw bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The 63-bit, never zero handle that stands for this digest in an id.
    pub fn handle(&self) -> u64 {
        let mut first = [0; 8];
        first.copy_from_slice(&self.0[..8]);
        (u64::from_be_bytes(first) >> 1).max(1)
    }
}

impl DigestBuilder {
    /// Adds one field of raw bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    /// Adds one field of text.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    /// Adds one number.
    pub fn number(&mut self, number: u64) -> &mut Self {
        self.bytes(&number.to_le_bytes())
    }

    /// Adds another digest.
    pub fn digest(&mut self, digest: &Digest) -> &mut Self {
        self.bytes(digest.as_bytes())
    }

    /// The digest of all fields so far.
    pub fn finish(&self) -> Digest {
        Digest(*self.0.finalize().as_bytes())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Self, ParseDigestError> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| ParseDigestError)?;
        Ok(Self(bytes))
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            self.0.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
        } else {
            <[u8; 32]>::deserialize(deserializer).map(Self)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_round_trips() {
        let digest = Digest::of(b"x");
        assert_eq!(digest.to_string().parse::<Digest>().unwrap(), digest);
        assert!("zz".parse::<Digest>().is_err());
        assert!("z".repeat(64).parse::<Digest>().is_err());
    }

    #[test]
    fn fields_do_not_run_into_each_other() {
        let mut one = Digest::builder("d");
        let mut two = Digest::builder("d");
        assert_ne!(one.text("ab").text("c").finish(), two.text("a").text("bc").finish());
    }

    #[test]
    fn handle_is_63_bits_and_not_zero() {
        assert_eq!(Digest::from_bytes([0; 32]).handle(), 1);
        assert_eq!(Digest::from_bytes([0xff; 32]).handle(), u64::MAX >> 1);
    }
}
