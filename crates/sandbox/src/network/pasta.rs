//! `pasta`, the program that carries packets between a network namespace and the host without any right
//! in the host's network: the way out for who is not root, and where the host does not pass packets on.

use super::guard::{Guard, NAMESPACE};
use super::link;
use super::message::Socket;
use crate::Error;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use std::fs;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

/// Where packages put it.
const PLACES: [&str; 3] = ["/usr/bin/pasta", "/usr/local/bin/pasta", "/bin/pasta"];
/// The device that it makes its link from.
const TUNNEL: &str = "/dev/net/tun";
/// How long it may take to connect a network.
const START_LIMIT: Duration = Duration::from_secs(10);
/// How often it is looked whether it has.
const LOOK: Duration = Duration::from_millis(5);

/// Connects a network namespace to the outside by a link of this name.
pub(crate) fn connect(
    guard: &Guard,
    namespace: BorrowedFd<'_>,
    inside: &Socket,
    name: &str,
) -> Result<(), Error> {
    let program = program()?;
    check_tunnel()?;
    guard.run(arguments(program, name), namespace)?;
    let until = Instant::now() + START_LIMIT;
    while !link::find(inside, name).is_ok_and(|link| link.up) {
        match guard.ended() {
            Ok(None) => {}
            Ok(Some(words)) => return Err(Error::network(format!("`pasta` ended: {words}"))),
            Err(_) => return Err(Error::network("the network's guard is gone".to_owned())),
        }
        if Instant::now() > until {
            return Err(Error::network(format!("`pasta` made no link within {START_LIMIT:?}")));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

fn program() -> Result<&'static str, Error> {
    let runs = |place: &&str| {
        fs::metadata(place).is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
    };
    let found = PLACES.into_iter().find(runs);
    found.ok_or_else(|| {
        let reason = "containers reach the network through `pasta` here, which is not installed";
        unfit(reason.to_owned(), "install it with `apt install passt`")
    })
}

/// A `pasta` that cannot open the device may hang rather than say so.
fn check_tunnel() -> Result<(), Error> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let Err(error) = rustix::fs::openat(CWD, TUNNEL, flags, Mode::empty()) else { return Ok(()) };
    let way_out = match error {
        Errno::ACCESS | Errno::PERM => format!("permit it as root with `chmod 666 {TUNNEL}`"),
        _ => "make it as root with `modprobe tun`".to_owned(),
    };
    Err(unfit(format!("`pasta` needs `{TUNNEL}`, which cannot be opened: {error}"), &way_out))
}

/// Something is missing; who needs no network need not get it.
fn unfit(reason: String, way_out: &str) -> Error {
    let hint = format!("{way_out}, or do without: `network = \"none\"` in engine.toml");
    Error::Network { reason, hint: Some(hint) }
}

/// Nothing of the host's loopback is to be reached, in no direction.
fn arguments(program: &str, name: &str) -> Vec<String> {
    let mut words = vec![program, "--foreground", "--quiet", "--ipv4-only", "--config-net"];
    words.extend(["--no-map-gw", "--tcp-ports", "none", "--udp-ports", "none"]);
    words.extend(["--tcp-ns", "none", "--udp-ns", "none"]);
    words.extend(["--runas", "0:0", "--netns-only", "--ns-ifname", name, "--netns", NAMESPACE]);
    words.into_iter().map(str::to_owned).collect()
}
