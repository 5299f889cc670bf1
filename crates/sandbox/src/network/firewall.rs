//! Rules of the kernel's packet filter, as messages.
//!
//! A rule is a list of steps: load something into a register, compare it, decide. One transaction
//! makes a table with all its chains and rules, or nothing.

use super::message::{APPEND, Attributes, Batch, CREATE, Socket};
use rustix::io::Errno;
use std::net::Ipv4Addr;

const SUBSYSTEM: u16 = 10 << 8;
const NEW_TABLE: u16 = SUBSYSTEM;
const NEW_CHAIN: u16 = SUBSYSTEM | 3;
const GET_CHAIN: u16 = SUBSYSTEM | 4;
const NEW_RULE: u16 = SUBSYSTEM | 6;
const NEW_SET: u16 = SUBSYSTEM | 9;
const NEW_ELEMENTS: u16 = SUBSYSTEM | 12;
const DELETE_ELEMENTS: u16 = SUBSYSTEM | 14;
const BEGIN: u16 = 16;
const END: u16 = 17;

/// The table goes when the socket that made it is closed.
const OWNED: u32 = 2;
const IPV4: u8 = 2;
const REGISTER: u32 = 1;
/// Two registers of four bytes, one behind the other.
const FIRST_HALF: u32 = 8;
const SECOND_HALF: u32 = 9;
/// A set that gives a value for each key.
const MAP: u32 = 8;
/// Keys and values without a kind that matters to anybody.
const PLAIN: u32 = 0;
const VERDICT: u32 = 0;
const FORWARD_HOOK: u32 = 2;

/// A socket to the packet filter of this thread's network namespace.
pub(crate) fn open() -> Result<Socket, Errno> {
    Socket::open(Some(rustix::net::netlink::NETFILTER))
}

/// A table of rules for IPv4.
pub(crate) struct Table<'a> {
    pub(crate) name: &'a str,
    /// Whether it goes when the socket is closed.
    pub(crate) owned: bool,
    pub(crate) sets: &'a [Set<'a>],
    pub(crate) chains: &'a [Chain<'a>],
}

/// Keys that rules look up, with values or without.
pub(crate) struct Set<'a> {
    pub(crate) name: &'a str,
    /// Bytes of a key.
    pub(crate) key: u32,
    /// Bytes of a value.
    pub(crate) value: Option<u32>,
}

/// A change of a set.
pub(crate) enum Change<'a> {
    /// A key, with its value where the set has values.
    Add(&'a str, &'a [u8], Option<&'a [u8]>),
    Remove(&'a str, &'a [u8]),
}

/// Rules that packets meet at one point of their way.
pub(crate) struct Chain<'a> {
    pub(crate) name: &'a str,
    pub(crate) point: Point,
    pub(crate) rules: &'a [&'a [Step<'a>]],
}

/// Where packets meet a chain.
#[derive(Clone, Copy)]
pub(crate) enum Point {
    /// On their way to this namespace itself; what no rule accepts is dropped.
    Input,
    /// On their way through; what no rule accepts is dropped.
    Forward,
    /// On their way out, where addresses are rewritten.
    Leaving,
}

/// A part of a rule: a condition, or what is to be done when all before it hold.
pub(crate) enum Step<'a> {
    /// It came in over this link.
    From(&'a str),
    /// It will go out over this link.
    Over(&'a str),
    /// It comes from this address.
    Source(Ipv4Addr),
    /// It is for an address of this network: address and length of the prefix.
    To(Ipv4Addr, u8),
    /// It is of this protocol: 1 is ICMP, 6 is TCP, 17 is UDP.
    Protocol(u8),
    /// It is for this port. The protocol must have been compared before.
    Port(u16),
    /// The first set has a value for who sent it, and the second has who gets it, with that value.
    Allowed(&'a str, &'a str),
    /// It belongs to what was accepted before.
    Known,
    /// It opens a TCP connection.
    Opening,
    /// Has the connection agree on segments that fit the way.
    FitSegments,
    /// It leaves with the address of the link it goes over.
    Masquerade,
    Accept,
    Drop,
    /// The sender is told that it may not.
    Reject,
}

/// Makes a table.
pub(crate) fn install(socket: &Socket, table: &Table<'_>) -> Result<(), Errno> {
    let mut batch = Batch::default();
    // The subsystem that a transaction is for, in the order of the network.
    batch.mark(BEGIN, &[0, 0, 0, 10]);
    batch.add(NEW_TABLE, CREATE, &header(), |attributes| {
        attributes.text(1, table.name);
        attributes.big_number(2, if table.owned { OWNED } else { 0 });
    });
    for (number, set) in (1..).zip(table.sets) {
        add_set(&mut batch, table.name, set, number);
    }
    for chain in table.chains {
        add_chain(&mut batch, table.name, chain);
        for rule in chain.rules {
            batch.add(NEW_RULE, CREATE | APPEND, &header(), |attributes| {
                attributes.text(1, table.name);
                attributes.text(2, chain.name);
                attributes.nest(4, |steps| rule.iter().for_each(|step| step.write(steps)));
            });
        }
    }
    batch.mark(END, &[0, 0, 0, 10]);
    socket.run(&batch)
}

/// Changes sets of a table: all of it, or nothing.
pub(crate) fn change(socket: &Socket, table: &str, changes: &[Change<'_>]) -> Result<(), Errno> {
    let mut batch = Batch::default();
    batch.mark(BEGIN, &[0, 0, 0, 10]);
    for change in changes {
        let (kind, flags, set, key, value) = match *change {
            Change::Add(set, key, value) => (NEW_ELEMENTS, CREATE, set, key, value),
            Change::Remove(set, key) => (DELETE_ELEMENTS, 0, set, key, None),
        };
        batch.add(kind, flags, &header(), |attributes| {
            attributes.text(1, table);
            attributes.text(2, set);
            attributes.nest(3, |list| {
                list.nest(1, |element| {
                    element.nest(1, |data| data.bytes(1, key));
                    if let Some(value) = value {
                        element.nest(2, |data| data.bytes(1, value));
                    }
                });
            });
        });
    }
    batch.mark(END, &[0, 0, 0, 10]);
    socket.run(&batch)
}

/// Whether anybody has rules for packets on their way through.
pub(crate) fn filters_forwarding(socket: &Socket) -> Result<bool, Errno> {
    let chains = socket.ask(GET_CHAIN, true, &[0, 0, 0, 0], |_| {})?;
    Ok(chains.iter().any(|chain| hook_of(chain) == Some(FORWARD_HOOK)))
}

fn hook_of(chain: &[u8]) -> Option<u32> {
    let hook = super::message::attributes(chain.get(4..)?).find(|(kind, _)| *kind == 4)?.1;
    let number = super::message::attributes(hook).find(|(kind, _)| *kind == 1)?.1;
    Some(u32::from_be_bytes(number.try_into().ok()?))
}

fn header() -> [u8; 4] {
    [IPV4, 0, 0, 0]
}

fn add_chain(batch: &mut Batch, table: &str, chain: &Chain<'_>) {
    let (hook, priority, kind) = match chain.point {
        Point::Input => (1, 0, "filter"),
        Point::Forward => (FORWARD_HOOK, 0, "filter"),
        Point::Leaving => (4, 100, "nat"),
    };
    batch.add(NEW_CHAIN, CREATE, &header(), |attributes| {
        attributes.text(1, table);
        attributes.text(3, chain.name);
        attributes.nest(4, |place| {
            place.big_number(1, hook);
            place.big_number(2, priority);
        });
        if kind == "filter" {
            attributes.big_number(5, 0);
        }
        attributes.text(7, kind);
    });
}

fn add_set(batch: &mut Batch, table: &str, set: &Set<'_>, number: u32) {
    batch.add(NEW_SET, CREATE, &header(), |attributes| {
        attributes.text(1, table);
        attributes.text(2, set.name);
        attributes.big_number(3, if set.value.is_some() { MAP } else { 0 });
        attributes.big_number(4, PLAIN);
        attributes.big_number(5, set.key);
        if let Some(bytes) = set.value {
            attributes.big_number(6, PLAIN);
            attributes.big_number(7, bytes);
        }
        attributes.big_number(10, number);
    });
}

impl Step<'_> {
    fn write(&self, steps: &mut Attributes<'_>) {
        match self {
            Step::From(link) => {
                meta(steps, 6);
                equal(steps, &padded_name(link));
            }
            Step::Over(link) => {
                meta(steps, 7);
                equal(steps, &padded_name(link));
            }
            Step::Source(address) => {
                payload(steps, 1, 12, 4);
                equal(steps, &address.octets());
            }
            Step::To(network, prefix) => {
                payload(steps, 1, 16, 4);
                mask(
                    steps,
                    &u32::MAX.checked_shl(32 - u32::from(*prefix)).unwrap_or(0).to_be_bytes(),
                );
                equal(steps, &network.octets());
            }
            Step::Protocol(number) => {
                meta(steps, 16);
                equal(steps, &[*number]);
            }
            Step::Port(number) => {
                payload(steps, 2, 2, 2);
                equal(steps, &number.to_be_bytes());
            }
            Step::Allowed(senders, receivers) => {
                payload_to(steps, FIRST_HALF, (1, 12, 4));
                look_up(steps, senders, Some(SECOND_HALF));
                payload_to(steps, FIRST_HALF, (1, 16, 4));
                look_up(steps, receivers, None);
            }
            Step::Known => known(steps),
            Step::Opening => {
                payload(steps, 2, 13, 1);
                // Of the flags SYN and RST only the first.
                mask(steps, &[6]);
                equal(steps, &[2]);
            }
            Step::FitSegments => fit_segments(steps),
            Step::Masquerade => step(steps, "masq", |_| {}),
            Step::Accept => verdict(steps, 1),
            Step::Drop => verdict(steps, 0),
            Step::Reject => step(steps, "reject", |attributes| {
                attributes.big_number(1, 0);
                // Forbidden by the administrator.
                attributes.bytes(2, &[13]);
            }),
        }
    }
}

fn step(steps: &mut Attributes<'_>, name: &str, fill: impl FnOnce(&mut Attributes<'_>)) {
    steps.nest(1, |element| {
        element.text(1, name);
        element.nest(2, fill);
    });
}

/// Loads something that is known about the packet.
fn meta(steps: &mut Attributes<'_>, key: u32) {
    step(steps, "meta", |attributes| {
        attributes.big_number(2, key);
        attributes.big_number(1, REGISTER);
    });
}

/// Loads bytes of the packet; base 1 is the network's header, 2 the transport's.
fn payload(steps: &mut Attributes<'_>, base: u32, offset: u32, length: u32) {
    payload_to(steps, REGISTER, (base, offset, length));
}

fn payload_to(steps: &mut Attributes<'_>, register: u32, (base, offset, length): (u32, u32, u32)) {
    step(steps, "payload", |attributes| {
        attributes.big_number(1, register);
        attributes.big_number(2, base);
        attributes.big_number(3, offset);
        attributes.big_number(4, length);
    });
}

/// Goes on if a set has what was loaded, with its value in a register where it has values.
fn look_up(steps: &mut Attributes<'_>, set: &str, value: Option<u32>) {
    step(steps, "lookup", |attributes| {
        attributes.text(1, set);
        attributes.big_number(2, FIRST_HALF);
        if let Some(register) = value {
            attributes.big_number(3, register);
        }
    });
}

fn equal(steps: &mut Attributes<'_>, value: &[u8]) {
    compare(steps, 0, value);
}

/// Compares what was loaded: 0 is equal, 1 is not equal.
fn compare(steps: &mut Attributes<'_>, operator: u32, value: &[u8]) {
    step(steps, "cmp", |attributes| {
        attributes.big_number(1, REGISTER);
        attributes.big_number(2, operator);
        attributes.nest(3, |data| data.bytes(1, value));
    });
}

/// Keeps only some bits of what was loaded.
fn mask(steps: &mut Attributes<'_>, bits: &[u8]) {
    step(steps, "bitwise", |attributes| {
        attributes.big_number(1, REGISTER);
        attributes.big_number(2, REGISTER);
        attributes.big_number(3, bits.len() as u32);
        attributes.nest(4, |data| data.bytes(1, bits));
        attributes.nest(5, |data| data.bytes(1, &vec![0; bits.len()]));
    });
}

/// The state of the connection has the bit of established or of related.
fn known(steps: &mut Attributes<'_>) {
    step(steps, "ct", |attributes| {
        attributes.big_number(2, 0);
        attributes.big_number(1, REGISTER);
    });
    mask(steps, &6u32.to_ne_bytes());
    compare(steps, 1, &0u32.to_ne_bytes());
}

fn fit_segments(steps: &mut Attributes<'_>) {
    step(steps, "rt", |attributes| {
        attributes.big_number(1, REGISTER);
        attributes.big_number(2, 3);
    });
    step(steps, "byteorder", |attributes| {
        attributes.big_number(1, REGISTER);
        attributes.big_number(2, REGISTER);
        attributes.big_number(3, 1);
        attributes.big_number(4, 2);
        attributes.big_number(5, 2);
    });
    step(steps, "exthdr", |attributes| {
        attributes.big_number(7, REGISTER);
        attributes.bytes(2, &[2]);
        attributes.big_number(3, 2);
        attributes.big_number(4, 2);
        attributes.big_number(6, 1);
    });
}

fn verdict(steps: &mut Attributes<'_>, code: u32) {
    step(steps, "immediate", |attributes| {
        attributes.big_number(1, VERDICT);
        attributes.nest(2, |data| data.nest(2, |verdict| verdict.big_number(1, code)));
    });
}

/// A name as the kernel compares it.
fn padded_name(name: &str) -> [u8; 16] {
    let mut padded = [0; 16];
    let length = name.len().min(15);
    padded[..length].copy_from_slice(&name.as_bytes()[..length]);
    padded
}
