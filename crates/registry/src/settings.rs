//! How registries are reached.

use crate::{Anonymous, Credentials};
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// How all registries are reached, and how single ones differ.
#[derive(Clone)]
pub struct Settings {
    /// What is special about single registries, by name (`docker.io`, `localhost:5000`).
    pub hosts: BTreeMap<String, Host>,
    /// Proxy for all addresses that are not of this machine.
    pub proxy: Option<String>,
    /// Who asks.
    pub credentials: Arc<dyn Credentials>,
    /// How long a connection may take to come about.
    pub connect_timeout: Duration,
    /// How long nothing may move. There is no limit on the whole.
    pub stall_timeout: Duration,
    /// How long a registry may take to check and keep what it was sent.
    pub finish_timeout: Duration,
    /// How often something is tried before it fails.
    pub attempts: u32,
    /// Pause before the second try; it doubles from try to try, with some randomness.
    pub pause: Duration,
    /// Longest pause that a registry may ask for before that is an error.
    pub longest_pause: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            hosts: BTreeMap::new(),
            proxy: None,
            credentials: Arc::new(Anonymous),
            connect_timeout: Duration::from_secs(15),
            stall_timeout: Duration::from_secs(30),
            finish_timeout: Duration::from_secs(300),
            attempts: 5,
            pause: Duration::from_millis(250),
            longest_pause: Duration::from_secs(60),
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("hosts", &self.hosts)
            .field("proxy", &self.proxy)
            .finish_non_exhaustive()
    }
}

/// What is special about one registry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Registries that are asked first for what is pulled: `host[:port][/prefix]`, with `http://`
    /// or `https://` before it where that must be said.
    pub mirrors: Vec<String>,
    /// How to speak with it. Without a word it is HTTPS, or plain HTTP for one of this machine.
    pub protocol: Option<Protocol>,
    /// Whether its certificate is taken as it is. Plain HTTP is tried too, unless `protocol` says
    /// otherwise.
    pub insecure: bool,
    /// Authorities to trust beside those of the machine, as PEM.
    pub ca: Option<Arc<[u8]>>,
    /// Where it really is, if not where its name says. It is spoken with like one of this machine.
    pub address: Option<SocketAddr>,
}

/// How a registry is spoken with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// With TLS.
    Https,
    /// Without.
    Http,
}

/// Told how many bytes are there, and of how many once that is known.
pub type Progress = Arc<dyn Fn(u64, Option<u64>) + Send + Sync>;

/// A [`Progress`] that tells nobody.
pub fn quiet() -> Progress {
    Arc::new(|_, _| ())
}
