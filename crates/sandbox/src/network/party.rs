//! [`Party`]: containers, and the services that they reach.
//!
//! Nobody in the engine's network reaches anybody else, but the members of a party reach what is offered
//! in it, and know it by name. Two sets of the packet filter say who that is: one has the party of
//! each member by its address, the other what is offered, by address and party. A rule looks the
//! first up by who sends and the second by who is to get it, so it takes one look each, however many there are.
//!
//! A container becomes a member before its command begins; one that began when nothing was offered yet is none.

use super::dns::{Asking, Name, Names};
use super::firewall::{self, Change};
use super::inside::{Inside, MEMBERS, OFFERS, TABLE};
use super::link;
use super::message::{Batch, Socket};
use super::opener::connect_within;
use super::subnet::Subnet;
use crate::{Error, Process};
use rustix::io::Errno;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

/// What all parties of a network share.
#[derive(Debug)]
pub(crate) struct Exchange {
    inside: Arc<Inside>,
    subnet: Subnet,
    names: Names,
    parties: AtomicU32,
    rules: Mutex<Rules>,
    stands: Mutex<Stands>,
}

/// The sets of the packet filter, and who is in them.
#[derive(Debug)]
struct Rules {
    socket: Socket,
    /// Who has an address now; an earlier one may not have gone yet.
    members: HashMap<Ipv4Addr, u64>,
    count: u64,
}

/// Addresses of services that are not in containers.
#[derive(Debug)]
struct Stands {
    links: Socket,
    taken: HashSet<u32>,
    next: u32,
}

impl Exchange {
    pub(crate) fn new(inside: Arc<Inside>, subnet: Subnet, names: Names) -> Result<Self, Error> {
        let cannot = Error::host("cannot reach the network of containers");
        let (rules, links) = inside.sockets().map_err(cannot)?;
        let rules = Rules { socket: rules, members: HashMap::new(), count: 0 };
        let stands = Stands { links, taken: HashSet::new(), next: 0 };
        let (rules, stands) = (Mutex::new(rules), Mutex::new(stands));
        Ok(Self { inside, subnet, names, parties: AtomicU32::new(1), rules, stands })
    }

    /// A party that nobody is in.
    pub(crate) fn party(self: &Arc<Self>) -> Party {
        let number = self.parties.fetch_add(1, Ordering::Relaxed);
        Party(Arc::new(Inner { number, exchange: self.clone(), offers: AtomicUsize::new(0) }))
    }

    /// The address of the container at a place.
    pub(crate) fn address(&self, place: u32) -> Ipv4Addr {
        self.subnet.container(place)
    }
}

/// Containers and services that belong together. Clones are the same party.
#[derive(Clone)]
pub struct Party(Arc<Inner>);

struct Inner {
    number: u32,
    exchange: Arc<Exchange>,
    /// How much is offered.
    offers: AtomicUsize,
}

impl fmt::Debug for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Party({})", self.0.number)
    }
}

impl Party {
    /// Whether anything is offered, so that it matters who is a member.
    pub fn offers_anything(&self) -> bool {
        self.0.offers.load(Ordering::Acquire) > 0
    }

    /// Makes an address a member, with names that only it knows.
    pub(crate) fn join(
        &self,
        address: Ipv4Addr,
        aliases: &[(String, Ipv4Addr)],
    ) -> Result<Member, Error> {
        let exchange = &self.0.exchange;
        let mut rules = exchange.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.count += 1;
        let number = rules.count;
        let (key, value) = (address.octets(), self.0.number.to_ne_bytes());
        let mut changes = Vec::with_capacity(2);
        if rules.members.contains_key(&address) {
            changes.push(Change::Remove(MEMBERS, &key));
        }
        changes.push(Change::Add(MEMBERS, &key, Some(&value)));
        firewall::change(&rules.socket, TABLE, &changes).map_err(not_changed)?;
        rules.members.insert(address, number);
        drop(rules);
        let asking = exchange.names.admit(address, self.0.number, aliases);
        Ok(Member { exchange: exchange.clone(), address, number, _asking: asking })
    }

    /// Offers an address to the members, under these names.
    pub fn offer(&self, names: &[&str], address: Ipv4Addr) -> Result<Offer, Error> {
        let exchange = &self.0.exchange;
        let key = self.key(address);
        let rules = exchange.rules.lock().unwrap_or_else(PoisonError::into_inner);
        let change = [Change::Add(OFFERS, &key, None)];
        firewall::change(&rules.socket, TABLE, &change).map_err(not_changed)?;
        drop(rules);
        self.0.offers.fetch_add(1, Ordering::AcqRel);
        let publish = |name: &&str| exchange.names.publish(self.0.number, name, address);
        Ok(Offer { party: self.clone(), address, _names: names.iter().map(publish).collect() })
    }

    /// An address of our own to offer, for what is not in a container.
    pub fn stand(&self) -> Result<Stand, Error> {
        let exchange = &self.0.exchange;
        let mut stands = exchange.stands.lock().unwrap_or_else(PoisonError::into_inner);
        let count = exchange.subnet.stands();
        let free = (0..count).map(|step| (stands.next + step) % count);
        let Some(number) = free.into_iter().find(|number| !stands.taken.contains(number)) else {
            return Err(Error::network("no address is left for another service"));
        };
        let address = exchange.subnet.stand(number);
        let mut batch = Batch::default();
        link::address(&mut batch, link::LOOPBACK, address, 32);
        stands.links.run(&batch).map_err(not_changed)?;
        stands.taken.insert(number);
        stands.next = (number + 1) % count;
        Ok(Stand { exchange: exchange.clone(), number, address })
    }

    /// Connects to a service, from the engine itself.
    pub async fn connect(&self, address: SocketAddrV4) -> io::Result<TcpStream> {
        let stream = self.0.exchange.inside.opener.connect(address).await?;
        // Questions and answers are short; waiting for more would slow every one of them down.
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Connects to a service in a container as somebody in it would, on its loopback; if nobody listens there,
    /// at its address.
    pub async fn connect_within(
        &self,
        process: &Process,
        address: SocketAddrV4,
    ) -> io::Result<TcpStream> {
        match connect_within(process.0.clone(), address.port()).await {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                Ok(stream)
            }
            Err(_) => self.connect(address).await,
        }
    }

    /// Sends packets to a service, from the engine itself.
    pub async fn connect_udp(&self, address: SocketAddrV4) -> io::Result<UdpSocket> {
        self.0.exchange.inside.opener.connect_udp(address).await
    }

    fn key(&self, address: Ipv4Addr) -> [u8; 8] {
        let mut key = [0; 8];
        key[..4].copy_from_slice(&address.octets());
        key[4..].copy_from_slice(&self.0.number.to_ne_bytes());
        key
    }
}

/// A container that is a member of a party, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Member {
    exchange: Arc<Exchange>,
    address: Ipv4Addr,
    number: u64,
    _asking: Asking,
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut rules = self.exchange.rules.lock().unwrap_or_else(PoisonError::into_inner);
        if rules.members.get(&self.address) != Some(&self.number) {
            return;
        }
        rules.members.remove(&self.address);
        let change = [Change::Remove(MEMBERS, &self.address.octets())];
        told(firewall::change(&rules.socket, TABLE, &change));
    }
}

/// Something that is offered to a party, for as long as this lives.
#[derive(Debug)]
pub struct Offer {
    party: Party,
    address: Ipv4Addr,
    _names: Vec<Name>,
}

impl Drop for Offer {
    fn drop(&mut self) {
        let inner = &self.party.0;
        inner.offers.fetch_sub(1, Ordering::AcqRel);
        let rules = inner.exchange.rules.lock().unwrap_or_else(PoisonError::into_inner);
        let key = self.party.key(self.address);
        told(firewall::change(&rules.socket, TABLE, &[Change::Remove(OFFERS, &key)]));
    }
}

/// An address of the engine's own in the network of containers, for as long as this lives.
#[derive(Debug)]
pub struct Stand {
    exchange: Arc<Exchange>,
    number: u32,
    address: Ipv4Addr,
}

impl Stand {
    /// The address.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Takes connections there.
    pub async fn listen(&self, port: u16) -> io::Result<TcpListener> {
        self.exchange.inside.opener.listen(SocketAddrV4::new(self.address, port)).await
    }

    /// Takes packets there.
    pub async fn bind(&self, port: u16) -> io::Result<UdpSocket> {
        self.exchange.inside.opener.bind(SocketAddrV4::new(self.address, port)).await
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        let mut stands = self.exchange.stands.lock().unwrap_or_else(PoisonError::into_inner);
        let mut batch = Batch::default();
        link::without_address(&mut batch, link::LOOPBACK, self.address, 32);
        told(stands.links.run(&batch));
        stands.taken.remove(&self.number);
    }
}

fn not_changed(error: Errno) -> Error {
    Error::Host { action: "cannot change the network of containers", source: error.into() }
}

/// What is to go may be gone already.
fn told(removed: Result<(), Errno>) {
    match removed {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => tracing::warn!("cannot change the network of containers: {error}"),
    }
}
