//! Which hosts serve a registry: its mirrors for what is pulled, then the registry itself.
//!
//! | registry | how it is reached |
//! |---|---|
//! | any | HTTPS, certificate verified |
//! | of this machine, or at an address | plain HTTP; HTTPS when it turns out to speak that |
//! | `insecure` | HTTPS, certificate not verified; plain HTTP when it does not speak that |
//! | with `protocol` | as it says |

use super::clients::{Way, is_loopback};
use crate::reference::canonical_registry;
use crate::{Error, Host, Protocol, Reference, Settings};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Where the default registry really answers.
const DEFAULT_REGISTRY_HOST: &str = "registry-1.docker.io";

/// How long a mirror that failed is left alone.
const REST: Duration = Duration::from_secs(60);

/// One host that serves a registry.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    /// The name by which settings and credentials know it.
    pub(crate) name: String,
    /// `host[:port]` to call.
    pub(crate) host: String,
    /// Goes before the names of repositories: a mirror may keep a registry below a folder.
    prefix: String,
    /// How it may speak, the likelier first.
    pub(crate) protocols: Vec<Protocol>,
    pub(crate) way: Way,
    pub(crate) is_mirror: bool,
}

impl Endpoint {
    /// The registry itself.
    pub(crate) fn of_registry(settings: &Settings, registry: &str) -> Self {
        let registry = canonical_registry(registry);
        let host = match registry {
            "docker.io" => DEFAULT_REGISTRY_HOST,
            other => other,
        };
        Self::new(settings, registry, host, None)
    }

    fn new(settings: &Settings, name: &str, host: &str, said: Option<Protocol>) -> Self {
        let special = settings.hosts.get(name).cloned().unwrap_or_default();
        let loopback = special.address.is_some() || is_loopback(host);
        let elsewhere = special.address.map(|address| (without_port(host).to_owned(), address));
        let said = said.or(special.protocol);
        let unverified = special.insecure || (loopback && special.ca.is_none() && said.is_none());
        Self {
            name: name.to_owned(),
            host: host.to_owned(),
            prefix: String::new(),
            protocols: protocols(&special, loopback, said),
            way: Way { insecure: unverified, ca: special.ca, direct: loopback, elsewhere },
            is_mirror: false,
        }
    }

    fn of_mirror(settings: &Settings, registry: &str, text: &str) -> Result<Self, Error> {
        let (said, rest) = match text.split_once("://") {
            Some(("http", rest)) => (Some(Protocol::Http), rest),
            Some(("https", rest)) => (Some(Protocol::Https), rest),
            None => (None, text),
            Some(_) => return Err(bad_mirror(registry, text)),
        };
        let rest = rest.trim_end_matches('/');
        let (name, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        // Checked by the same rules as any name, so that nothing odd gets into an address.
        let checked = match prefix.is_empty() {
            true => Reference::parse(&format!("{name}/x")),
            false => Reference::parse(&format!("{name}/{prefix}")),
        };
        match checked {
            Ok(reference) if reference.registry() == canonical_registry(name) => {}
            _ => return Err(bad_mirror(registry, text)),
        }
        let mut endpoint = match said {
            None => Self::of_registry(settings, name),
            Some(_) => Self::new(settings, name, name, said),
        };
        endpoint.is_mirror = true;
        endpoint.prefix = match prefix.is_empty() {
            true => String::new(),
            false => format!("{prefix}/"),
        };
        Ok(endpoint)
    }

    /// A repository as this host calls it.
    pub(crate) fn repository(&self, repository: &str) -> String {
        format!("{}{repository}", self.prefix)
    }
}

/// The host of `host[:port]`.
fn without_port(host: &str) -> &str {
    host.rsplit_once(':').map_or(host, |(host, _)| host)
}

fn bad_mirror(registry: &str, text: &str) -> Error {
    let reason = format!("the mirror `{text}` is no `host[:port][/prefix]`");
    Error::Settings { registry: registry.to_owned(), reason }
}

fn protocols(special: &Host, loopback: bool, said: Option<Protocol>) -> Vec<Protocol> {
    match said {
        Some(protocol) => vec![protocol],
        None if special.ca.is_some() && !special.insecure => vec![Protocol::Https],
        None if loopback => vec![Protocol::Http, Protocol::Https],
        None if special.insecure => vec![Protocol::Https, Protocol::Http],
        None => vec![Protocol::Https],
    }
}

/// What is known of hosts: how they speak, and which mirrors are left alone for a while.
#[derive(Debug, Default)]
pub(crate) struct Endpoints {
    spoken: Mutex<HashMap<String, Protocol>>,
    resting: Mutex<HashMap<String, Instant>>,
}

impl Endpoints {
    /// Who is asked before the registry itself for what is pulled, in order.
    pub(crate) fn mirrors(
        &self,
        settings: &Settings,
        registry: &str,
    ) -> Result<Vec<Endpoint>, Error> {
        let special = settings.hosts.get(registry);
        let mirrors = special.map(|host| host.mirrors.as_slice()).unwrap_or_default();
        let mut endpoints = vec![];
        for mirror in mirrors {
            let endpoint = Endpoint::of_mirror(settings, registry, mirror)?;
            if !self.rests(&endpoint.host) {
                endpoints.push(endpoint);
            }
        }
        Ok(endpoints)
    }

    /// How a host speaks, if that was found out.
    pub(crate) fn spoken(&self, host: &str) -> Option<Protocol> {
        self.spoken.lock().unwrap_or_else(PoisonError::into_inner).get(host).copied()
    }

    pub(crate) fn set_spoken(&self, host: &str, protocol: Protocol) {
        let mut spoken = self.spoken.lock().unwrap_or_else(PoisonError::into_inner);
        spoken.insert(host.to_owned(), protocol);
    }

    /// Leaves a mirror alone for a while.
    pub(crate) fn rest(&self, endpoint: &Endpoint) {
        let mut resting = self.resting.lock().unwrap_or_else(PoisonError::into_inner);
        resting.insert(endpoint.host.clone(), Instant::now() + REST);
    }

    fn rests(&self, host: &str) -> bool {
        let resting = self.resting.lock().unwrap_or_else(PoisonError::into_inner);
        resting.get(host).is_some_and(|until| Instant::now() < *until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn settings(registry: &str, host: Host) -> Settings {
        Settings { hosts: [(registry.to_owned(), host)].into(), ..Settings::default() }
    }

    #[test]
    fn protocols_follow_the_table() {
        use Protocol::{Http, Https};
        let insecure = Host { insecure: true, ..Host::default() };
        let plain = Host { protocol: Some(Http), ..Host::default() };
        let ca = Host { ca: Some(Arc::from(b"pem".as_slice())), ..Host::default() };
        let table = [
            ("host.example", Host::default(), vec![Https], false),
            ("localhost:5000", Host::default(), vec![Http, Https], true),
            ("host.example", insecure, vec![Https, Http], true),
            ("host.example", plain, vec![Http], false),
            ("localhost:5000", ca, vec![Https], false),
        ];
        for (name, host, protocols, unverified) in table {
            let endpoint = Endpoint::of_registry(&settings(name, host.clone()), name);
            assert_eq!(endpoint.protocols, protocols, "{name} {host:?}");
            assert_eq!(endpoint.way.insecure, unverified, "{name} {host:?}");
        }
    }

    #[test]
    fn the_default_registry_answers_elsewhere() {
        let endpoint = Endpoint::of_registry(&Settings::default(), "index.docker.io");
        assert_eq!(
            (endpoint.name.as_str(), endpoint.host.as_str()),
            ("docker.io", DEFAULT_REGISTRY_HOST)
        );
    }

    #[test]
    fn mirrors_come_first_and_rest_after_a_failure() {
        let mirrors =
            vec!["http://one.example:5000".to_owned(), "two.example/cache/hub".to_owned()];
        let settings = settings("docker.io", Host { mirrors, ..Host::default() });
        let known = Endpoints::default();
        let hosts = |known: &Endpoints| -> Vec<String> {
            let all = known.mirrors(&settings, "docker.io").unwrap();
            all.iter().map(|endpoint| endpoint.host.clone()).collect()
        };
        assert_eq!(hosts(&known), ["one.example:5000", "two.example"]);
        let all = known.mirrors(&settings, "docker.io").unwrap();
        assert_eq!(all[0].protocols, [Protocol::Http]);
        assert_eq!(all[1].repository("library/x"), "cache/hub/library/x");
        known.rest(&all[0]);
        assert_eq!(hosts(&known), ["two.example"]);
    }

    #[test]
    fn mirrors_that_make_no_sense_are_refused() {
        for mirror in ["ftp://host.example", "", "host.example/../x", "word", "host.example/a b"] {
            let settings =
                settings("a.example", Host { mirrors: vec![mirror.to_owned()], ..Host::default() });
            let error = Endpoints::default().mirrors(&settings, "a.example").unwrap_err();
            assert!(matches!(error, Error::Settings { .. }), "{mirror}: {error}");
        }
    }
}
