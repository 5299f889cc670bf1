//! [`Forward`]: a port of the engine's machine that leads into the network of containers.
//!
//! It has an address of the loopback for itself, so that it can have the very port that it leads to: who
//! is told a name and a port needs to be told of no other. Where that port is not ours to take, it has another.

use protocol::Error;
use sandbox::network::Party;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

/// How long to wait when no connection can be taken, e.g. because no descriptor is free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A port on the loopback, for as long as this lives. Connections that are open end with it.
pub(crate) struct Forward {
    address: SocketAddr,
    accepting: AbortHandle,
}

impl Forward {
    pub(super) async fn to(party: Party, target: SocketAddrV4) -> Result<Self, Error> {
        let failed = |error| Error::environment(format!("cannot listen on the loopback: {error}"));
        let mut bytes = [0; 3];
        getrandom::fill(&mut bytes)
            .map_err(|error| Error::environment(format!("no random bytes: {error}")))?;
        // The first and the last are used by others.
        let own = Ipv4Addr::new(127, bytes[0] | 1, bytes[1], bytes[2].clamp(1, 254));
        let listener = match TcpListener::bind((own, target.port())).await {
            Ok(listener) => listener,
            Err(_) => TcpListener::bind((own, 0)).await.map_err(failed)?,
        };
        let address = listener.local_addr().map_err(failed)?;
        let accepting = tokio::spawn(accept(listener, party, target)).abort_handle();
        Ok(Self { address, accepting })
    }

    /// Where to connect to.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, party: Party, target: SocketAddrV4) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(join(stream, party.clone(), target));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot take a connection to a service");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
}

/// Passes bytes both ways until both sides have ended.
async fn join(mut stream: TcpStream, party: Party, target: SocketAddrV4) {
    match party.connect(target).await {
        // A side that breaks off ends the other, which is all that can be told.
        Ok(mut service) => {
            let _ = tokio::io::copy_bidirectional(&mut stream, &mut service).await;
        }
        Err(error) => tracing::debug!(%error, %target, "a service takes no connection"),
    }
}
