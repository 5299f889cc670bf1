//! The network of containers.
//!
//! ```text
//!   container --- eth0 ... c<n> --+
//!   container --- eth0 ... c<n> --+-- the engine's network -- up0 ... ci-tool-<x> -- the host
//!                                      names, rules                     or `pasta`
//! ```
//!
//! All containers hang on one network namespace of the engine's (`inside`), each by a link of its own. That
//! network routes: it has an address that every container sends everything to, and decides by
//! its own rules what goes where, so no container ever speaks to another's link. A bridge would
//! have to be taught not to carry what containers forge. With the host it has one link (`uplink`), whose
//! packets the host passes on; where it may not or will not, the program `pasta` carries them.
//!
//! Everything in the host's network goes when the engine does, also when it is killed: the link's other end is
//! in a namespace that dies with us, the rule belongs to a socket of ours, and the one setting that
//! belongs to nobody is the guard's to put back (`guard`, `forwarding`).
//!
//! Containers are plugged in by themselves, before they are needed (`plug`). Which of them reach which
//! services is told by `party`.

mod dns;
mod firewall;
mod forwarding;
mod guard;
mod inside;
mod link;
mod message;
mod opener;
mod party;
mod pasta;
mod plug;
mod probe;
mod routes;
mod subnet;
mod uplink;

pub(crate) use dns::{DOMAIN, RESOLVER_SETTINGS, parse_resolvers};
pub use guard::{Guard, guard_main};
pub(crate) use party::{Exchange, Member};
pub use party::{Offer, Party, Stand};
pub(crate) use plug::{Outlet, plug};
pub use subnet::Subnet;
pub use uplink::Uplink;

use crate::Error;
use crate::sys::watched;
use dns::{Names, Resolvers, Responder};
use inside::{Inside, UPLINK};
use std::net::Ipv4Addr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::JoinHandle;

/// How long is waited before `pasta` is started again.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// The engine's network. It goes when this is dropped and nobody is in it any more.
#[derive(Debug)]
pub struct Bridge {
    inside: Arc<Inside>,
    uplink: Uplink,
    subnet: Subnet,
    mtu: u32,
    names: Names,
    exchange: Arc<Exchange>,
    guard: Arc<Guard>,
    responder: Option<Responder>,
    watcher: Option<JoinHandle<()>>,
}

impl Bridge {
    /// Makes the network and its way out. Blocks. A subnet that is named must be free; else one is found.
    pub fn open(subnet: Option<Subnet>, guard: Guard) -> Result<Bridge, Error> {
        let connected = uplink::connect(subnet, &guard)?;
        tracing::info!(subnet = %connected.subnet, mtu = connected.mtu, "the network is up");
        let (inside, names) = (Arc::new(connected.inside), Names::default());
        let exchange = Exchange::new(inside.clone(), connected.subnet, names.clone())?;
        Ok(Bridge {
            inside,
            uplink: connected.uplink,
            subnet: connected.subnet,
            mtu: connected.mtu,
            names,
            exchange: Arc::new(exchange),
            guard: Arc::new(guard),
            responder: None,
            watcher: None,
        })
    }

    /// Who reaches whom.
    pub(crate) fn exchange(&self) -> &Arc<Exchange> {
        &self.exchange
    }

    /// How containers reach the outside.
    pub fn uplink(&self) -> &Uplink {
        &self.uplink
    }

    /// Where containers ask for names.
    pub(crate) fn gateway(&self) -> Ipv4Addr {
        self.subnet.gateway()
    }

    /// The namespace that containers are made in.
    pub(crate) fn namespace(&self) -> BorrowedFd<'_> {
        self.inside.namespace()
    }

    /// What containers plug themselves into.
    pub(crate) fn outlet(&self) -> Outlet {
        Outlet {
            first: self.subnet.container(0),
            places: self.subnet.places(),
            gateway: self.subnet.gateway(),
            mtu: self.mtu,
        }
    }

    /// Begins to answer names, and to watch over the way out. Must be called inside a tokio runtime.
    pub(crate) fn serve(&mut self) -> Result<(), Error> {
        let cannot = Error::host("cannot answer names");
        let short = self.inside.questions.try_clone().map_err(&cannot)?;
        let long = self.inside.long_questions.try_clone().map_err(&cannot)?;
        let resolvers = Resolvers::of(RESOLVER_SETTINGS);
        let responder = Responder::start(short, long, self.names.clone(), resolvers);
        self.responder = Some(responder.map_err(cannot)?);
        if matches!(self.uplink, Uplink::Pasta)
            && let Some(socket) = self.guard.watchable()
        {
            let watching = watched(socket, Interest::READABLE);
            let watching = watching.map_err(Error::host("cannot watch the guard"))?;
            let keep = keep_connected(watching, self.guard.clone(), self.inside.clone());
            self.watcher = Some(tokio::spawn(keep));
        }
        Ok(())
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        if let Some(watcher) = &self.watcher {
            watcher.abort();
        }
    }
}

/// Starts `pasta` again when it has ended.
async fn keep_connected(socket: AsyncFd<OwnedFd>, guard: Arc<Guard>, inside: Arc<Inside>) {
    while let Ok(mut ready) = socket.readable().await {
        match guard.ended() {
            Ok(None) => ready.clear_ready(),
            Ok(Some(words)) => {
                tracing::error!(words, "`pasta` has ended; it is started again");
                while !connect_again(&guard, &inside).await {}
            }
            Err(_) => return tracing::error!("the network's guard is gone"),
        }
    }
}

async fn connect_again(guard: &Arc<Guard>, inside: &Arc<Inside>) -> bool {
    tokio::time::sleep(RESTART_PAUSE).await;
    let (guard, inside) = (guard.clone(), inside.clone());
    let start = move || pasta::connect(&guard, inside.namespace(), &inside.links, UPLINK);
    match tokio::task::spawn_blocking(start).await {
        Ok(Ok(())) => return true,
        Ok(Err(error)) => tracing::error!(%error, "containers are cut off"),
        Err(error) => tracing::error!(%error, "containers are cut off"),
    }
    false
}
