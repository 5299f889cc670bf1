//! `engine.toml`: what an engine may do and where it gets Debian packages from.
//!
//! One table, [`KEYS`], says everything about a key: name, form, default and meaning. The reader
//! takes defaults from it and the reference page is made from it, so neither can drift. An unknown
//! key is an error, because a misspelt limit that is silently ignored is no limit.

mod keys;

pub use keys::{Form, KEYS, Key, reference_markdown};

use crate::quantity::{QuantityError, parse_duration, parse_size};
use std::path::PathBuf;
use std::time::Duration;
use toml::{Table, Value};

/// Settings of an engine, every one with a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Engine {
    /// How long the engine stays without a session.
    pub idle_timeout: Duration,
    /// How long a command may take to end after it was asked to.
    pub grace: Duration,
    /// What network commands see.
    pub network: Network,
    /// Most memory of one command, in bytes.
    pub memory_limit: Option<u64>,
    /// Most processes of one command.
    pub pids_limit: Option<u64>,
    /// Most processors of one command.
    pub cpu_limit: Option<f64>,
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
        key: &'static str,
        /// The form it wants.
        wanted: &'static str,
        /// The sort of TOML value that was given.
        given: &'static str,
    },
    /// The value is of the right sort and makes no sense.
    #[error("key `{key}`: {reason}")]
    BadValue {
        /// Which key.
        key: &'static str,
        /// Why not.
        reason: String,
    },
}

impl Default for Engine {
    fn default() -> Self {
        Self {
            idle_timeout: Duration::from_secs(600),
            grace: Duration::from_secs(10),
            network: Network::None,
            memory_limit: None,
            pids_limit: None,
            cpu_limit: None,
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
        let key = KEYS.iter().find(|key| key.name == name).ok_or_else(|| unknown(name))?;
        set(&mut engine, &Given { key, value })?;
    }
    Ok(engine)
}

fn unknown(name: &str) -> Error {
    let known: Vec<String> = KEYS.iter().map(|key| format!("`{}`", key.name)).collect();
    Error::UnknownKey { key: name.to_owned(), known: known.join(", ") }
}

fn set(engine: &mut Engine, given: &Given<'_>) -> Result<(), Error> {
    match given.key.name {
        "idle-timeout" => engine.idle_timeout = given.duration()?,
        "grace" => engine.grace = given.duration()?,
        "network" => engine.network = given.network()?,
        "memory-limit" => engine.memory_limit = Some(given.size()?),
        "pids-limit" => engine.pids_limit = Some(given.count()?),
        "cpu-limit" => engine.cpu_limit = Some(given.processors()?),
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

/// A value together with the key it was given for.
struct Given<'a> {
    key: &'static Key,
    value: &'a Value,
}

impl Given<'_> {
    fn text(&self) -> Result<&str, Error> {
        self.value.as_str().ok_or_else(|| self.wrong_form())
    }

    fn duration(&self) -> Result<Duration, Error> {
        parse_duration(self.text()?).map_err(|error| self.quantity(&error))
    }

    fn size(&self) -> Result<u64, Error> {
        match parse_size(self.text()?).map_err(|error| self.quantity(&error))? {
            0 => Err(self.bad("must be more than nothing")),
            bytes => Ok(bytes),
        }
    }

    fn count(&self) -> Result<u64, Error> {
        let number = self.value.as_integer().ok_or_else(|| self.wrong_form())?;
        u64::try_from(number).ok().filter(|n| *n > 0).ok_or_else(|| self.bad("must be at least 1"))
    }

    fn processors(&self) -> Result<f64, Error> {
        let whole = self.value.as_integer().map(|number| number as f64);
        let number = self.value.as_float().or(whole).ok_or_else(|| self.wrong_form())?;
        let sound = number.is_finite() && number >= 0.01;
        if sound { Ok(number) } else { Err(self.bad("must be at least 0.01")) }
    }

    fn network(&self) -> Result<Network, Error> {
        match self.text()? {
            "none" => Ok(Network::None),
            "host" => Ok(Network::Host),
            other => Err(self.bad(&format!("`{other}` is neither `none` nor `host`"))),
        }
    }

    /// An archive: a URL or a directory.
    fn archive(&self) -> Result<String, Error> {
        self.address(&["http://", "https://", "file://", "/"])
    }

    /// A text that begins in one of these ways.
    fn address(&self, beginnings: &[&str]) -> Result<String, Error> {
        let text = self.text()?;
        if beginnings.iter().any(|beginning| text.starts_with(beginning)) {
            return Ok(text.trim_end_matches('/').to_owned());
        }
        Err(self.bad(&format!("must begin with one of `{}`", beginnings.join("`, `"))))
    }

    fn path(&self) -> Result<PathBuf, Error> {
        let path = PathBuf::from(self.text()?);
        if path.is_absolute() { Ok(path) } else { Err(self.bad("must be an absolute path")) }
    }

    fn quantity(&self, error: &QuantityError) -> Error {
        self.bad(&error.to_string())
    }

    fn bad(&self, reason: &str) -> Error {
        Error::BadValue { key: self.key.name, reason: reason.to_owned() }
    }

    fn wrong_form(&self) -> Error {
        let given = match self.value {
            Value::String(_) => "a text",
            Value::Integer(_) => "a whole number",
            Value::Float(_) => "a number",
            Value::Boolean(_) => "true or false",
            Value::Datetime(_) => "a date",
            Value::Array(_) => "a list",
            Value::Table(_) => "a table",
        };
        Error::WrongForm { key: self.key.name, wanted: self.key.form.described(), given }
    }
}

#[cfg(test)]
mod tests;
