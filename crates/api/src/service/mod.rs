//! `Service`: something that runs in the background and is reached over the network.
//!
//! The value is plain data: what runs, or where it is. What runs now is in `running`, a table for each
//! session, in which equal services are one: `instance` is one that runs, `lease` the right to use it.
//! `health` says when a container is ready, `host` is the caller's machine as a service, and `tunnel` the
//! other way, a service on the caller's machine. [`Service::start`] is all that others need.

mod fields;
mod forward;
mod forwards;
mod health;
mod host;
mod instance;
mod lease;
mod running;
mod terminal;
mod tunnel;

pub(crate) use forward::Forward;
pub(crate) use forwards::PortForward;
pub(crate) use lease::Lease;
pub use running::RunningServices;
pub(crate) use tunnel::up;

use crate::container::{Background, ExposedPort};
use graph::{Builder, Context, Object};
use host::HostPorts;
use instance::Instance;
use protocol::{Digest, Error};
use std::sync::Arc;
use tunnel::Tunnel;

/// How many digits of its identity are the name of a service.
const NAME_DIGITS: usize = 16;
/// Longest name of a host.
const MAX_NAME: usize = 253;
/// Longest part of one.
const MAX_LABEL: usize = 63;

pub(crate) fn install(builder: &mut Builder) {
    fields::install(builder);
    host::install(builder);
    terminal::install(builder);
    tunnel::install(builder);
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
    Container(Box<Background>),
    /// Ports that the caller's machine reaches.
    Host(HostPorts),
    /// A service that is reached on the caller's machine.
    Tunnel(Tunnel),
}

impl Kind {
    /// Takes the services out that it is bound to.
    fn take_bound(&mut self) -> Vec<Service> {
        match self {
            Self::Container(background) => background.take_bound(),
            Self::Host(_) | Self::Tunnel(_) => vec![],
        }
    }
}

impl Object for Service {
    const TYPE: &'static str = "Service";
}

impl Service {
    /// The command of a container, with the ports that it listens on.
    pub(crate) fn of_container(background: Background, identity: Digest) -> Self {
        let ports = background.ports().to_vec();
        Self::new(Kind::Container(Box::new(background)), identity, ports)
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

    /// Whether containers cannot reach it, because it is on the caller's machine.
    pub(crate) fn is_tunnel(&self) -> bool {
        matches!(self.0.kind, Kind::Tunnel(_))
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
        match &self.0.kind {
            Kind::Container(background) => Some(background),
            Kind::Host(_) | Kind::Tunnel(_) => None,
        }
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
        let mut ahead = self.kind.take_bound();
        while let Some(Service(inner)) = ahead.pop() {
            if let Some(mut inner) = Arc::into_inner(inner) {
                ahead.append(&mut inner.kind.take_bound());
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
