//! HTTP clients, one for each way to trust and to route, built at first use.

use crate::error::cause;
use crate::{Error, Settings};
use reqwest::{Certificate, Client, ClientBuilder, Proxy, Url, redirect};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

/// Whom to trust, and whether to go through the proxy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Way {
    pub(crate) insecure: bool,
    pub(crate) ca: Option<Arc<[u8]>>,
    pub(crate) direct: bool,
    /// A host that is not where its name says.
    pub(crate) elsewhere: Option<(String, SocketAddr)>,
}

/// All clients of a process. They hold the connections.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    built: Mutex<HashMap<Way, Built>>,
}

#[derive(Clone, Debug)]
struct Built {
    client: Client,
    /// Why https is out of the question, on a machine without certificates.
    no_certificates: Option<String>,
}

impl Clients {
    /// The client for an address.
    pub(crate) fn get(
        &self,
        settings: &Settings,
        way: &Way,
        url: &Url,
        what: &str,
    ) -> Result<Client, Error> {
        let built = self.built(settings, way)?;
        match built.no_certificates {
            Some(reason) if url.scheme() == "https" => {
                let reason = format!("this machine has no CA certificates: {reason}");
                Err(Error::Certificate { what: what.to_owned(), host: host_of(url), reason })
            }
            _ => Ok(built.client),
        }
    }

    fn built(&self, settings: &Settings, way: &Way) -> Result<Built, Error> {
        let mut all = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(built) = all.get(way) {
            return Ok(built.clone());
        }
        let built = build(settings, way)?;
        all.insert(way.clone(), built.clone());
        Ok(built)
    }
}

/// A machine without certificates still gets a client: plain http needs none.
fn build(settings: &Settings, way: &Way) -> Result<Built, Error> {
    let fail = |reason: String| Error::Settings { registry: "*".to_owned(), reason };
    let own = match &way.ca {
        Some(pem) => Certificate::from_pem_bundle(pem)
            .map_err(|error| fail(format!("the authorities are no PEM: {}", cause(&error))))?,
        None => vec![],
    };
    let with_system = builder(settings, way)?.tls_certs_merge(own.clone()).build();
    match with_system {
        Ok(client) => Ok(Built { client, no_certificates: None }),
        Err(error) => {
            let no_certificates = (own.is_empty() && !way.insecure).then(|| cause(&error));
            let alone = builder(settings, way)?.tls_certs_only(own).build();
            let client = alone.map_err(|error| fail(cause(&error)))?;
            Ok(Built { client, no_certificates })
        }
    }
}

/// Redirects are followed by us: the next host must not see what the first one may.
fn builder(settings: &Settings, way: &Way) -> Result<ClientBuilder, Error> {
    let builder = Client::builder()
        .user_agent(concat!("ci-tool/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(settings.connect_timeout)
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        .tcp_nodelay(true)
        .tls_danger_accept_invalid_certs(way.insecure)
        .no_proxy();
    let builder = match &way.elsewhere {
        Some((host, address)) => builder.resolve(host, *address),
        None => builder,
    };
    let Some(proxy) = settings.proxy.as_ref().filter(|_| !way.direct) else { return Ok(builder) };
    let proxy = Proxy::all(proxy).map_err(|error| {
        let reason = format!("the proxy `{proxy}` makes no sense: {}", cause(&error));
        Error::Settings { registry: "*".to_owned(), reason }
    })?;
    Ok(builder.proxy(proxy))
}

/// `host[:port]` of an address.
pub(crate) fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Whether `host[:port]` is this machine.
pub(crate) fn is_loopback(name: &str) -> bool {
    let host = match name.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => name.split(':').next().unwrap_or_default(),
    };
    let by_name = host == "localhost" || host.ends_with(".localhost");
    by_name || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::is_loopback;

    #[test]
    fn names_of_this_machine() {
        for name in ["localhost", "localhost:5000", "127.0.0.1:5000", "127.1.2.3", "[::1]:5000"] {
            assert!(is_loopback(name), "{name}");
        }
        for name in ["localhost.example", "10.0.0.1:5000", "host.example", "[2001:db8::1]:1"] {
            assert!(!is_loopback(name), "{name}");
        }
    }
}
