//! [`Remote`]: the door for clients on other machines.
//!
//! Who comes in may do what the engine's user may, so both sides show a certificate. Without them the
//! engine listens on the loopback interface only, and only when it was asked to in so many words.

use crate::Error;
use config::engine::Engine;
use link::{Stream, tls};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long a client may take to show its certificate.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// A door for clients on other machines.
pub struct Remote {
    listener: tokio::net::TcpListener,
    acceptor: Option<tls::Acceptor>,
}

/// A client that has come and has not been let in yet.
pub(crate) struct Knock {
    stream: TcpStream,
    acceptor: Option<tls::Acceptor>,
}

impl Remote {
    /// Opens the door that the settings ask for, if they do. Must be called inside the runtime.
    pub(crate) fn open(config: &Engine) -> Result<Option<Self>, Error> {
        let Some(address) = config.listen else { return Ok(None) };
        let acceptor = acceptor(config, address)?;
        let failed = |error: io::Error| Error::Unfit {
            reason: format!("cannot listen on `tcp://{address}`: {error}"),
            hint: "choose another address or port with the key `listen`".to_owned(),
        };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let listener = tokio::net::TcpListener::from_std(listener).map_err(failed)?;
        tracing::info!(%address, certificates = acceptor.is_some(), "listening for other machines");
        Ok(Some(Self { listener, acceptor }))
    }

    /// The next client.
    pub(crate) async fn accept(&self) -> io::Result<Knock> {
        let (stream, _) = self.listener.accept().await?;
        Ok(Knock { stream, acceptor: self.acceptor.clone() })
    }
}

impl Knock {
    /// Looks at the client's certificate and lets it in.
    pub(crate) async fn let_in(self) -> io::Result<Stream> {
        self.stream.set_nodelay(true)?;
        match self.acceptor {
            None => Ok(Stream::Tcp(self.stream)),
            Some(acceptor) => timeout(HANDSHAKE_TIME, acceptor.accept(self.stream)).await?,
        }
    }
}

/// The engine's side of TLS; none where the settings do without and may.
fn acceptor(config: &Engine, address: SocketAddr) -> Result<Option<tls::Acceptor>, Error> {
    let given = (&config.tls_client_ca, &config.tls_cert, &config.tls_key);
    if let (Some(authorities), Some(certificate), Some(key)) = given {
        let files = tls::Files {
            authorities: authorities.clone(),
            certificate: certificate.clone(),
            key: key.clone(),
        };
        let made = tls::Acceptor::new(&files).map_err(|error| Error::part("listen")(&error))?;
        return Ok(Some(made));
    }
    if config.listen_plain && address.ip().is_loopback() && given == (&None, &None, &None) {
        return Ok(None);
    }
    let hint = match address.ip().is_loopback() {
        true => "set `tls-cert`, `tls-key` and `tls-client-ca`, or `listen-plain = true`",
        false => "set `tls-cert`, `tls-key` and `tls-client-ca`",
    };
    Err(Error::Unfit {
        reason: format!("listening on `tcp://{address}` needs certificates of both sides"),
        hint: hint.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> Option<String> {
        let config = config::engine::parse(text).unwrap();
        let address = config.listen.unwrap();
        let error = acceptor(&config, address).err()?;
        Some(error.hint().unwrap_or_default().to_owned())
    }

    #[test]
    fn without_certificates_only_loopback_and_only_when_asked() {
        for (text, hint) in [
            ("listen = \"tcp://127.0.0.1:1\"\nlisten-plain = true", None),
            ("listen = \"tcp://[::1]:1\"\nlisten-plain = true", None),
            ("listen = \"tcp://127.0.0.1:1\"", Some("or `listen-plain = true`")),
            ("listen = \"tcp://0.0.0.0:1\"\nlisten-plain = true", Some("`tls-client-ca`")),
            ("listen = \"tcp://[::]:1\"\nlisten-plain = true", Some("`tls-client-ca`")),
            ("listen = \"tcp://10.0.0.1:1\"", Some("`tls-client-ca`")),
            (
                "listen = \"tcp://127.0.0.1:1\"\nlisten-plain = true\ntls-cert = \"/c\"",
                Some("`tls-client-ca`"),
            ),
        ] {
            match (refused(text), hint) {
                (None, None) => {}
                (Some(found), Some(hint)) => assert!(found.contains(hint), "{text}: {found}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }
}
