//! [`Descriptor`]: what a document says of a blob, and the media types of the two families.

use crate::{Compression, Digest, Platform};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// What a document says of a blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// What the bytes are.
    pub media_type: String,
    /// Digest of the bytes.
    pub digest: Digest,
    /// Number of bytes.
    pub size: u64,
    /// Platform of the image that a manifest is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// Anything that somebody wanted to say.
    #[serde(default, deserialize_with = "nullable", skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// Whose names a document uses. The bytes of layers are the same in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Family {
    /// The Open Container Initiative's.
    Oci,
    /// Docker's, version 2.2.
    Docker,
}

/// What a blob is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A list of manifests.
    Index,
    /// A manifest.
    Manifest,
    /// The configuration of an image.
    Config,
    /// A layer.
    Layer(Compression),
}

/// A media type that stands for two roles is read as the first.
const NAMES: &[(Family, Role, &str)] = &[
    (Family::Oci, Role::Index, "application/vnd.oci.image.index.v1+json"),
    (Family::Oci, Role::Manifest, "application/vnd.oci.image.manifest.v1+json"),
    (Family::Oci, Role::Config, "application/vnd.oci.image.config.v1+json"),
    (Family::Oci, Role::Layer(Compression::None), "application/vnd.oci.image.layer.v1.tar"),
    (Family::Oci, Role::Layer(Compression::Gzip), "application/vnd.oci.image.layer.v1.tar+gzip"),
    (Family::Oci, Role::Layer(Compression::EStarGz), "application/vnd.oci.image.layer.v1.tar+gzip"),
    (Family::Oci, Role::Layer(Compression::Zstd), "application/vnd.oci.image.layer.v1.tar+zstd"),
    (Family::Docker, Role::Index, "application/vnd.docker.distribution.manifest.list.v2+json"),
    (Family::Docker, Role::Manifest, "application/vnd.docker.distribution.manifest.v2+json"),
    (Family::Docker, Role::Config, "application/vnd.docker.container.image.v1+json"),
    (
        Family::Docker,
        Role::Layer(Compression::None),
        "application/vnd.docker.image.rootfs.diff.tar",
    ),
    (
        Family::Docker,
        Role::Layer(Compression::Gzip),
        "application/vnd.docker.image.rootfs.diff.tar.gzip",
    ),
    (
        Family::Docker,
        Role::Layer(Compression::EStarGz),
        "application/vnd.docker.image.rootfs.diff.tar.gzip",
    ),
    (
        Family::Docker,
        Role::Layer(Compression::Zstd),
        "application/vnd.docker.image.rootfs.diff.tar.zstd",
    ),
];

/// Layers that their makers did not want to be handed on. The bytes are layers like any other.
const WITH_A_NOTE: &[(&str, Compression)] = &[
    ("application/vnd.oci.image.layer.nondistributable.v1.tar", Compression::None),
    ("application/vnd.oci.image.layer.nondistributable.v1.tar+gzip", Compression::Gzip),
    ("application/vnd.oci.image.layer.nondistributable.v1.tar+zstd", Compression::Zstd),
    ("application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", Compression::Gzip),
];

impl Family {
    /// The name of a role.
    pub fn media_type(self, role: Role) -> &'static str {
        let row = NAMES.iter().find(|(family, other, _)| (*family, *other) == (self, role));
        row.map_or("application/octet-stream", |(.., name)| name)
    }

    /// What a media type stands for; none for a stranger's.
    pub fn role_of(media_type: &str) -> Option<Role> {
        let row = NAMES.iter().find(|(.., name)| *name == media_type);
        let noted = WITH_A_NOTE.iter().find(|(name, _)| *name == media_type);
        row.map(|(_, role, _)| *role).or(noted.map(|(_, one)| Role::Layer(*one)))
    }

    /// Whose name a media type is.
    pub fn of(media_type: &str) -> Self {
        let row = NAMES.iter().find(|(.., name)| *name == media_type);
        row.map_or(Self::Oci, |(family, ..)| *family)
    }
}

impl Descriptor {
    /// A descriptor without extras.
    pub fn new(media_type: &str, digest: Digest, size: u64) -> Self {
        let (platform, annotations) = (None, BTreeMap::new());
        Self { media_type: media_type.to_owned(), digest, size, platform, annotations }
    }

    /// The descriptor of bytes.
    pub fn of(media_type: &str, bytes: &[u8]) -> Self {
        Self::new(media_type, Digest::of(bytes), bytes.len() as u64)
    }
}

/// Takes a null for nothing, as some writers put it.
pub(crate) fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
