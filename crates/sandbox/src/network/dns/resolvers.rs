//! The host's resolvers and what else its `resolv.conf` says.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Where the host says which resolvers it asks.
pub(crate) const SETTINGS: &str = "/etc/resolv.conf";
/// Resolvers beyond these are not asked, as on the host.
const MOST: usize = 3;
const PORT: u16 = 53;

/// What a `resolv.conf` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) servers: Vec<SocketAddr>,
    /// Lines that hold for containers too: `search`, `domain` and `options`.
    pub(crate) lines: Vec<String>,
}

/// Reads the text of a `resolv.conf`.
pub(crate) fn parse(text: &str) -> Said {
    let mut said = Said::default();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        match words.next() {
            Some("nameserver") if said.servers.len() < MOST => {
                // A scope after the address belongs to a link; the address alone is tried.
                let address = words.next().and_then(|word| word.split('%').next()?.parse().ok());
                let server = |address: IpAddr| SocketAddr::new(address, PORT);
                said.servers.extend(address.map(server));
            }
            Some("search" | "domain" | "options") => said.lines.push(line.trim().to_owned()),
            _ => {}
        }
    }
    said
}

/// The host's resolvers, as its settings say now.
#[derive(Debug)]
pub(crate) struct Resolvers {
    file: PathBuf,
    /// When and how the file was when it was read last.
    known: Mutex<(Option<Stamp>, Vec<SocketAddr>)>,
}

type Stamp = (u64, u64, i64, i64);

impl Resolvers {
    /// Those that this file names.
    pub(crate) fn of(file: impl Into<PathBuf>) -> Resolvers {
        Resolvers { file: file.into(), known: Mutex::default() }
    }

    /// These, for tests: no file names a port.
    #[cfg(test)]
    pub(super) fn fixed(servers: Vec<SocketAddr>) -> Resolvers {
        Resolvers { file: PathBuf::new(), known: Mutex::new((None, servers)) }
    }

    /// Whom to ask, in this order.
    pub(super) fn servers(&self) -> Vec<SocketAddr> {
        let found = std::fs::metadata(&self.file).ok();
        let stamp =
            found.map(|found| (found.ino(), found.size(), found.mtime(), found.mtime_nsec()));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0 != stamp || known.1.is_empty() {
            let text = std::fs::read_to_string(&self.file).unwrap_or_default();
            let mut servers = parse(&text).servers;
            if servers.is_empty() {
                // Who names none has one of its own.
                servers.push(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT));
            }
            *known = (stamp, servers);
        }
        known.1.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_and_what_holds_for_containers_are_read() {
        let text = "# made by hand\nsearch corp.example lan\nnameserver 127.0.0.53\n\
                    nameserver fe80::1%eth0\nnameserver nonsense\nnameserver 9.9.9.9\n\
                    nameserver 1.1.1.1\noptions edns0 trust-ad\nsortlist 10.0.0.0\n";
        let said = parse(text);
        let servers: Vec<String> = said.servers.iter().map(SocketAddr::to_string).collect();
        assert_eq!(servers, ["127.0.0.53:53", "[fe80::1]:53", "9.9.9.9:53"]);
        assert_eq!(said.lines, ["search corp.example lan", "options edns0 trust-ad"]);
    }

    #[test]
    fn a_change_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("resolv.conf");
        let resolvers = Resolvers::of(&file);
        assert_eq!(resolvers.servers()[0].to_string(), "127.0.0.1:53");
        std::fs::write(&file, "nameserver 9.9.9.9\n").unwrap();
        assert_eq!(resolvers.servers()[0].to_string(), "9.9.9.9:53");
    }
}
