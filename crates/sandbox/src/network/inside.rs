//! The engine's own network namespace: what is in it before anything is connected to it.
//!
//! A thread goes in, opens sockets, and ends. Sockets stay where they were opened, so everything
//! afterwards is done through them from anywhere, and the namespace lives as long as somebody
//! holds its descriptor or is in it.

use super::firewall::{self, Chain, Point, Set, Step, Table};
use super::link;
use super::message::{Batch, Socket};
use super::opener::Opener;
use super::subnet::Subnet;
use crate::{Error, sys};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::thread::UnshareFlags;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

/// What the way out is called in there.
pub(crate) const UPLINK: &str = "up0";
/// The rules in there.
pub(crate) const TABLE: &str = "ci-tool";
/// The set with the party of each member, by its address.
pub(crate) const MEMBERS: &str = "members";
/// The set with what is offered, by address and party.
pub(crate) const OFFERS: &str = "offers";
/// Where names are asked for.
const NAMES_PORT: u16 = 53;
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// The cloud's own address that tells secrets, and whatever else belongs to one link alone.
const LINK_LOCAL: (Ipv4Addr, u8) = (Ipv4Addr::new(169, 254, 0, 0), 16);

/// Settings of the namespace: packets are passed on, but only from where they belong.
const SETTINGS: [(&str, &str); 5] = [
    ("ipv4/ip_forward", "1"),
    ("ipv4/conf/all/rp_filter", "1"),
    ("ipv4/conf/default/rp_filter", "1"),
    ("ipv4/conf/all/send_redirects", "0"),
    ("ipv4/conf/all/accept_redirects", "0"),
];
/// The same where the kernel has IPv6.
const NO_IPV6: [&str; 2] = ["ipv6/conf/all/disable_ipv6", "ipv6/conf/default/disable_ipv6"];

/// The namespace, by what was opened in it.
#[derive(Debug)]
pub(crate) struct Inside {
    namespace: OwnedFd,
    /// Links and routes.
    pub(crate) links: Socket,
    /// Where names are asked for.
    pub(crate) questions: UdpSocket,
    /// The same for long answers.
    pub(crate) long_questions: TcpListener,
    /// Opens further sockets.
    pub(crate) opener: Opener,
    /// For the sets of rules and for addresses that come and go.
    later: Mutex<Option<(Socket, Socket)>>,
}

impl Inside {
    /// Makes the namespace.
    pub(crate) fn make(subnet: &Subnet) -> Result<Inside, Error> {
        let subnet = *subnet;
        let made = std::thread::scope(|scope| {
            let maker = std::thread::Builder::new().name("network".to_owned());
            maker.spawn_scoped(scope, move || fill(&subnet))?.join().map_err(panicked)?
        });
        made.map_err(|error| Error::Network {
            reason: format!("cannot make a network for containers: {error}"),
            hint: Some("do without one: `network = \"none\"` in engine.toml".to_owned()),
        })
    }

    /// Sockets to the packet filter and to the links, for one who changes them later. They are given
    /// away once: an answer to one must not be read by another.
    pub(crate) fn sockets(&self) -> io::Result<(Socket, Socket)> {
        let sockets = self.later.lock().unwrap_or_else(PoisonError::into_inner).take();
        sockets.ok_or_else(|| io::Error::other("the sockets were given away before"))
    }

    /// The namespace itself.
    pub(crate) fn namespace(&self) -> BorrowedFd<'_> {
        self.namespace.as_fd()
    }
}

fn panicked(_: Box<dyn std::any::Any + Send>) -> io::Error {
    io::Error::other("the thread that makes it panicked")
}

fn fill(subnet: &Subnet) -> io::Result<Inside> {
    sys::unshare(UnshareFlags::NEWNET)?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let namespace = rustix::fs::openat(CWD, "/proc/thread-self/ns/net", flags, Mode::empty())?;
    for (name, value) in SETTINGS {
        write_setting(name, value)?;
    }
    for name in NO_IPV6 {
        match write_setting(name, "1") {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            written => written?,
        }
    }
    let links = Socket::open(None)?;
    let mut batch = Batch::default();
    link::bring_up(&mut batch, link::LOOPBACK);
    link::address(&mut batch, link::LOOPBACK, subnet.gateway(), 32);
    // What is for a container that has gone must not go out instead.
    let (first, prefix) = subnet.parts();
    link::unreachable(&mut batch, first, prefix);
    links.run(&batch)?;
    let rules = firewall::open()?;
    install_rules(&rules, subnet)?;
    let questions = UdpSocket::bind((subnet.gateway(), NAMES_PORT))?;
    let long_questions = TcpListener::bind((subnet.gateway(), NAMES_PORT))?;
    questions.set_nonblocking(true)?;
    long_questions.set_nonblocking(true)?;
    let opener = Opener::start(namespace.try_clone()?)?;
    let later = Mutex::new(Some((rules, Socket::open(None)?)));
    Ok(Inside { namespace, links, questions, long_questions, opener, later })
}

/// Settings below this are those of the namespace that the writing thread is in.
fn write_setting(name: &str, value: &str) -> io::Result<()> {
    fs::write(format!("/proc/sys/net/{name}"), value)
}

/// Who may talk to whom: containers ask for names and go out, nobody comes in, no container reaches
/// another, but members of a party reach what is offered in it.
fn install_rules(socket: &Socket, subnet: &Subnet) -> io::Result<()> {
    use Step::{
        Accept, Allowed, Drop, FitSegments, From, Known, Masquerade, Opening, Over, Port, Protocol,
        Reject, To,
    };
    let gateway = || To(subnet.gateway(), 32);
    let (first, prefix) = subnet.parts();
    let input: &[&[Step<'_>]] = &[
        &[Known, Accept],
        &[From("lo"), Accept],
        &[From(UPLINK), Drop],
        &[gateway(), Protocol(UDP), Port(NAMES_PORT), Accept],
        &[gateway(), Protocol(TCP), Port(NAMES_PORT), Accept],
        &[gateway(), Protocol(ICMP), Accept],
        &[Allowed(MEMBERS, OFFERS), Accept],
        &[Reject],
    ];
    let forward: &[&[Step<'_>]] = &[
        &[Protocol(TCP), Opening, FitSegments],
        &[Known, Accept],
        &[From(UPLINK), Drop],
        &[Allowed(MEMBERS, OFFERS), Accept],
        &[To(first, prefix), Reject],
        &[To(LINK_LOCAL.0, LINK_LOCAL.1), Reject],
        &[Over(UPLINK), Accept],
    ];
    let leaving: &[&[Step<'_>]] = &[&[Over(UPLINK), Masquerade]];
    let chains = [
        Chain { name: "input", point: Point::Input, rules: input },
        Chain { name: "through", point: Point::Forward, rules: forward },
        Chain { name: "leaving", point: Point::Leaving, rules: leaving },
    ];
    let sets =
        [Set { name: MEMBERS, key: 4, value: Some(4) }, Set { name: OFFERS, key: 8, value: None }];
    let table = Table { name: TABLE, owned: false, sets: &sets, chains: &chains };
    Ok(firewall::install(socket, &table)?)
}
