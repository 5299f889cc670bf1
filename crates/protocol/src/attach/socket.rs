//! Sockets that the client's machine listens on, as streams of bytes.
//!
//! One request is one connection. Its body is what is written to the socket and the body of the answer
//! what is read from it; either side ends by itself, as the sides of a socket do. The head travels in
//! a header, because the body is the stream. An answer with an error means that there is no connection.

use super::ascii_json;
use serde::{Deserialize, Serialize};

/// A socket of the client's machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SocketAddress {
    /// A unix socket by its path: absolute, or relative to the client's working directory, or
    /// beginning with `~`.
    Unix(String),
    /// A TCP port, as the client's machine reaches it: host and port.
    Tcp(String, u16),
    /// A UDP port in the same way. Each packet on the stream has its length before it.
    Udp(String, u16),
}

impl SocketAddress {
    /// The value of [`super::SOCKET_HEADER`].
    pub fn to_header(&self) -> String {
        ascii_json(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_header_is_ascii_and_reads_back() {
        let addresses = [
            SocketAddress::Unix("~/\u{e4}\"\n.sock".into()),
            SocketAddress::Tcp("localhost".into(), 5432),
            SocketAddress::Udp("localhost".into(), 53),
        ];
        for address in addresses {
            let header = address.to_header();
            assert!(header.is_ascii(), "{header}");
            assert_eq!(serde_json::from_str::<SocketAddress>(&header).unwrap(), address);
        }
    }
}
