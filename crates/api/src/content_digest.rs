//! The digests that users see: of a directory, of a file, of a file's bytes.
//!
//! They are sha256 in the form that clients expect, and know nothing of layers and times. They must not
//! change, because users keep them.

use protocol::{Digest, Error};
use sha2::{Digest as _, Sha256};
use std::io::Read;

/// Bytes read at once.
const PIECE: usize = 256 * 1024;

/// The text of a sum that the store made.
pub(crate) fn of_sum(sum: &Digest) -> String {
    format!("sha256:{sum}")
}

/// The text of the digest of bytes alone, which is the digest of their digest.
pub(crate) fn of_bytes(bytes: impl Read) -> Result<String, std::io::Error> {
    Ok(text(Sha256::new().chain_update(hashed(bytes)?.finalize())))
}

/// The sum of bytes, in hex digits.
pub(crate) fn sum(bytes: impl Read) -> Result<String, std::io::Error> {
    Ok(hex::encode(hashed(bytes)?.finalize()))
}

fn hashed(mut bytes: impl Read) -> Result<Sha256, std::io::Error> {
    let mut hasher = Sha256::new();
    let mut piece = vec![0; PIECE];
    loop {
        match bytes.read(&mut piece)? {
            0 => return Ok(hasher),
            read => hasher.update(&piece[..read]),
        }
    }
}

fn text(hasher: Sha256) -> String {
    format!("sha256:{}", hex::encode(hasher.finalize()))
}

/// Why the bytes of a file could not be read.
pub(crate) fn unread(path: &str) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |error| store::Error::from_read(path)(error).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_stay_what_they_are() {
        let bytes = of_bytes(&b"Hello, World!"[..]).unwrap();
        let expected = "sha256:042a7d64a581ef2ee983f21058801cc35663b705e6c55f62fa8e0f18ecc70989";
        assert_eq!(bytes, expected);
    }
}
