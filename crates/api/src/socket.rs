//! `Socket`: a socket of the client's machine, for commands that are given it.
//!
//! The value is an address. Who connects, and when, is `container/sockets.rs`; the bytes travel through
//! the client, so the engine may be on another machine. It belongs to the session that brought it.

use crate::host::HostObject;
use graph::{Args, Builder, Context, Object, Op, Scope};
use protocol::Error;
use protocol::attach::SocketAddress;

pub(crate) fn install(builder: &mut Builder) {
    builder.install::<UnixSocket>();
}

/// A socket of the client's machine.
pub(crate) struct Socket {
    address: SocketAddress,
}

impl Socket {
    /// The socket at an address as users write it: a path, `unix://path` or `tcp://host:port`.
    pub(crate) fn at(text: &str) -> Result<Self, Error> {
        if let Some(rest) = text.strip_prefix("tcp://") {
            let port = rest.rsplit_once(':').and_then(|(host, port)| {
                let port = port.parse().ok().filter(|port: &u16| *port > 0)?;
                let host = host.trim_start_matches('[').trim_end_matches(']');
                (!host.is_empty()).then(|| SocketAddress::Tcp(host.to_owned(), port))
            });
            let refused =
                || Error::user(format!("socket `{text}` is not of the form tcp://host:port"));
            return Ok(Self { address: port.ok_or_else(refused)? });
        }
        let path = text.strip_prefix("unix://").unwrap_or(text);
        if path.is_empty() || path.contains('\0') {
            return Err(Error::user(format!("`{text}` is no path of a socket")));
        }
        Ok(Self { address: SocketAddress::Unix(path.to_owned()) })
    }

    /// Where it is, as the client knows it.
    pub(crate) fn address(&self) -> &SocketAddress {
        &self.address
    }
}

impl Object for Socket {
    const TYPE: &'static str = "Socket";
}

/// A unix socket of your machine, for `withUnixSocket`.
#[derive(Args)]
struct UnixSocket {
    /// Its path. With `tcp://host:port` it is a port that your machine reaches.
    path: String,
}

impl Op for UnixSocket {
    type Parent = HostObject;
    type Output = Socket;
    const NAME: &'static str = "unixSocket";
    const SCOPE: Scope = Scope::Session;

    async fn run(&self, _: &HostObject, _: &Context) -> Result<Socket, Error> {
        Socket::at(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_paths_or_ports() {
        let unix = |path: &str| SocketAddress::Unix(path.into());
        let tcp = |host: &str, port| SocketAddress::Tcp(host.into(), port);
        for (text, expect) in [
            ("/run/a.sock", unix("/run/a.sock")),
            ("unix:///run/a.sock", unix("/run/a.sock")),
            ("unix://~/a.sock", unix("~/a.sock")),
            ("a.sock", unix("a.sock")),
            ("tcp://localhost:5432", tcp("localhost", 5432)),
            ("tcp://[::1]:80", tcp("::1", 80)),
        ] {
            assert_eq!(*Socket::at(text).unwrap().address(), expect, "{text}");
        }
        for text in ["", "unix://", "tcp://localhost", "tcp://:80", "tcp://a:0", "a\0b"] {
            assert!(Socket::at(text).is_err(), "{text:?}");
        }
    }
}
