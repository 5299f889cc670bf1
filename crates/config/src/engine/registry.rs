//! Settings of one registry: the tables `[registry."host:port"]` of `engine.toml`.

use super::given::Given;
use super::keys::REGISTRY_KEYS;
use super::{Error, unknown};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What is set for one registry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registry {
    /// Who is asked first when an image is pulled: a host, perhaps with a port and a path.
    pub mirrors: Vec<String>,
    /// Whether it is spoken to without TLS.
    pub http: bool,
    /// Whether any certificate is accepted.
    pub insecure: bool,
    /// Certificates that may have signed the registry's, besides the usual ones.
    pub ca: Option<PathBuf>,
    /// Name to log in with.
    pub username: Option<String>,
    /// Where the password for that name is.
    pub password_file: Option<PathBuf>,
}

/// Reads all tables.
pub(super) fn read(given: &Given<'_>) -> Result<BTreeMap<String, Registry>, Error> {
    let tables = given.value.as_table().ok_or_else(|| given.wrong_form())?;
    let mut registries = BTreeMap::new();
    for (name, value) in tables {
        let written = format!("registry.\"{name}\"");
        let table = value.as_table().ok_or_else(|| given.wrong_form())?;
        if !is_host(name) {
            let reason = "the name of the table must be a host, perhaps with a port";
            return Err(Error::BadValue { key: written, reason: reason.to_owned() });
        }
        let mut registry = Registry::default();
        for (name, value) in table {
            let written = format!("{written}.{name}");
            let given = Given::of(REGISTRY_KEYS, name, value)
                .ok_or_else(|| unknown(&written, REGISTRY_KEYS))?;
            set(&mut registry, &Given { written, ..given })?;
        }
        if registry.username.is_some() != registry.password_file.is_some() {
            let reason = "`username` and `password-file` belong together";
            return Err(Error::BadValue { key: written, reason: reason.to_owned() });
        }
        registries.insert(name.clone(), registry);
    }
    Ok(registries)
}

fn set(registry: &mut Registry, given: &Given<'_>) -> Result<(), Error> {
    match given.key.name {
        "mirrors" => registry.mirrors = mirrors(given)?,
        "http" => registry.http = given.flag()?,
        "insecure" => registry.insecure = given.flag()?,
        "ca" => registry.ca = Some(given.path()?),
        "username" => registry.username = Some(given.text()?.to_owned()),
        "password-file" => registry.password_file = Some(given.path()?),
        name => unreachable!("key `{name}` is in the table and has a setter"),
    }
    Ok(())
}

fn mirrors(given: &Given<'_>) -> Result<Vec<String>, Error> {
    let mut mirrors = given.texts()?;
    for mirror in &mut mirrors {
        let host = mirror.split('/').next().unwrap_or_default();
        if !is_host(host) {
            let reason = format!("`{mirror}` must be a host, perhaps with a port and a path");
            return Err(given.bad(&reason));
        }
        mirror.truncate(mirror.trim_end_matches('/').len());
    }
    Ok(mirrors)
}

/// Whether this is `host` or `host:port`, where a host may be an address in brackets.
fn is_host(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !text.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let host_is_sound = match inner {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.chars().all(named),
    };
    host_is_sound && port.is_none_or(|port| port.parse::<u16>().is_ok())
}
