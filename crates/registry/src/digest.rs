//! Digests as registries write them, and the check of bytes against one.

use crate::Error;
use sha2::{Digest as _, Sha256, Sha512};
use std::fmt;
use std::str::FromStr;

/// `sha256:<64 digits>` or `sha512:<128 digits>`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest {
    text: String,
}

impl Digest {
    /// The SHA-256 of bytes.
    pub fn sha256(bytes: &[u8]) -> Self {
        Self { text: format!("sha256:{}", hex::encode(Sha256::digest(bytes))) }
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The digits after the name of the function.
    pub fn hex(&self) -> &str {
        self.text.split_once(':').map_or("", |(_, digits)| digits)
    }
}

impl FromStr for Digest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let length = match text.split_once(':') {
            Some(("sha256", _)) => 64,
            Some(("sha512", _)) => 128,
            _ => 0,
        };
        let digits = text.split_once(':').map_or("", |(_, digits)| digits);
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if length == 0 || digits.len() != length || !digits.bytes().all(is_digit) {
            let reason = "a digest is `sha256:` and 64 lower case digits".to_owned();
            return Err(Error::Reference { text: text.to_owned(), reason });
        }
        Ok(Self { text: text.to_owned() })
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What a blob must be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Descriptor {
    /// Its digest.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
}

/// The digest of the bytes so far. Who holds the beginning of a blob already feeds it here and has
/// the rest sent.
#[derive(Clone)]
pub struct Verifier {
    state: State,
    length: u64,
}

#[derive(Clone)]
enum State {
    Sha256(Sha256),
    Sha512(Sha512),
}

impl Verifier {
    /// Of no bytes yet, by the function that the digest names.
    pub fn new(digest: &Digest) -> Self {
        let state = match digest.text.starts_with("sha512:") {
            true => State::Sha512(Sha512::new()),
            false => State::Sha256(Sha256::new()),
        };
        Self { state, length: 0 }
    }

    /// Takes more bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.state {
            State::Sha256(state) => state.update(bytes),
            State::Sha512(state) => state.update(bytes),
        }
        self.length += bytes.len() as u64;
    }

    /// How many bytes were taken.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The digest of what was taken.
    pub fn digest(&self) -> Digest {
        let text = match &self.state {
            State::Sha256(state) => format!("sha256:{}", hex::encode(state.clone().finalize())),
            State::Sha512(state) => format!("sha512:{}", hex::encode(state.clone().finalize())),
        };
        Digest { text }
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier").field("length", &self.length).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_read_strictly() {
        let good = Digest::sha256(b"");
        assert_eq!(good.hex().len(), 64);
        assert_eq!(good.as_str().parse::<Digest>().unwrap(), good);
        let long = format!("sha512:{}", "0".repeat(128));
        assert!(long.parse::<Digest>().is_ok());
        let upper = good.as_str().to_uppercase();
        for bad in ["", "sha256:", "sha256:abc", "md5:00", &upper, &long[..100], "sha256:../../x"] {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_verifier_gives_the_digest_of_all_its_parts() {
        let mut verifier = Verifier::new(&Digest::sha256(b""));
        verifier.update(b"hel");
        verifier.update(b"lo");
        assert_eq!((verifier.length(), verifier.digest()), (5, Digest::sha256(b"hello")));
        let mut verifier = Verifier::new(&format!("sha512:{}", "0".repeat(128)).parse().unwrap());
        verifier.update(b"hello");
        assert!(verifier.digest().as_str().starts_with("sha512:9b71d224bd62f378"));
    }
}
