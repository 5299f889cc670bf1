//! Connects a new container to the engine's network, from inside the container.
//!
//! The container's process is cloned in the engine's network namespace and leaves it for one of its own.
//! It keeps a socket to the first, so it can plug itself in: nobody else waits for the kernel's locks.

use super::link::{self, End, Place};
use super::message::{Batch, Socket};
use crate::sys;
use rustix::io::Errno;
use rustix::thread::UnshareFlags;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// Indexes of links below this are the kernel's to choose.
const FIRST_INDEX: u32 = 1 << 20;
/// The index of a container's own link.
const OWN_INDEX: u32 = 2;
/// The number of a container's first process, as it sees itself.
const OURSELVES: u32 = 1;

/// What a container must know of the engine's network to plug itself in.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Outlet {
    pub(crate) first: Ipv4Addr,
    pub(crate) places: u32,
    pub(crate) gateway: Ipv4Addr,
    pub(crate) mtu: u32,
}

/// Leaves this network namespace, which must be the engine's, for a new one with a link to it.
pub(crate) fn plug(network: &Outlet, place: u32) -> Result<(), Errno> {
    let engine = Socket::open(None)?;
    sys::unshare(UnshareFlags::NEWNET)?;
    let own = Socket::open(None)?;
    let address = Ipv4Addr::from(u32::from(network.first) + place);
    let index = FIRST_INDEX + place;
    let mut outside = Batch::default();
    let near = End { name: &format!("c{place}"), index };
    let far = End { name: "eth0", index: OWN_INDEX };
    link::pair(&mut outside, &near, &far, Place::Process(OURSELVES), network.mtu);
    link::route_to(&mut outside, address, index);
    engine.run(&outside)?;
    // Where the kernel has no IPv6, there is nothing to leave out.
    let mut quiet = Batch::default();
    link::without_ipv6(&mut quiet, OWN_INDEX);
    let _ = own.run(&quiet);
    let mut inside = Batch::default();
    link::bring_up(&mut inside, link::LOOPBACK);
    link::bring_up(&mut inside, OWN_INDEX);
    link::address(&mut inside, OWN_INDEX, address, 32);
    link::default_route(&mut inside, network.gateway, OWN_INDEX);
    own.run(&inside)
}
