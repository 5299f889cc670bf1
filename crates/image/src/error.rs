//! [`Error`]: what is wrong with an image. Every text names what it is about; none repeats much of
//! what a stranger wrote.

use std::io;

/// An image or a part of it cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A document is no JSON of the expected shape.
    #[error("{what} cannot be read: {reason}")]
    Document {
        /// Which document.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A document or a header is larger than any honest one.
    #[error("{what} is larger than {limit} bytes")]
    TooLarge {
        /// Which one.
        what: String,
        /// The limit.
        limit: u64,
    },
    /// The bytes are not those that were named.
    #[error("{what} has the digest {found}, not {expected} as promised")]
    Mismatch {
        /// What was read.
        what: String,
        /// What was promised.
        expected: String,
        /// What came.
        found: String,
    },
    /// A layer breaks the rules of its format.
    #[error("the layer is damaged: {0}")]
    Tar(String),
    /// A layer holds an entry that is refused.
    #[error("entry `{path}` of the layer {reason}")]
    Entry {
        /// Its path, cut.
        path: String,
        /// Why it is refused.
        reason: String,
    },
    /// A compression that is not read here.
    #[error("{0} is not supported: gzip, zstd and uncompressed layers are")]
    Compression(&'static str),
    /// An image has nothing for the wanted platform.
    #[error("there is no image for {wanted}; there are: {available}")]
    Platform {
        /// What was asked for.
        wanted: String,
        /// What there is.
        available: String,
    },
    /// An archive holds no image, or not the one asked for.
    #[error("{0}")]
    Archive(String),
    /// Bytes could not be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Error {
    /// A document that is wrong in this way.
    pub(crate) fn document(what: &'static str, reason: impl ToString) -> Self {
        Self::Document { what, reason: shorten(&reason.to_string()) }
    }

    /// An entry that is refused for this reason.
    pub(crate) fn entry(path: &[u8], reason: impl Into<String>) -> Self {
        Self::Entry { path: shorten(&String::from_utf8_lossy(path)), reason: reason.into() }
    }
}

/// A text as it can stand in a message: control characters replaced, not too long.
pub(crate) fn shorten(text: &str) -> String {
    const SHOWN: usize = 200;
    let mut short: String =
        text.chars().take(SHOWN).map(|c| if c.is_control() { '?' } else { c }).collect();
    if text.chars().nth(SHOWN).is_some() {
        short.push_str("...");
    }
    short
}
