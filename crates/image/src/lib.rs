//! The formats of container images: documents, layers and archives. No network, no store.
//!
//! Everything here comes from strangers: documents have size limits and are refused when two readers
//! could understand them differently, layers are read by a reader of our own that checks every
//! header, and paths leave this crate only in a form that cannot climb. What is written is a function
//! of what went in: equal inputs give equal bytes.
//!
//! The types of documents are written here and not taken from a library, because images in the wild
//! hold nulls, single strings for lists and fields of one vendor that have to survive a round trip.
//!
//! Read `manifest` and `config` for documents, `layer` (over `tar`) for what is in a layer, `archive`
//! for whole images in one file.

pub mod archive;
mod compression;
mod config;
mod descriptor;
mod digest;
mod error;
mod gzip;
pub mod layer;
mod manifest;
mod platform;
mod stargz;
pub mod tar;
mod time;

pub use compression::{Compression, Decoder, Encoder, decoder};
pub use config::{Config, History, ImageConfig, RootFs};
pub use descriptor::{Descriptor, Family, Role};
pub use digest::{Digest, Hashed, ParseDigestError};
pub use error::Error;
pub use manifest::{Document, Index, MAX_DOCUMENT_BYTES, Manifest};
pub use platform::Platform;
pub use stargz::{Finished, Stargz};
pub use time::rfc3339;
