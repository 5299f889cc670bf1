//! [`Way`]: how a service that is a web server is reached by the engine.

use crate::service::{Forward, Lease, Service};
use graph::Context;
use protocol::{Digest, Error};
use std::net::SocketAddr;

/// The way to a service, which runs for as long as this lives.
pub(super) struct Way {
    host: String,
    forward: Forward,
    service: Digest,
    _lease: Lease,
}

impl Way {
    /// The way to the host of an address, if that is a service: the given one, or one that runs in this
    /// session under that name.
    pub(super) async fn to(
        url: &str,
        service: Option<&Service>,
        cx: &Context,
    ) -> Result<Option<Self>, Error> {
        let (host, port) = host_and_port(url);
        let (lease, service) = match service {
            Some(service) => (Some(service.start(cx).await?), *service.identity()),
            None => (Lease::of_host(host, cx), Digest::of(host.as_bytes())),
        };
        let Some(lease) = lease else { return Ok(None) };
        let forward = lease.forwarded(port, cx).await?;
        Ok(Some(Self { host: host.to_owned(), forward, service, _lease: lease }))
    }

    /// What the service is known by.
    pub(super) fn service(&self) -> &Digest {
        &self.service
    }

    /// The host of the address, and where it is.
    pub(super) fn elsewhere(&self) -> (String, SocketAddr) {
        (self.host.clone(), self.forward.address())
    }
}

/// Host and port of the address of a web server.
fn host_and_port(url: &str) -> (&str, u16) {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    let usual = if scheme.eq_ignore_ascii_case("https") { 443 } else { 80 };
    match place.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().unwrap_or(usual)),
        _ => (place, usual),
    }
}

#[cfg(test)]
mod tests {
    use super::host_and_port;

    #[test]
    fn hosts_and_ports() {
        for (url, expected) in [
            ("http://web:8080/x", ("web", 8080)),
            ("http://web/x:1", ("web", 80)),
            ("https://me:pw@web?x", ("web", 443)),
            ("http://[::1]/x", ("[::1]", 80)),
            ("http://[::1]:81/x", ("[::1]", 81)),
        ] {
            assert_eq!(host_and_port(url), expected, "{url}");
        }
    }
}
