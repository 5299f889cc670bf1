//! Certificates of both sides, read from files, and the handshakes.
//!
//! Both sides show a certificate and both are checked: who reaches an engine may do there what its
//! user may. There is one version of the protocol, the newest.

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Files with what one side shows and whom it trusts, all in PEM form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// Certificates of the authorities whose word counts for the other side.
    pub authorities: PathBuf,
    /// The certificate that is shown, with those between it and its authority.
    pub certificate: PathBuf,
    /// The key of that certificate.
    pub key: PathBuf,
}

/// Why certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read, or holds nothing of the kind.
    #[error("cannot read {what} from `{path}`: {reason}")]
    File {
        /// What it should hold.
        what: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// Certificate, key and authorities do not make a side of a connection.
    #[error("cannot use `{path}`: {reason}")]
    Unfit {
        /// The certificate's file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
}

/// The side of a client.
#[derive(Clone)]
pub struct Connector(TlsConnector);

/// The side of an engine.
#[derive(Clone)]
pub struct Acceptor(TlsAcceptor);

impl std::fmt::Debug for Connector {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Connector")
    }
}

impl Connector {
    /// Reads what a client needs.
    pub fn new(files: &Files) -> Result<Self, Error> {
        let roots = authorities(&files.authorities)?;
        let config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(unfit(&files.certificate))?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain(&files.certificate)?, key(&files.key)?)
            .map_err(unfit(&files.certificate))?;
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    /// Shakes hands with an engine that must have a certificate for this name.
    pub async fn connect(&self, host: &str, stream: TcpStream) -> io::Result<crate::Stream> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let stream = self.0.connect(name, stream).await?;
        Ok(crate::Stream::Tls(Box::new(stream.into())))
    }
}

impl Acceptor {
    /// Reads what an engine needs.
    pub fn new(files: &Files) -> Result<Self, Error> {
        let unfit_clients = |reason: &dyn std::fmt::Display| Error::Unfit {
            path: files.authorities.clone(),
            reason: reason.to_string(),
        };
        let roots = Arc::new(authorities(&files.authorities)?);
        let clients = WebPkiClientVerifier::builder_with_provider(roots, provider())
            .build()
            .map_err(|error| unfit_clients(&error))?;
        let config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(unfit(&files.certificate))?
            .with_client_cert_verifier(clients)
            .with_single_cert(chain(&files.certificate)?, key(&files.key)?)
            .map_err(unfit(&files.certificate))?;
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// Shakes hands with a client.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<crate::Stream> {
        let stream = self.0.accept(stream).await?;
        Ok(crate::Stream::Tls(Box::new(stream.into())))
    }
}

/// What an error of a connection means, where it is about a certificate of ours.
pub fn refusal(error: &io::Error) -> Option<String> {
    match error.get_ref()?.downcast_ref()? {
        rustls::Error::AlertReceived(alert) => {
            Some(format!("it does not accept our certificate ({alert:?})"))
        }
        _ => None,
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

fn authorities(path: &Path) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in chain(path)? {
        roots.add(certificate).map_err(unfit(path))?;
    }
    Ok(roots)
}

fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    const WHAT: &str = "a certificate";
    let read = CertificateDer::pem_file_iter(path).map_err(unreadable(WHAT, path))?;
    let chain: Vec<_> = read.collect::<Result<_, _>>().map_err(unreadable(WHAT, path))?;
    match chain.is_empty() {
        true => Err(unreadable(WHAT, path)("there is none in it")),
        false => Ok(chain),
    }
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    PrivateKeyDer::from_pem_file(path).map_err(unreadable("a key", path))
}

fn unreadable<R: std::fmt::Display>(what: &'static str, path: &Path) -> impl Fn(R) -> Error {
    move |reason| Error::File { what, path: path.to_owned(), reason: reason.to_string() }
}

fn unfit(path: &Path) -> impl Fn(rustls::Error) -> Error {
    move |error| Error::Unfit { path: path.to_owned(), reason: error.to_string() }
}

#[cfg(test)]
mod tests;
