//! The configuration of docker and podman, as far as it is about credentials.
//!
//! ```json
//! { "auths":       { "localhost:5000": { "auth": "<base64 of user:password>" } },
//!   "credHelpers": { "registry.example": "name of a program" },
//!   "credsStore":  "name of a program for all others" }
//! ```
//!
//! A program that is named for a registry goes before the one for all, and both before what stands
//! in the file. Whose machine the file and the programs are on is the caller's matter.

use super::program::Helper;
use super::{Credential, Credentials, Found};
use crate::Error;
use crate::reference::canonical_registry;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a program may take to find a credential. It may ask the user's key ring, not the user.
const HELPER_TIME: Duration = Duration::from_secs(30);

/// What the environment says about where configurations are.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// `DOCKER_CONFIG`: a folder.
    pub docker_config: Option<PathBuf>,
    /// `REGISTRY_AUTH_FILE`: a file.
    pub registry_auth_file: Option<PathBuf>,
    /// `XDG_RUNTIME_DIR`.
    pub runtime_dir: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`.
    pub config_home: Option<PathBuf>,
    /// `HOME`.
    pub home: Option<PathBuf>,
}

impl Places {
    /// Files that may hold credentials, in the order in which they are asked: docker's, podman's.
    pub fn files(&self) -> Vec<PathBuf> {
        let below = |folder: &Option<PathBuf>, rest: &str| folder.as_ref().map(|it| it.join(rest));
        let docker = below(&self.docker_config, "config.json")
            .or_else(|| below(&self.home, ".docker/config.json"));
        let config = below(&self.config_home, "containers/auth.json")
            .or_else(|| below(&self.home, ".config/containers/auth.json"));
        let podman = match &self.registry_auth_file {
            Some(file) => vec![Some(file.clone())],
            None => vec![below(&self.runtime_dir, "containers/auth.json"), config],
        };
        [docker].into_iter().chain(podman).flatten().collect()
    }
}

/// Credentials as docker and podman keep them.
#[derive(Clone, Debug, Default)]
pub struct DockerConfig {
    written: HashMap<String, Credential>,
    helpers: HashMap<String, String>,
    store: Option<String>,
    search_path: Option<OsString>,
    helper_time: Option<Duration>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Document {
    auths: Option<HashMap<String, Entry>>,
    #[serde(rename = "credHelpers")]
    helpers: Option<HashMap<String, String>>,
    #[serde(rename = "credsStore")]
    store: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Entry {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    identitytoken: Option<String>,
    registrytoken: Option<String>,
}

impl DockerConfig {
    /// Reads the text of a configuration; `path` is for messages.
    pub fn parse(path: &Path, text: &[u8]) -> Result<Self, Error> {
        let document: Document = serde_json::from_slice(text).map_err(|error| Error::Config {
            path: path.to_owned(),
            // What stands there may be secret; where it is wrong is enough.
            reason: format!("no valid JSON at line {}, column {}", error.line(), error.column()),
        })?;
        let auths = document.auths.unwrap_or_default();
        let written =
            auths.iter().filter_map(|(name, entry)| Some((registry_of(name)?, read(entry)?)));
        let helpers = document.helpers.unwrap_or_default().into_iter();
        let helpers = helpers.filter_map(|(name, helper)| Some((registry_of(&name)?, helper)));
        Ok(Self {
            written: written.collect(),
            helpers: helpers.collect(),
            store: document.store.filter(|store| !store.is_empty()),
            ..Self::default()
        })
    }

    /// Reads a file; none where there is none.
    pub fn read(path: &Path) -> Result<Option<Self>, Error> {
        match std::fs::read(path) {
            Ok(text) => Self::parse(path, &text).map(Some),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(Error::Config { path: path.to_owned(), reason: error.to_string() }),
        }
    }

    /// Looks for programs in these folders (in the form of `PATH`) and not in those of this process.
    #[must_use]
    pub fn with_search_path(self, path: OsString) -> Self {
        Self { search_path: Some(path), ..self }
    }

    /// Lets programs take no longer than this.
    #[must_use]
    pub fn with_helper_time(self, time: Duration) -> Self {
        Self { helper_time: Some(time), ..self }
    }

    /// The program to ask about a registry.
    fn helper(&self, registry: &str) -> Option<Helper> {
        let name = self.helpers.get(registry).or(self.store.as_ref())?;
        Some(Helper {
            name: name.clone(),
            search_path: self.search_path.clone(),
            time: self.helper_time.unwrap_or(HELPER_TIME),
        })
    }
}

impl Credentials for DockerConfig {
    fn find<'a>(&'a self, registry: &'a str) -> Found<'a> {
        let registry = canonical_registry(registry);
        Box::pin(async move {
            if let Some(helper) = self.helper(registry)
                && let Some(found) = helper.get(registry).await?
            {
                return Ok(Some(found));
            }
            Ok(self.written.get(registry).cloned())
        })
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The registry of a key, which may be written as an address: `https://index.docker.io/v1/`. A key
/// of a part of a registry is none.
fn registry_of(key: &str) -> Option<String> {
    let bare = key.split_once("://").map_or(key, |(_, rest)| rest);
    let (host, path) = bare.split_once('/').unwrap_or((bare, ""));
    let whole = matches!(path.trim_matches('/'), "" | "v1" | "v2");
    (whole && !host.is_empty()).then(|| canonical_registry(host).to_owned())
}

fn read(entry: &Entry) -> Option<Credential> {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    if let Some(token) = given(&entry.identitytoken) {
        return Some(Credential::IdentityToken(token));
    }
    if let Some(token) = given(&entry.registrytoken) {
        return Some(Credential::Bearer(token));
    }
    let (username, password) = match given(&entry.auth) {
        Some(auth) => {
            let text = String::from_utf8(STANDARD.decode(auth.trim()).ok()?).ok()?;
            let (username, password) = text.split_once(':')?;
            (username.to_owned(), password.trim_end_matches('\0').to_owned())
        }
        None => (given(&entry.username)?, given(&entry.password)?),
    };
    Some(Credential::Password { username, password })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn password(username: &str, password: &str) -> Credential {
        Credential::Password { username: username.to_owned(), password: password.to_owned() }
    }

    #[test]
    fn entries_are_read_in_all_their_forms() {
        let text = br#"{
            "auths": {
                "https://index.docker.io/v1/": { "auth": "bWU6YTpi" },
                "localhost:5000": { "username": "u", "password": "p" },
                "one.example": { "identitytoken": "t", "auth": "bWU6YTpi" },
                "http://two.example/v2/": { "registrytoken": "r" },
                "part.example/of/it": { "auth": "bWU6YTpi" },
                "empty.example": {},
                "bad.example": { "auth": "%%" }
            },
            "HttpHeaders": { "x": "y" }, "psFormat": 3
        }"#;
        let config = DockerConfig::parse(Path::new("config.json"), text).unwrap();
        let expect = HashMap::from([
            ("docker.io".to_owned(), password("me", "a:b")),
            ("localhost:5000".to_owned(), password("u", "p")),
            ("one.example".to_owned(), Credential::IdentityToken("t".to_owned())),
            ("two.example".to_owned(), Credential::Bearer("r".to_owned())),
        ]);
        assert_eq!(config.written, expect);
    }

    #[test]
    fn a_broken_file_is_named_and_not_repeated() {
        let text = b"{\"auths\": {\"a\": {\"auth\": \"c2VjcmV0\" ";
        let error = DockerConfig::parse(Path::new("/home/me/config.json"), text).unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains("/home/me/config.json") && message.contains("line 1"),
            "{message}"
        );
        assert!(!message.contains("c2VjcmV0"), "{message}");
    }

    #[test]
    fn a_helper_of_a_registry_goes_before_the_one_for_all() {
        let text = br#"{ "credHelpers": { "one.example": "one" }, "credsStore": "all" }"#;
        let config = DockerConfig::parse(Path::new("c"), text).unwrap();
        assert_eq!(config.helper("one.example").unwrap().name, "one");
        assert_eq!(config.helper("two.example").unwrap().name, "all");
        assert!(DockerConfig::default().helper("one.example").is_none());
    }

    #[test]
    fn files_are_looked_for_in_order() {
        let path = |text: &str| Some(PathBuf::from(text));
        let mut places =
            Places { home: path("/h"), runtime_dir: path("/run/1"), ..Places::default() };
        let files = |places: &Places| {
            let files = places.files();
            files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>()
        };
        let expect = [
            "/h/.docker/config.json",
            "/run/1/containers/auth.json",
            "/h/.config/containers/auth.json",
        ];
        assert_eq!(files(&places), expect);
        places.docker_config = path("/d");
        places.registry_auth_file = path("/a.json");
        assert_eq!(files(&places), ["/d/config.json", "/a.json"]);
        assert!(files(&Places::default()).is_empty());
    }

    #[test]
    fn a_missing_file_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(DockerConfig::read(&folder.path().join("config.json")).unwrap().is_none());
        assert!(DockerConfig::read(folder.path()).is_err());
    }
}
