//! `Service`: something that runs in the background and is reached over the network.
//!
//! The value is plain data: what runs, or where it is. What runs now is in `running`, a table for each
//! session, in which equal services are one: `instance` is one that runs, `lease` the right to use it.
//! `health` says when a container is ready, `host` is the caller's machine as a service, and `tunnel` the
//! other way, a service on the caller's machine. [`Service::start`] is all that others need.

mod fields;
mod forward;
mod health;
mod instance;
mod lease;
mod running;
mod terminal;

pub(crate) use forward::Forward;
pub(crate) use lease::Lease;
pub use running::RunningServices;

use crate::container::{Background, ExposedPort};
use graph::{Builder, Context, Object};
use instance::Instance;
use protocol::{Digest, Error};
use std::sync::Arc;

/// How many digits of its identity are the name of a service.
const NAME_DIGITS: usize = 16;
/// Longest name of a host.
const MAX_NAME: usize = 253;
/// Longest part of one.
const MAX_LABEL: usize = 63;

pub(crate) fn install(builder: &mut Builder) {
    fields::install(builder);
    terminal::install(builder);
}

/// A service, as a value. Clones are the same.
#[derive(Clone)]
pub(crate) struct Service(Arc<Inner>);

struct Inner {
    kind: Kind,
    /// Stands for all that makes it what it is; equal services are one.
    identity: Digest,
    hostname: String,
    ports: Vec<ExposedPort>,
}

/// What a service is.
#[derive(Clone)]
enum Kind {
    /// The command of a container.
    Container(Background),
}

impl Object for Service {
    const TYPE: &'static str = "Service";
}

impl Service {
    /// The command of a container, with the ports that it listens on.
    pub(crate) fn of_container(background: Background, identity: Digest) -> Self {
        let ports = background.ports().to_vec();
        Self::new(Kind::Container(background), identity, ports)
    }

    fn new(kind: Kind, identity: Digest, ports: Vec<ExposedPort>) -> Self {
        let hostname = format!("s{}", &identity.to_string()[..NAME_DIGITS]);
        Self(Arc::new(Inner { kind, identity, hostname, ports }))
    }

    /// The same under another name.
    fn named(&self, hostname: &str) -> Self {
        let inner = &*self.0;
        let mut identity = Digest::builder("service:named");
        identity.digest(&inner.identity).text(hostname);
        Self(Arc::new(Inner {
            kind: inner.kind.clone(),
            identity: identity.finish(),
            hostname: hostname.to_owned(),
            ports: inner.ports.clone(),
        }))
    }

    /// The name that it is reached by in its session.
    pub(crate) fn hostname(&self) -> &str {
        &self.0.hostname
    }

    /// Stands for all that makes it what it is.
    pub(crate) fn identity(&self) -> &Digest {
        &self.0.identity
    }

    /// The ports that it listens on.
    pub(crate) fn ports(&self) -> &[ExposedPort] {
        &self.0.ports
    }

    /// The command behind it, if it is in a container.
    fn background(&self) -> Option<&Background> {
        let Kind::Container(background) = &self.0.kind;
        Some(background)
    }

    /// Starts it, unless it runs in this session, and waits until it is ready. It goes on for as long as
    /// somebody holds what this gives, and a while longer.
    pub(crate) async fn start(&self, cx: &Context) -> Result<Lease, Error> {
        Instance::start(self, cx).await.map_err(|mut error| {
            error.message = format!("start {}: {}", self.hostname(), error.message);
            error
        })
    }

    /// The same for one that is known by another name where it is used.
    pub(crate) async fn start_as(&self, alias: &str, cx: &Context) -> Result<Lease, Error> {
        Instance::start(self, cx).await.map_err(|mut error| {
            let host = self.hostname();
            error.message = format!("start {host} (aliased as {alias}): {}", error.message);
            error
        })
    }
}

/// Services are bound to services, in chains of any length: they are let go of one after the other.
impl Drop for Inner {
    fn drop(&mut self) {
        let Kind::Container(background) = &mut self.kind;
        let mut ahead = background.take_bound();
        while let Some(Service(inner)) = ahead.pop() {
            if let Some(mut inner) = Arc::into_inner(inner) {
                let Kind::Container(background) = &mut inner.kind;
                ahead.append(&mut background.take_bound());
            }
        }
    }
}

/// Refuses what cannot be the name of a host.
pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    let sound = |label: &str| {
        let fits = !label.is_empty() && label.len() <= MAX_LABEL;
        let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        fits && label.bytes().all(known) && !label.starts_with('-') && !label.ends_with('-')
    };
    if name.len() <= MAX_NAME && name.split('.').all(sound) {
        return Ok(());
    }
    let shown: String = name.chars().take(MAX_LABEL).collect();
    Err(Error::user(format!("`{shown}` cannot be the name of a host"))
        .with_hint("use letters, digits, `-` and dots"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_hosts() {
        for name in ["db", "my-db_1", "db.example.com", "A9"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        let long = "a".repeat(64);
        for name in ["", ".", "a..b", "-a", "a-", "a b", "a/b", "\u{e4}", "db.", &long] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
    }
}
