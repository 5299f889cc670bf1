//! [`Uplink`]: how the engine's network reaches the outside.

use super::firewall::{self, Chain, Point, Step, Table};
use super::forwarding::{self, Turn};
use super::guard::Guard;
use super::inside::{Inside, UPLINK};
use super::link::{self, End, Place};
use super::message::{Batch, Socket};
use super::routes::{self, Route};
use super::subnet::Subnet;
use super::{pasta, probe};
use crate::Error;
use rustix::io::Errno;
use std::fs;

/// What links have when nobody says otherwise.
const USUAL_MTU: u32 = 1500;

/// How the engine's network reaches the outside.
#[derive(Debug)]
pub enum Uplink {
    /// By a pair of links to the host, which passes packets on and rewrites their addresses.
    Veth(Veth),
    /// By the program `pasta`, which needs no right in the host's network.
    Pasta,
}

/// What of ours is in the host's network. All of it goes when this is dropped, or with the process.
#[derive(Debug)]
pub struct Veth {
    links: Socket,
    index: u32,
    /// The rules in the host's packet filter are this socket's.
    _rules: Socket,
}

impl Drop for Veth {
    fn drop(&mut self) {
        match link::remove(&self.links, self.index) {
            Ok(()) | Err(Errno::NODEV) => {}
            Err(error) => tracing::warn!("cannot remove the link to the host: {error}"),
        }
    }
}

/// The network and its way out.
pub(crate) struct Connected {
    pub(crate) inside: Inside,
    pub(crate) subnet: Subnet,
    pub(crate) uplink: Uplink,
    /// Largest packet that goes out in one piece.
    pub(crate) mtu: u32,
}

/// Makes the engine's network and connects it: by a pair of links where that is permitted and works, by
/// `pasta` where it is not or does not.
pub(crate) fn connect(wanted: Option<Subnet>, guard: &Guard) -> Result<Connected, Error> {
    let (inside, subnet, refused) = match by_pair(wanted, guard)? {
        Attempt::Connected(connected) => return Ok(connected),
        Attempt::Refused { inside, subnet, reason } => (inside, subnet, reason),
    };
    tracing::info!(reason = refused, "containers reach the network through `pasta`");
    pasta::connect(guard, inside.namespace(), &inside.links, UPLINK)?;
    let mtu = link::find(&inside.links, UPLINK).map_or(USUAL_MTU, |link| link.mtu);
    Ok(Connected { inside, subnet, uplink: Uplink::Pasta, mtu })
}

enum Attempt {
    Connected(Connected),
    Refused { inside: Inside, subnet: Subnet, reason: String },
}

fn by_pair(wanted: Option<Subnet>, guard: &Guard) -> Result<Attempt, Error> {
    // Two engines that look at the same time would find the same range free. Who may not wait here
    // may not change the host's network either.
    let turn = Turn::take();
    let routes = host_routes()?;
    let subnet = choose(wanted, &routes)?;
    let inside = Inside::make(&subnet)?;
    let refused =
        |inside, reason: &str| Ok(Attempt::Refused { inside, subnet, reason: reason.to_owned() });
    let turn = match turn {
        Ok(turn) => turn,
        Err(error) => return refused(inside, &format!("no right in the host's network: {error}")),
    };
    let mtu = mtu_of(&routes);
    let veth = match pair(&inside, &subnet, mtu) {
        Ok(veth) => veth,
        Err(Errno::PERM | Errno::ACCESS) => {
            return refused(inside, "no right in the host's network");
        }
        Err(error) => return refused(inside, &format!("no link to the host: {error}")),
    };
    // From here on the route of the link keeps others out of the range.
    drop(turn);
    guard.forward()?;
    if probe::is_blocked(&inside, &subnet, mtu) {
        drop(veth);
        return refused(inside, "the host's firewall does not pass packets on");
    }
    Ok(Attempt::Connected(Connected { inside, subnet, uplink: Uplink::Veth(veth), mtu }))
}

fn host_routes() -> Result<Vec<Route>, Error> {
    let text = fs::read_to_string(routes::LIST);
    Ok(routes::parse(&text.map_err(Error::host("cannot read the host's routes"))?))
}

fn choose(wanted: Option<Subnet>, routes: &[Route]) -> Result<Subnet, Error> {
    match wanted {
        Some(subnet) if subnet.is_taken(routes) => Err(Error::Network {
            reason: format!("the host has a route into the subnet `{subnet}`"),
            hint: Some("set another `subnet` in engine.toml, or none to have one found".to_owned()),
        }),
        Some(subnet) => Ok(subnet),
        None => Subnet::free(routes).ok_or_else(|| Error::Network {
            reason: "the host has routes into all of `10.0.0.0/8`".to_owned(),
            hint: Some("set a `subnet` in engine.toml".to_owned()),
        }),
    }
}

/// The largest packet that fits every link that the host has a default route over.
fn mtu_of(routes: &[Route]) -> u32 {
    let Ok(links) = Socket::open(None) else { return USUAL_MTU };
    let outward = routes.iter().filter(|route| route.prefix == 0);
    let found = outward.filter_map(|route| link::find(&links, &route.device).ok());
    found.map(|link| link.mtu).min().unwrap_or(USUAL_MTU)
}

/// Makes the pair and the rule in the host's network, and gives the engine's network its way out.
fn pair(inside: &Inside, subnet: &Subnet, mtu: u32) -> Result<Veth, Errno> {
    let (host, engine) = subnet.uplink();
    let name = link::new_name();
    let links = Socket::open(None)?;
    let mut batch = Batch::default();
    let near = End { name: &name, index: 0 };
    let far = End { name: UPLINK, index: 0 };
    link::pair(&mut batch, &near, &far, Place::Namespace(inside.namespace()), mtu);
    links.run(&batch)?;
    let index = link::find(&links, &name)?.index;
    let rules = firewall::open()?;
    let veth = Veth { links, index, _rules: rules };
    let mut batch = Batch::default();
    link::address(&mut batch, index, host, 30);
    veth.links.run(&batch)?;
    let uplink = link::find(&inside.links, UPLINK)?.index;
    let mut batch = Batch::default();
    link::bring_up(&mut batch, uplink);
    link::address(&mut batch, uplink, engine, 30);
    link::default_route(&mut batch, host, uplink);
    // An address of ours that is no container's: the host is asked to pass on what is for it.
    link::route_through(&mut batch, subnet.probe().1, host, uplink);
    inside.links.run(&batch)?;
    forwarding::allow(&name).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    let leaving: &[&[Step<'_>]] = &[&[Step::Source(engine), Step::Masquerade]];
    let chains = [Chain { name: "leaving", point: Point::Leaving, rules: leaving }];
    firewall::install(
        &veth._rules,
        &Table { name: &name, owned: true, sets: &[], chains: &chains },
    )?;
    Ok(veth)
}
