//! Whether the host passes packets on, found out by having it pass one on.
//!
//! A firewall of the host, such as Docker's, may drop whatever it does not know, and no rule of ours can
//! undo that. Only who finds such rules at all sends a packet from the engine's network through the
//! host to a third one, made for the purpose.

use super::firewall;
use super::forwarding;
use super::inside::Inside;
use super::link::{self, End, Place};
use super::message::{Batch, Socket};
use super::subnet::Subnet;
use crate::sys;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::thread::UnshareFlags;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// Where the kernel lists tables of the older packet filter, if it has any.
const OLD_TABLES: &str = "/proc/net/ip_tables_names";
const FAR_NAME: &str = "probe0";
const PORT: u16 = 9;
/// A packet between two links of one machine takes microseconds.
const WAIT: Duration = Duration::from_millis(100);
/// A first packet may get lost while the ends are looking for each other.
const TRIES: usize = 5;

/// Whether packets are held up on their way through the host. Who cannot find out takes it that
/// they are not: the link is there and the rules are set.
pub(crate) fn is_blocked(inside: &Inside, subnet: &Subnet, mtu: u32) -> bool {
    if !may_be_blocked() {
        return false;
    }
    match passes(inside, subnet, mtu) {
        Ok(passes) => !passes,
        Err(error) => {
            tracing::warn!(%error, "cannot find out whether the host passes packets on");
            false
        }
    }
}

/// Whether anybody looks at packets that are passed on.
fn may_be_blocked() -> bool {
    let old = std::fs::read_to_string(OLD_TABLES).is_ok_and(|names| !names.trim().is_empty());
    old || firewall::open().and_then(|socket| firewall::filters_forwarding(&socket)).unwrap_or(true)
}

fn passes(inside: &Inside, subnet: &Subnet, mtu: u32) -> io::Result<bool> {
    let (host, far) = subnet.probe();
    let third = std::thread::scope(|scope| {
        let maker = std::thread::Builder::new().name("probe".to_owned());
        let made = maker.spawn_scoped(scope, listener)?.join();
        made.map_err(|_| io::Error::other("the thread that makes it panicked"))?
    })?;
    let links = Socket::open(None)?;
    let pair = Pair::make(&links, &third, (host, far), mtu)?;
    let sent = send_from(inside, far)?;
    let mut buffer = [0; 16];
    for _ in 0..TRIES {
        sent.send(b"probe")?;
        if third.socket.recv(&mut buffer).is_ok() {
            return Ok(true);
        }
    }
    drop(pair);
    Ok(false)
}

/// A third network.
struct Third {
    namespace: OwnedFd,
    links: Socket,
    socket: UdpSocket,
}

fn listener() -> io::Result<Third> {
    sys::unshare(UnshareFlags::NEWNET)?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let namespace = rustix::fs::openat(CWD, "/proc/thread-self/ns/net", flags, Mode::empty())?;
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT))?;
    socket.set_read_timeout(Some(WAIT))?;
    Ok(Third { namespace, links: Socket::open(None)?, socket })
}

/// The link between the host and the third network; it goes when this is dropped.
struct Pair<'a> {
    links: &'a Socket,
    index: u32,
}

impl<'a> Pair<'a> {
    fn make(
        links: &'a Socket,
        third: &Third,
        (host, far): (Ipv4Addr, Ipv4Addr),
        mtu: u32,
    ) -> io::Result<Pair<'a>> {
        let name = link::new_name();
        let mut batch = Batch::default();
        let near = End { name: &name, index: 0 };
        let end = End { name: FAR_NAME, index: 0 };
        link::pair(&mut batch, &near, &end, Place::Namespace(third.namespace.as_fd()), mtu);
        links.run(&batch)?;
        let pair = Pair { links, index: link::find(links, &name)?.index };
        let mut batch = Batch::default();
        link::address(&mut batch, pair.index, host, 30);
        links.run(&batch)?;
        let index = link::find(&third.links, FAR_NAME)?.index;
        let mut batch = Batch::default();
        link::bring_up(&mut batch, index);
        link::address(&mut batch, index, far, 30);
        link::default_route(&mut batch, host, index);
        third.links.run(&batch)?;
        forwarding::allow(&name)?;
        Ok(pair)
    }
}

impl Drop for Pair<'_> {
    fn drop(&mut self) {
        match link::remove(self.links, self.index) {
            Ok(()) | Err(Errno::NODEV) => {}
            Err(error) => tracing::warn!("cannot remove the link of the probe: {error}"),
        }
    }
}

/// A socket in the engine's network that sends to the third one.
fn send_from(inside: &Inside, far: Ipv4Addr) -> io::Result<UdpSocket> {
    std::thread::scope(|scope| {
        let sender = std::thread::Builder::new().name("probe".to_owned());
        let made = sender.spawn_scoped(scope, || {
            sys::enter_network(inside.namespace())?;
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
            socket.connect((far, PORT))?;
            Ok(socket)
        })?;
        made.join().map_err(|_| io::Error::other("the thread that makes it panicked"))?
    })
}
