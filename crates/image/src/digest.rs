//! [`Digest`]: the name of a blob, and a reader that finds it while bytes pass.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::io::{self, Read, Write};
use std::str::FromStr;

/// A sha256, `sha256:<64 hex digits>` in text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

/// The text is no digest that this program can check.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a digest of the form sha256:<64 hex digits>")]
pub struct ParseDigestError(String);

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest with exactly this sha256.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The raw sha256.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The digits without the name of the algorithm.
    pub fn hex(&self) -> String {
        hex::encode(self.0)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
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
        let wrong = || ParseDigestError(text.chars().take(100).collect());
        let hex = text.strip_prefix("sha256:").ok_or_else(wrong)?.as_bytes();
        if hex.len() != 64 {
            return Err(wrong());
        }
        let mut bytes = [0_u8; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
            *byte = digit(pair[0]).ok_or_else(wrong)? << 4 | digit(pair[1]).ok_or_else(wrong)?;
        }
        Ok(Self(bytes))
    }
}

/// One lower-case hex digit: upper-case ones would give a blob two names.
fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Hashes and counts the bytes that pass, in either direction.
pub struct Hashed<T> {
    inner: T,
    hasher: Sha256,
    count: u64,
}

impl<T> Hashed<T> {
    /// Nothing has passed yet.
    pub fn new(inner: T) -> Self {
        Self { inner, hasher: Sha256::new(), count: 0 }
    }

    /// How many bytes have passed.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// What is behind it, and the digest of what has passed.
    pub fn finish(self) -> (T, Digest) {
        (self.inner, Digest(self.hasher.finalize().into()))
    }

    fn note(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.count += bytes.len() as u64;
    }
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.note(&buffer[..length]);
        Ok(length)
    }
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.inner.write(bytes)?;
        self.note(&bytes[..length]);
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_text_names_a_blob() {
        let text = format!("sha256:{}", "0a".repeat(32));
        assert_eq!(text.parse::<Digest>().unwrap().to_string(), text);
        let wrong = [
            text.to_uppercase(),
            "sha256:".to_owned() + &"0A".repeat(32),
            "sha512:".to_owned() + &"00".repeat(64),
            "0a".repeat(32),
            "sha256:../../etc/passwd".to_owned(),
            String::new(),
        ];
        for text in wrong {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }

    #[test]
    fn bytes_are_hashed_while_they_pass() {
        let mut reader = Hashed::new(&b"abc"[..]);
        io::copy(&mut reader, &mut io::sink()).unwrap();
        assert_eq!(reader.count(), 3);
        assert_eq!(reader.finish().1, Digest::of(b"abc"));
    }
}
