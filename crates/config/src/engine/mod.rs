//! `engine.toml`: what an engine may do and where it gets Debian packages from.
//!
//! One table, [`KEYS`], says everything about a key: name, form, default and meaning. The reader
//! takes defaults from it and the reference page is made from it, so neither can drift. An unknown
//! key is an error, because a misspelt limit that is silently ignored is no limit.

mod given;
mod keys;
mod page;
mod registry;
mod space;

pub use keys::{Form, KEYS, Key, REGISTRY_KEYS};
pub use page::reference_markdown;
pub use registry::Registry;
pub use space::{Amount, Space};

use given::Given;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use toml::Table;

/// Settings of an engine, every one with a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Engine {
    /// How long the engine stays without a session.
    pub idle_timeout: Duration,
    /// How long a command may take to end after it was asked to.
    pub grace: Duration,
    /// What makes containers: `own`, the name of a program, or its absolute path.
    pub runtime: String,
    /// What network commands see.
    pub network: Network,
    /// First address and length of the prefix of the containers' addresses; none has one found.
    pub subnet: Option<(Ipv4Addr, u8)>,
    /// Certificates that commands trust besides those of their image; none is the machine's own.
    pub ca_certificates: Option<PathBuf>,
    /// Where the engine listens for other machines; none is nowhere.
    pub listen: Option<SocketAddr>,
    /// The engine's certificate.
    pub tls_cert: Option<PathBuf>,
    /// The key of that certificate.
    pub tls_key: Option<PathBuf>,
    /// Who signs certificates of clients.
    pub tls_client_ca: Option<PathBuf>,
    /// Whether the engine listens without certificates.
    pub listen_plain: bool,
    /// Most memory of one command, in bytes.
    pub memory_limit: Option<u64>,
    /// Most processes of one command.
    pub pids_limit: Option<u64>,
    /// Most processors of one command.
    pub cpu_limit: Option<f64>,
    /// Most space of the cache.
    pub max_used_space: Amount,
    /// Space that is kept free for others; none is a rule of [`Engine::space`].
    pub min_free_space: Option<Amount>,
    /// Space that the cache may always use; none is a rule of [`Engine::space`].
    pub reserved_space: Option<Amount>,
    /// How far down a collection goes; none is a rule of [`Engine::space`].
    pub target_space: Option<Amount>,
    /// What was used more recently is collected last.
    pub keep_duration: Duration,
    /// Whether the engine collects by itself.
    pub gc: bool,
    /// Settings of registries, by their name in an address.
    pub registries: BTreeMap<String, Registry>,
    /// Debian archive to use instead of the host's own sources.
    pub debian_mirror: Option<String>,
    /// Keys that may sign that archive.
    pub debian_keyring: Option<PathBuf>,
    /// How old the index of a Debian suite may grow.
    pub debian_refresh: Duration,
    /// Folder of downloaded packages; none is one inside the state folder.
    pub debian_cache: Option<PathBuf>,
    /// Proxy for all downloads.
    pub proxy: Option<String>,
    /// What the engine writes to its log.
    pub log_level: String,
}

/// What network commands see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// The engine's own, with a way out.
    Bridge,
    /// Loopback only.
    None,
    /// The host's own.
    Host,
}

/// What is wrong with an `engine.toml`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not TOML at all.
    #[error("not valid TOML: {0}")]
    Syntax(#[from] toml::de::Error),
    /// No such key.
    #[error("unknown key `{key}`; known keys are {known}")]
    UnknownKey {
        /// As it was written.
        key: String,
        /// All that exist.
        known: String,
    },
    /// The value is of another sort than the key wants.
    #[error("key `{key}` wants {wanted}, not {given}")]
    WrongForm {
        /// Which key.
        key: String,
        /// The form it wants.
        wanted: &'static str,
        /// The sort of TOML value that was given.
        given: &'static str,
    },
    /// The value is of the right sort and makes no sense.
    #[error("key `{key}`: {reason}")]
    BadValue {
        /// Which key.
        key: String,
        /// Why not.
        reason: String,
    },
}

impl Default for Engine {
    fn default() -> Self {
        Self {
            idle_timeout: Duration::from_secs(600),
            grace: Duration::from_secs(10),
            runtime: "own".into(),
            network: Network::Bridge,
            subnet: None,
            ca_certificates: None,
            listen: None,
            tls_cert: None,
            tls_key: None,
            tls_client_ca: None,
            listen_plain: false,
            memory_limit: None,
            pids_limit: None,
            cpu_limit: None,
            max_used_space: Amount::Share(75.0),
            min_free_space: None,
            reserved_space: None,
            target_space: None,
            keep_duration: Duration::from_secs(7 * 24 * 3600),
            gc: true,
            registries: BTreeMap::new(),
            debian_mirror: None,
            debian_keyring: None,
            debian_refresh: Duration::from_secs(24 * 3600),
            debian_cache: None,
            proxy: None,
            log_level: "info".into(),
        }
    }
}

/// Reads the text of an `engine.toml`.
pub fn parse(text: &str) -> Result<Engine, Error> {
    let table: Table = text.parse()?;
    let mut engine = Engine::default();
    for (name, value) in &table {
        let given = Given::of(KEYS, name, value).ok_or_else(|| unknown(name, KEYS))?;
        set(&mut engine, &given)?;
    }
    Ok(engine)
}

fn unknown(written: &str, keys: &[Key]) -> Error {
    let known: Vec<String> = keys.iter().map(|key| format!("`{}`", key.name)).collect();
    Error::UnknownKey { key: written.to_owned(), known: known.join(", ") }
}

fn set(engine: &mut Engine, given: &Given<'_>) -> Result<(), Error> {
    match given.key.name {
        "idle-timeout" => engine.idle_timeout = given.duration()?,
        "grace" => engine.grace = given.duration()?,
        "runtime" => engine.runtime = given.runtime()?,
        "network" => engine.network = given.network()?,
        "subnet" => engine.subnet = Some(given.subnet()?),
        "ca-certificates" => engine.ca_certificates = Some(given.path()?),
        "listen" => engine.listen = Some(given.listen()?),
        "tls-cert" => engine.tls_cert = Some(given.path()?),
        "tls-key" => engine.tls_key = Some(given.path()?),
        "tls-client-ca" => engine.tls_client_ca = Some(given.path()?),
        "listen-plain" => engine.listen_plain = given.flag()?,
        "memory-limit" => engine.memory_limit = Some(given.size()?),
        "pids-limit" => engine.pids_limit = Some(given.count()?),
        "cpu-limit" => engine.cpu_limit = Some(given.processors()?),
        "max-used-space" => engine.max_used_space = given.space()?,
        "min-free-space" => engine.min_free_space = Some(given.space()?),
        "reserved-space" => engine.reserved_space = Some(given.space()?),
        "target-space" => engine.target_space = Some(given.space()?),
        "keep-duration" => engine.keep_duration = given.duration()?,
        "gc" => engine.gc = given.flag()?,
        "registry" => engine.registries = registry::read(given)?,
        "debian-mirror" => engine.debian_mirror = Some(given.archive()?),
        "debian-keyring" => engine.debian_keyring = Some(given.path()?),
        "debian-refresh" => engine.debian_refresh = given.duration()?,
        "debian-cache" => engine.debian_cache = Some(given.path()?),
        "proxy" => engine.proxy = Some(given.address(&["http://", "https://"])?),
        "log-level" => engine.log_level = given.text()?.to_owned(),
        name => unreachable!("key `{name}` is in the table and has a setter"),
    }
    Ok(())
}

#[cfg(test)]
mod tests;
