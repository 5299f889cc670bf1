//! The files that every container sees in place of its own: `/etc/hosts`, `/etc/hostname` and, where
//! there is a network, `/etc/resolv.conf`.
//!
//! They lie in a directory of the engine and are bind-mounted. When the host's change, ours are
//! rewritten in place, so that the next command, and even a running one, resolves as the host does.

use crate::network::{DOMAIN, RESOLVER_SETTINGS, parse_resolvers};
use crate::zygote::HOSTNAME;
use crate::{Error, Network, Settings};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use store::Mount;

const HOST_HOSTS: &str = "/etc/hosts";

/// Our copies and what they were copied from.
pub(crate) struct HostFiles {
    directory: PathBuf,
    network: Network,
    /// Where names are asked for, if not where the host asks.
    gateway: Option<Ipv4Addr>,
    copied: Mutex<Vec<Option<Stamp>>>,
}

/// Tells whether a file of the host has changed.
#[derive(Clone, Copy, PartialEq)]
struct Stamp {
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl HostFiles {
    /// Writes the files. Names are asked for at the gateway, if there is one.
    pub(crate) fn write(
        settings: &Settings,
        gateway: Option<Ipv4Addr>,
    ) -> Result<HostFiles, Error> {
        let files = HostFiles {
            directory: settings.hosts_files.clone(),
            network: settings.network,
            gateway,
            copied: Mutex::new(stamps()),
        };
        files.write_all().map_err(Error::host("cannot write the hosts files"))?;
        Ok(files)
    }

    /// Mounts of the files, in the order that the zygote expects.
    pub(crate) fn mounts(&self) -> Result<Vec<Mount>, Error> {
        let mount = |name: &&str| {
            Mount::bind_file(&self.directory.join(name)).map_err(|error| Error::Host {
                action: "cannot mount the hosts files",
                source: io::Error::other(error),
            })
        };
        self.names().iter().map(mount).collect()
    }

    /// Copies the host's files again if they have changed.
    pub(crate) fn refresh(&self) -> Result<(), Error> {
        if self.network == Network::None {
            return Ok(());
        }
        let current = stamps();
        let mut copied = self.copied.lock().unwrap_or_else(PoisonError::into_inner);
        if *copied == current {
            return Ok(());
        }
        self.write_all().map_err(Error::host("cannot write the hosts files"))?;
        *copied = current;
        Ok(())
    }

    fn names(&self) -> &'static [&'static str] {
        match self.network {
            Network::None => &["hosts", "hostname"],
            Network::Host | Network::Bridge => &["hosts", "hostname", "resolv.conf"],
        }
    }

    fn write_all(&self) -> io::Result<()> {
        fs::create_dir_all(&self.directory)?;
        for name in self.names() {
            let contents = match *name {
                "hosts" => self.hosts()?,
                "hostname" => format!("{HOSTNAME}\n"),
                _ => self.resolver()?,
            };
            rewrite(&self.directory.join(name), contents.as_bytes())?;
        }
        Ok(())
    }

    /// Whoever shares the host's network also knows the names that the host gives to addresses.
    fn hosts(&self) -> io::Result<String> {
        let own = format!(
            "127.0.0.1\tlocalhost\n127.0.1.1\t{HOSTNAME}\n::1\tlocalhost ip6-localhost ip6-loopback\n"
        );
        match self.network {
            Network::None | Network::Bridge => Ok(own),
            Network::Host => Ok(own + &read_if_present(Path::new(HOST_HOSTS))?),
        }
    }

    /// Names are asked for where the host asks, or at the gateway in the way that the host asks.
    fn resolver(&self) -> io::Result<String> {
        let host = read_if_present(Path::new(RESOLVER_SETTINGS))?;
        let Some(gateway) = self.gateway else { return Ok(host) };
        Ok(resolver_text(gateway, &host))
    }
}

/// What containers of the engine's network read: names of ours are tried first.
fn resolver_text(gateway: Ipv4Addr, host: &str) -> String {
    let mut search = vec![DOMAIN];
    let said = parse_resolvers(host);
    let (mut options, mut hosts_own) = (vec![], vec![]);
    for line in &said.lines {
        let mut words = line.split_ascii_whitespace();
        match words.next() {
            // As on the host, the last of these counts.
            Some("search" | "domain") => hosts_own = words.collect(),
            _ => options.push(line.as_str()),
        }
    }
    search.extend(hosts_own);
    let mut text = format!("nameserver {gateway}\nsearch {}\n", search.join(" "));
    for line in options {
        text.push_str(line);
        text.push('\n');
    }
    text
}

fn stamps() -> Vec<Option<Stamp>> {
    let stamp = |path: &&str| {
        let found = fs::metadata(path).ok()?;
        let modified = (found.mtime(), found.mtime_nsec());
        Some(Stamp { inode: found.ino(), size: found.size(), modified })
    };
    [HOST_HOSTS, RESOLVER_SETTINGS].iter().map(stamp).collect()
}

fn read_if_present(path: &Path) -> io::Result<String> {
    match fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error),
    }
}

/// Writes over a file without replacing it: containers have the file itself mounted, not its name.
fn rewrite(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut file: File = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
    file.write_all(contents)?;
    file.set_len(contents.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;
    use std::time::Duration;

    fn settings(network: Network, directory: &Path) -> Settings {
        Settings {
            grace: Duration::ZERO,
            cgroup_name: String::new(),
            limits: Limits::default(),
            network,
            runtime: None,
            hosts_files: directory.to_owned(),
        }
    }

    #[test]
    fn an_isolated_command_knows_only_itself() {
        let directory = tempfile::tempdir().unwrap();
        HostFiles::write(&settings(Network::None, directory.path()), None).unwrap();
        let hosts = fs::read_to_string(directory.path().join("hosts")).unwrap();
        assert_eq!(hosts.lines().count(), 3);
        assert!(hosts.contains("127.0.1.1\tci-tool"));
        assert!(!directory.path().join("resolv.conf").exists());
    }

    #[test]
    fn on_the_hosts_network_names_resolve_as_on_the_host() {
        let directory = tempfile::tempdir().unwrap();
        HostFiles::write(&settings(Network::Host, directory.path()), None).unwrap();
        let ours = fs::read_to_string(directory.path().join("resolv.conf")).unwrap();
        assert_eq!(ours, fs::read_to_string(RESOLVER_SETTINGS).unwrap_or_default());
    }

    #[test]
    fn on_the_engines_network_names_are_asked_for_at_the_gateway() {
        let directory = tempfile::tempdir().unwrap();
        let gateway = Some(Ipv4Addr::new(10, 1, 0, 1));
        HostFiles::write(&settings(Network::Bridge, directory.path()), gateway).unwrap();
        let ours = fs::read_to_string(directory.path().join("resolv.conf")).unwrap();
        assert!(ours.starts_with("nameserver 10.1.0.1\n"), "{ours}");
        assert_eq!(ours.matches("nameserver").count(), 1);
        let hosts = fs::read_to_string(directory.path().join("hosts")).unwrap();
        assert_eq!(hosts.lines().count(), 3);
    }

    #[test]
    fn names_of_ours_are_searched_before_the_hosts() {
        let host = "domain old.example\nsearch a.example b.example\noptions ndots:2\n";
        let text = resolver_text(Ipv4Addr::new(10, 1, 0, 1), host);
        let search = "search ci-tool.internal a.example b.example";
        assert_eq!(text, format!("nameserver 10.1.0.1\n{search}\noptions ndots:2\n"));
    }

    #[test]
    fn a_shorter_file_leaves_nothing_of_a_longer_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        rewrite(&path, b"long contents").unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        rewrite(&path, b"short").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"short");
        assert_eq!(fs::metadata(&path).unwrap().ino(), inode);
    }
}
