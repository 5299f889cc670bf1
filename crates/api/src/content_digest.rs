//! The digests that users see: of a directory, of a file, of a file's bytes.
//!
//! They are the store's own digests of content, which know nothing of layers and times, in the form that
//! clients expect: `sha256:` and 64 hex digits. They must not change, because users keep them.

use protocol::{Digest, Error};
use sha2::{Digest as _, Sha256};
use std::io::Read;

/// Bytes read at once.
const PIECE: usize = 256 * 1024;

/// The text of a digest that the store made.
pub(crate) fn of_content(digest: &Digest) -> String {
    text(Sha256::new().chain_update("ci-tool:content:").chain_update(digest.as_bytes()))
}

/// The text of the digest of bytes alone, which is the digest of their digest.
pub(crate) fn of_bytes(mut bytes: impl Read) -> Result<String, std::io::Error> {
    let mut hasher = Sha256::new();
    let mut piece = vec![0; PIECE];
    loop {
        match bytes.read(&mut piece)? {
            0 => break,
            read => hasher.update(&piece[..read]),
        }
    }
    Ok(text(Sha256::new().chain_update(hasher.finalize())))
}

fn text(hasher: Sha256) -> String {
    let digits = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("sha256:{digits}")
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
        let content = of_content(&Digest::from_bytes([7; 32]));
        assert_eq!(
            content,
            "sha256:21b2f5f7a6635bb0c5c495b389e7a6e7388214ac82f2559bb4e9e24182fbec61"
        );
    }
}
