//! [`Manifest`] and [`Index`]: the documents that name the parts of an image.

use crate::descriptor::nullable;
use crate::{Descriptor, Error, Family, Platform, Role, platform};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Largest document that is read. Registries refuse larger ones too.
pub const MAX_DOCUMENT_BYTES: u64 = 4 << 20;
/// Most layers of an image that is read: far more than can be mounted or honestly made.
const MAX_LAYERS: usize = 1024;

/// The parts of one image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Always 2.
    pub schema_version: u32,
    /// What this document is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub media_type: String,
    /// The configuration.
    pub config: Descriptor,
    /// The layers, oldest first.
    #[serde(deserialize_with = "nullable")]
    pub layers: Vec<Descriptor>,
    /// Anything that somebody wanted to say.
    #[serde(default, deserialize_with = "nullable", skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// Images for several platforms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    /// Always 2.
    pub schema_version: u32,
    /// What this document is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub media_type: String,
    /// One manifest or index each.
    #[serde(deserialize_with = "nullable")]
    pub manifests: Vec<Descriptor>,
    /// Anything that somebody wanted to say.
    #[serde(default, deserialize_with = "nullable", skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// What a reference leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Document {
    /// One image.
    Manifest(Manifest),
    /// Images for several platforms.
    Index(Index),
}

impl Document {
    /// Reads a document that was handed over as `media_type`; an empty one is not known.
    pub fn parse(media_type: &str, bytes: &[u8]) -> Result<Self, Error> {
        const WHAT: &str = "the manifest";
        check_size(WHAT, bytes)?;
        let shape: Shape = json(WHAT, bytes)?;
        if shape.schema_version == Some(1) || shape.fs_layers {
            return Err(Error::document(WHAT, "it has docker's schema 1, which is too old"));
        }
        if shape.schema_version != Some(2) {
            return Err(Error::document(WHAT, "its schema version is not 2"));
        }
        // A document that is both could be taken for one here and for the other elsewhere.
        let is_index = match (shape.manifests, shape.layers || shape.config) {
            (true, true) => return Err(Error::document(WHAT, "it is a manifest and an index")),
            (is_index, _) => is_index,
        };
        for name in [media_type, shape.media_type.as_str()] {
            let says_index = match Family::role_of(name) {
                Some(Role::Index) => true,
                Some(Role::Manifest) => false,
                Some(_) => return Err(Error::document(WHAT, format!("it calls itself `{name}`"))),
                None => continue,
            };
            if says_index != is_index {
                return Err(Error::document(WHAT, format!("it is no `{name}` as promised")));
            }
        }
        if is_index {
            return Ok(Self::Index(json(WHAT, bytes)?));
        }
        let manifest: Manifest = json(WHAT, bytes)?;
        manifest.check()?;
        Ok(Self::Manifest(manifest))
    }
}

/// The fields that tell documents apart.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shape {
    schema_version: Option<u32>,
    #[serde(default, deserialize_with = "nullable")]
    media_type: String,
    #[serde(default, deserialize_with = "present")]
    manifests: bool,
    #[serde(default, deserialize_with = "present")]
    layers: bool,
    #[serde(default, deserialize_with = "present")]
    config: bool,
    #[serde(default, deserialize_with = "present")]
    fs_layers: bool,
}

fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    serde::de::IgnoredAny::deserialize(deserializer).map(|_| true)
}

impl Manifest {
    /// A manifest of a family.
    pub fn new(family: Family, config: Descriptor, layers: Vec<Descriptor>) -> Self {
        let media_type = family.media_type(Role::Manifest).to_owned();
        Self { schema_version: 2, media_type, config, layers, annotations: BTreeMap::new() }
    }

    fn check(&self) -> Result<(), Error> {
        const WHAT: &str = "the manifest";
        if Family::role_of(&self.config.media_type) != Some(Role::Config) {
            let reason = format!("`{}` is no container image", self.config.media_type);
            return Err(Error::document(WHAT, reason));
        }
        if self.layers.len() > MAX_LAYERS {
            let reason = format!("it names {} layers, more than {MAX_LAYERS}", self.layers.len());
            return Err(Error::document(WHAT, reason));
        }
        let stranger = self
            .layers
            .iter()
            .find(|layer| !matches!(Family::role_of(&layer.media_type), Some(Role::Layer(_))));
        match stranger {
            None => Ok(()),
            Some(layer) => {
                let reason = format!("`{}` is no layer of an image", layer.media_type);
                Err(Error::document(WHAT, reason))
            }
        }
    }

    /// The bytes of the document.
    pub fn to_bytes(&self) -> Vec<u8> {
        to_json(self)
    }
}

impl Index {
    /// An index of a family.
    pub fn new(family: Family, manifests: Vec<Descriptor>) -> Self {
        let media_type = family.media_type(Role::Index).to_owned();
        Self { schema_version: 2, media_type, manifests, annotations: BTreeMap::new() }
    }

    /// The one of the images that fits a platform best.
    pub fn pick(&self, wanted: &Platform) -> Result<&Descriptor, Error> {
        platform::pick(&self.manifests, wanted)
    }

    /// The bytes of the document.
    pub fn to_bytes(&self) -> Vec<u8> {
        to_json(self)
    }
}

/// Refuses a document that no honest program writes.
pub(crate) fn check_size(what: &'static str, bytes: &[u8]) -> Result<(), Error> {
    if bytes.len() as u64 > MAX_DOCUMENT_BYTES {
        return Err(Error::TooLarge { what: what.to_owned(), limit: MAX_DOCUMENT_BYTES });
    }
    Ok(())
}

pub(crate) fn json<T: DeserializeOwned>(what: &'static str, bytes: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(bytes).map_err(|error| Error::document(what, error))
}

pub(crate) fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain data with text keys has a JSON form")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Digest;

    fn manifest() -> Manifest {
        let family = Family::Docker;
        let config = Descriptor::of(family.media_type(Role::Config), b"{}");
        let layer = Role::Layer(crate::Compression::Gzip);
        let layer = Descriptor::of(family.media_type(layer), b"x");
        Manifest::new(family, config, vec![layer])
    }

    fn refusal(media_type: &str, text: &str) -> String {
        Document::parse(media_type, text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn documents_of_both_families_read_back() {
        let manifest = manifest();
        let bytes = manifest.to_bytes();
        for name in ["", Family::Docker.media_type(Role::Manifest)] {
            assert_eq!(
                Document::parse(name, &bytes).unwrap(),
                Document::Manifest(manifest.clone())
            );
        }
        let name = Family::Oci.media_type(Role::Manifest);
        let index = Index::new(Family::Oci, vec![Descriptor::of(name, &bytes)]);
        let read = Document::parse("", &index.to_bytes()).unwrap();
        assert_eq!(read, Document::Index(index));
    }

    #[test]
    fn nulls_stand_for_nothing() {
        let text = r#"{"schemaVersion":2,"manifests":null,"annotations":null}"#;
        let Document::Index(index) = Document::parse("", text.as_bytes()).unwrap() else {
            panic!()
        };
        assert!(index.manifests.is_empty());
    }

    #[test]
    fn documents_that_two_readers_could_take_for_different_things_are_refused() {
        let index = Family::Oci.media_type(Role::Index);
        let text = String::from_utf8(manifest().to_bytes()).unwrap();
        assert!(refusal(index, &text).contains("as promised"));
        let both = text.replacen('{', r#"{"manifests":[],"#, 1);
        assert!(refusal("", &both).contains("a manifest and an index"));
        assert!(refusal("", r#"{"schemaVersion":1}"#).contains("schema 1"));
        assert!(refusal("", r#"{"schemaVersion":3,"manifests":[]}"#).contains("not 2"));
        assert!(refusal("", "[]").contains("cannot be read"));
        assert!(refusal("", r#"{"schemaVersion":2,"layers":7,"config":{}}"#).contains("cannot"));
    }

    #[test]
    fn hostile_documents_are_refused() {
        let chart = String::from_utf8(manifest().to_bytes()).unwrap();
        let chart = chart.replace("container.image", "chart");
        assert!(refusal("", &chart).contains("no container image"));
        let mut many = manifest();
        many.layers = vec![many.layers[0].clone(); MAX_LAYERS + 1];
        assert!(refusal("", &String::from_utf8(many.to_bytes()).unwrap()).contains("layers"));
        let nested = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        let nested = format!(r#"{{"schemaVersion":2,"manifests":{nested}}}"#);
        assert!(refusal("", &nested).contains("cannot be read"));
        let large = " ".repeat(MAX_DOCUMENT_BYTES as usize + 1);
        assert!(refusal("", &large).contains("larger than"));
        let climbing = String::from_utf8(manifest().to_bytes()).unwrap();
        let climbing = climbing.replace(&Digest::of(b"x").to_string(), "sha256:../../x");
        assert!(refusal("", &climbing).contains("not a digest"));
        let negative = String::from_utf8(manifest().to_bytes()).unwrap();
        assert!(refusal("", &negative.replace(r#""size":1"#, r#""size":-1"#)).contains("cannot"));
    }
}
