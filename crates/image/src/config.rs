//! [`ImageConfig`]: what an image says about itself and about running it.

use crate::descriptor::nullable;
use crate::manifest::{check_size, json, to_json};
use crate::{Digest, Error, Platform};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The configuration document of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageConfig {
    /// When it was made, as RFC 3339 says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// Who made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// For which machines.
    #[serde(flatten)]
    pub platform: Platform,
    /// How to run it.
    #[serde(default, deserialize_with = "nullable")]
    pub config: Config,
    /// What it is made of.
    pub rootfs: RootFs,
    /// How it was made, oldest first.
    #[serde(default, deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<History>,
}

/// How to run an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Config {
    /// `name=value` each.
    #[serde(default, deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// `user[:group]`.
    #[serde(default, deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// Where commands run.
    #[serde(default, deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub working_dir: String,
    /// What goes before the arguments.
    #[serde(default, deserialize_with = "words", skip_serializing_if = "Vec::is_empty")]
    pub entrypoint: Vec<String>,
    /// The arguments where none are given.
    #[serde(default, deserialize_with = "words", skip_serializing_if = "Vec::is_empty")]
    pub cmd: Vec<String>,
    /// Anything that somebody wanted to say.
    #[serde(default, deserialize_with = "nullable", skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// `port/protocol` each, with an empty object.
    #[serde(default, deserialize_with = "nullable", skip_serializing_if = "BTreeMap::is_empty")]
    pub exposed_ports: BTreeMap<String, Value>,
    /// What only some programs know: health checks, volumes, stop signals and so on.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// The layers of an image by their plain contents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootFs {
    /// Always `layers`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Digests of the uncompressed layers, oldest first.
    #[serde(deserialize_with = "nullable")]
    pub diff_ids: Vec<Digest>,
}

/// One step in the making of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// When, as RFC 3339 says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// What was done.
    #[serde(default, deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub created_by: String,
    /// Who did it.
    #[serde(default, deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub author: String,
    /// A remark.
    #[serde(default, deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub comment: String,
    /// Whether no layer came of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub empty_layer: bool,
}

impl Default for RootFs {
    fn default() -> Self {
        Self { kind: "layers".to_owned(), diff_ids: vec![] }
    }
}

impl ImageConfig {
    /// Reads a configuration for an image of this many layers.
    pub fn parse(bytes: &[u8], layers: usize) -> Result<Self, Error> {
        const WHAT: &str = "the configuration of the image";
        check_size(WHAT, bytes)?;
        let config: Self = json(WHAT, bytes)?;
        if config.rootfs.kind != "layers" {
            let reason = format!("its root file system is of the kind `{}`", config.rootfs.kind);
            return Err(Error::document(WHAT, reason));
        }
        let named = config.rootfs.diff_ids.len();
        if named != layers {
            let reason = format!("it names {named} layers, the manifest {layers}");
            return Err(Error::document(WHAT, reason));
        }
        Ok(config)
    }

    /// The bytes of the document.
    pub fn to_bytes(&self) -> Vec<u8> {
        to_json(self)
    }
}

/// A list of words; a single text is a list of one, as some writers put it.
fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Words {
        List(Vec<String>),
        One(String),
    }
    Ok(match Option::deserialize(deserializer)? {
        Some(Words::List(list)) => list,
        Some(Words::One(one)) => vec![one],
        None => vec![],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_docker_writes_is_read_and_survives() {
        let text = r#"{"architecture":"arm64","variant":"v8","os":"linux","docker_version":"1",
            "container_config":{"Cmd":["x"]},
            "config":{"Env":["A=b"],"Cmd":null,"Entrypoint":"/run","Labels":null,
                "ExposedPorts":{"80/tcp":{}},"Healthcheck":{"Test":["NONE"]},"OnBuild":null},
            "rootfs":{"type":"layers","diff_ids":null},
            "history":[{"created_by":"make","empty_layer":true}]}"#;
        let config = ImageConfig::parse(text.as_bytes(), 0).unwrap();
        assert_eq!(config.config.entrypoint, ["/run"]);
        assert_eq!(config.platform.to_string(), "linux/arm64/v8");
        assert_eq!(config.config.other["Healthcheck"]["Test"][0], "NONE");
        assert!(config.history[0].empty_layer);
        let again = ImageConfig::parse(&config.to_bytes(), 0).unwrap();
        assert_eq!(again, config);
        assert_eq!(again.to_bytes(), config.to_bytes());
    }

    #[test]
    fn bogus_configurations_are_refused() {
        for (text, reason) in [
            ("", "cannot be read"),
            ("null", "cannot be read"),
            (r#"{"rootfs":{"type":"layers","diff_ids":"x"}}"#, "cannot be read"),
            (r#"{"rootfs":{"type":"layers","diff_ids":["sha256:no"]}}"#, "not a digest"),
            (r#"{"rootfs":{"type":"layers+base","diff_ids":[]}}"#, "of the kind"),
            (r#"{"rootfs":{"type":"layers","diff_ids":[]},"config":7}"#, "cannot be read"),
            (r#"{"rootfs":{"type":"layers","diff_ids":[]},"config":{"Env":{}}}"#, "cannot be read"),
        ] {
            let said = ImageConfig::parse(text.as_bytes(), 0).unwrap_err().to_string();
            assert!(said.contains(reason), "{text}: {said}");
        }
        let text = r#"{"rootfs":{"type":"layers","diff_ids":[]}}"#;
        let said = ImageConfig::parse(text.as_bytes(), 3).unwrap_err().to_string();
        assert!(said.contains("names 0 layers, the manifest 3"), "{said}");
    }
}
