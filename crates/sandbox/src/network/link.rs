//! Links, addresses and routes of IPv4, as messages to the kernel.

use super::message::{Attributes, Batch, CREATE, EXCLUSIVE, Socket, attributes};
use rustix::io::Errno;
use std::hash::{BuildHasher, RandomState};
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd};

const NEW_LINK: u16 = 16;
const DELETE_LINK: u16 = 17;
const GET_LINK: u16 = 18;
const NEW_ADDRESS: u16 = 20;
const DELETE_ADDRESS: u16 = 21;
const NEW_ROUTE: u16 = 24;

const LINK_NAME: u16 = 3;
const LINK_MTU: u16 = 4;
const LINK_INFO: u16 = 18;
const LINK_NAMESPACE_OF_PROCESS: u16 = 19;
const LINK_FAMILIES: u16 = 26;
const LINK_NAMESPACE: u16 = 28;
const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;
const VETH_PEER: u16 = 1;
const INET6_ADDRESSES_BY: u16 = 8;
const INET6_NO_ADDRESSES: u8 = 1;

const UP: u32 = 1;
const IPV4: u8 = 2;
const IPV6: u8 = 10;
const MAIN_TABLE: u8 = 254;
const STATIC: u8 = 4;
const UNICAST: u8 = 1;
const UNREACHABLE: u8 = 7;
const EVERYWHERE: u8 = 0;
const THIS_LINK: u8 = 253;
/// The gateway is reached over the link, whatever the addresses say.
const ON_LINK: u32 = 4;

/// The loopback's index in every namespace.
pub(crate) const LOOPBACK: u32 = 1;

/// One end of a pair of links.
pub(crate) struct End<'a> {
    pub(crate) name: &'a str,
    /// Its index; zero lets the kernel choose.
    pub(crate) index: u32,
}

/// Whose network namespace the far end of a pair goes to.
#[derive(Clone, Copy)]
pub(crate) enum Place<'a> {
    /// The one behind a descriptor.
    Namespace(BorrowedFd<'a>),
    /// That of a process, by its number.
    Process(u32),
}

/// What is known of a link.
#[derive(Debug, PartialEq)]
pub(crate) struct Link {
    pub(crate) index: u32,
    pub(crate) up: bool,
    pub(crate) mtu: u32,
}

/// Makes a pair of links, the near end here and up. The far end cannot be brought up before the pair is there.
pub(crate) fn pair(batch: &mut Batch, near: &End<'_>, far: &End<'_>, place: Place<'_>, mtu: u32) {
    batch.add(NEW_LINK, CREATE | EXCLUSIVE, &link_header(near.index, true), |link| {
        link.text(LINK_NAME, near.name);
        link.number(LINK_MTU, mtu);
        link.nest(LINK_INFO, |info| {
            info.text(INFO_KIND, "veth");
            info.nest(INFO_DATA, |data| {
                data.nest(VETH_PEER, |peer| {
                    peer.raw(&link_header(far.index, false));
                    peer.text(LINK_NAME, far.name);
                    peer.number(LINK_MTU, mtu);
                    put_place(peer, place);
                });
            });
        });
    });
}

fn put_place(peer: &mut Attributes<'_>, place: Place<'_>) {
    match place {
        Place::Namespace(descriptor) => peer.number(LINK_NAMESPACE, descriptor.as_raw_fd() as u32),
        Place::Process(pid) => peer.number(LINK_NAMESPACE_OF_PROCESS, pid),
    }
}

/// Brings a link up.
pub(crate) fn bring_up(batch: &mut Batch, index: u32) {
    batch.add(NEW_LINK, 0, &link_header(index, true), |_| {});
}

/// Has a link get no address of IPv6 by itself when it comes up.
pub(crate) fn without_ipv6(batch: &mut Batch, index: u32) {
    batch.add(NEW_LINK, 0, &link_header(index, false), |link| {
        link.nest(LINK_FAMILIES, |families| {
            families.nest(u16::from(IPV6), |family| {
                family.bytes(INET6_ADDRESSES_BY, &[INET6_NO_ADDRESSES]);
            });
        });
    });
}

/// Gives a link an address.
pub(crate) fn address(batch: &mut Batch, index: u32, address: Ipv4Addr, prefix: u8) {
    let mut header = vec![IPV4, prefix, 0, EVERYWHERE];
    header.extend_from_slice(&index.to_ne_bytes());
    batch.add(NEW_ADDRESS, CREATE | EXCLUSIVE, &header, |attributes| {
        attributes.bytes(1, &address.octets());
        attributes.bytes(2, &address.octets());
    });
}

/// Takes an address from a link.
pub(crate) fn without_address(batch: &mut Batch, index: u32, address: Ipv4Addr, prefix: u8) {
    let mut header = vec![IPV4, prefix, 0, EVERYWHERE];
    header.extend_from_slice(&index.to_ne_bytes());
    batch.add(DELETE_ADDRESS, 0, &header, |attributes| attributes.bytes(2, &address.octets()));
}

/// Sends what is for one address over a link.
pub(crate) fn route_to(batch: &mut Batch, address: Ipv4Addr, index: u32) {
    let header = route_header(32, THIS_LINK, 0);
    batch.add(NEW_ROUTE, CREATE | EXCLUSIVE, &header, |route| {
        route.bytes(1, &address.octets());
        route.number(4, index);
    });
}

/// Sends what is for one address to a gateway at the other end of a link.
pub(crate) fn route_through(batch: &mut Batch, address: Ipv4Addr, gateway: Ipv4Addr, index: u32) {
    let header = route_header(32, EVERYWHERE, ON_LINK);
    batch.add(NEW_ROUTE, CREATE | EXCLUSIVE, &header, |route| {
        route.bytes(1, &address.octets());
        route.number(4, index);
        route.bytes(5, &gateway.octets());
    });
}

/// Refuses what is for an address of this range and has no way of its own.
pub(crate) fn unreachable(batch: &mut Batch, first: Ipv4Addr, prefix: u8) {
    let mut header = route_header(prefix, EVERYWHERE, 0);
    header[7] = UNREACHABLE;
    batch.add(NEW_ROUTE, CREATE | EXCLUSIVE, &header, |route| route.bytes(1, &first.octets()));
}

/// Sends everything else to a gateway at the other end of a link.
pub(crate) fn default_route(batch: &mut Batch, gateway: Ipv4Addr, index: u32) {
    let header = route_header(0, EVERYWHERE, ON_LINK);
    batch.add(NEW_ROUTE, CREATE | EXCLUSIVE, &header, |route| {
        route.number(4, index);
        route.bytes(5, &gateway.octets());
    });
}

/// A name for a link in the host's network that no other engine's has, nor one that has not quite gone yet.
pub(crate) fn new_name() -> String {
    let random = RandomState::new().hash_one(std::process::id());
    format!("ci-tool-{:06x}", random & 0xff_ffff)
}

/// Looks a link up by its name.
pub(crate) fn find(socket: &Socket, name: &str) -> Result<Link, Errno> {
    let answers =
        socket.ask(GET_LINK, false, &link_header(0, false), |link| link.text(LINK_NAME, name))?;
    answers.first().and_then(|answer| read(answer)).ok_or(Errno::NODEV)
}

/// Removes a link, and the other end with it.
pub(crate) fn remove(socket: &Socket, index: u32) -> Result<(), Errno> {
    let mut batch = Batch::default();
    batch.add(DELETE_LINK, 0, &link_header(index, false), |_| {});
    socket.run(&batch)
}

fn read(answer: &[u8]) -> Option<Link> {
    let number = |bytes: &[u8]| bytes.get(..4)?.try_into().ok().map(u32::from_ne_bytes);
    let (index, flags) = (number(answer.get(4..)?)?, number(answer.get(8..)?)?);
    let mtu = attributes(answer.get(16..)?).find(|(kind, _)| *kind == LINK_MTU)?.1;
    Some(Link { index, up: flags & UP != 0, mtu: number(mtu)? })
}

fn link_header(index: u32, up: bool) -> [u8; 16] {
    let mut header = [0; 16];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    if up {
        header[8..12].copy_from_slice(&UP.to_ne_bytes());
        header[12..].copy_from_slice(&UP.to_ne_bytes());
    }
    header
}

fn route_header(prefix: u8, scope: u8, flags: u32) -> [u8; 12] {
    let mut header = [0; 12];
    header[..8].copy_from_slice(&[IPV4, prefix, 0, 0, MAIN_TABLE, STATIC, scope, UNICAST]);
    header[8..].copy_from_slice(&flags.to_ne_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_has_its_index() {
        let socket = Socket::open(None).unwrap();
        let loopback = find(&socket, "lo").unwrap();
        assert_eq!(loopback.index, LOOPBACK);
        assert!(loopback.mtu >= 1500, "{loopback:?}");
        assert_eq!(find(&socket, "no-such-link"), Err(Errno::NODEV));
    }
}
