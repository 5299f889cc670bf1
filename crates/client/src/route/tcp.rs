//! An engine at a port, reached with certificates on both sides.
//!
//! Without certificates only the loopback interface will do: nothing in clear text leaves this machine.

use crate::Error;
use link::{Stream, tls};
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use tokio::net::TcpStream;

/// Files with what we show to an engine and whom we trust.
#[derive(Clone, Debug, Default)]
pub struct Certificates {
    /// Who signs certificates of engines.
    pub authorities: Option<PathBuf>,
    /// Our certificate.
    pub certificate: Option<PathBuf>,
    /// Its key.
    pub key: Option<PathBuf>,
}

/// A port of a machine.
#[derive(Clone, Debug)]
pub(crate) struct Tcp {
    host: String,
    port: u16,
    /// None is clear text.
    connector: Option<tls::Connector>,
}

impl Tcp {
    /// Reads `host:port`; none when it is something else.
    pub(crate) fn parse(text: &str, certificates: &Certificates) -> Result<Option<Self>, Error> {
        let Some((host, port)) = split(text) else { return Ok(None) };
        let mut tcp = Self { host, port, connector: None };
        let Certificates { authorities, certificate, key } = certificates.clone();
        match (authorities, certificate, key) {
            (Some(authorities), Some(certificate), Some(key)) => {
                let files = tls::Files { authorities, certificate, key };
                tcp.connector = Some(tls::Connector::new(&files)?);
            }
            (None, None, None) if is_loopback(&tcp.host) => {}
            _ => return Err(Error::NoCertificates(tcp.to_string())),
        }
        Ok(Some(tcp))
    }

    /// Dials and shakes hands.
    pub(crate) async fn open(&self) -> Result<Stream, Error> {
        let failed = |error: std::io::Error| Error::Unreachable {
            engine: self.to_string(),
            reason: error.to_string(),
        };
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        match &self.connector {
            None => Ok(Stream::Tcp(stream)),
            Some(connector) => connector.connect(&self.host, stream).await.map_err(failed),
        }
    }
}

impl fmt::Display for Tcp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(formatter, "tcp://[{}]:{}", self.host, self.port),
            false => write!(formatter, "tcp://{}:{}", self.host, self.port),
        }
    }
}

/// Host and port. An address with colons stands in brackets.
fn split(text: &str) -> Option<(String, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let port = port.parse().ok().filter(|port| *port > 0)?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host = match bare {
        Some(bare) => bare.parse::<std::net::Ipv6Addr>().ok()?.to_string(),
        None if host.is_empty() || host.contains([':', '/', '@']) => return None,
        None => host.to_owned(),
    };
    Some((host, port))
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}
