//! Whole images in one file: the OCI layout as a tar, and what `docker save` writes.

mod read;
mod write;

#[cfg(test)]
mod tests;

pub use read::{Archive, Found, FoundLayer};
pub use write::{Blob, Contents, Source, Stream};

use crate::Digest;
use serde::{Deserialize, Serialize};

/// The document that says that this is a layout.
const LAYOUT_NAME: &str = "oci-layout";
const LAYOUT: &[u8] = br#"{"imageLayoutVersion":"1.0.0"}"#;
/// The document that says which images there are.
const INDEX_NAME: &str = "index.json";
/// The same in docker's form.
const DOCKER_NAME: &str = "manifest.json";

/// One image in docker's form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DockerImage {
    /// Path of its configuration.
    config: String,
    /// Its names.
    repo_tags: Option<Vec<String>>,
    /// Paths of its layers, oldest first.
    layers: Vec<String>,
}

/// Where a blob is.
fn blob_name(digest: &Digest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}
