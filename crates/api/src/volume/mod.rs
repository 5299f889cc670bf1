//! `Volume`: a directory outside of every container, mounted as it is. What is in one changes while
//! nobody looks, so commands that have one are never taken from the cache.

mod endpoint;
mod sshfs;

pub(crate) use sshfs::Serving;

use crate::secret::Secret;
use crate::service::Service;
use endpoint::Endpoint;
use graph::{Args, Builder, Context, Object, Op, Ref, Root, Scope, Value};
use protocol::{DigestBuilder, Error};
use sshfs::Sshfs;

/// What the address of a volume of the engine begins with.
const SCHEME: &str = "engine-volume://";
/// What the address of a directory of another machine begins with.
const SSHFS_SCHEME: &str = "sshfs://";

pub(crate) fn install(builder: &mut Builder) {
    builder.install::<EngineVolume>().install::<SshfsVolume>();
}

/// A volume.
pub(crate) enum Volume {
    /// One that the engine keeps.
    Engine(Kept),
    /// A directory of another machine.
    Sshfs(Sshfs),
}

/// A volume that the engine keeps.
#[derive(Debug)]
pub(crate) struct Kept {
    /// What the engine knows it by.
    pub(crate) key: String,
    /// The part of it that is meant; empty is all of it.
    pub(crate) subdir: String,
}

impl Object for Volume {
    const TYPE: &'static str = "Volume";
}

impl Volume {
    /// A volume that the engine keeps.
    fn of_engine(name: &str, subdir: &str) -> Result<Self, Error> {
        if name.is_empty() || name.contains(['/', '\0']) {
            return Err(Error::user(format!("`{name}` cannot be the name of a volume")));
        }
        if subdir.split('/').any(|part| part == "..") || subdir.contains('\0') {
            let message = format!("`{subdir}` is no directory in the volume `{name}`");
            return Err(Error::user(message));
        }
        // Apart from the keys of cache volumes, which users choose.
        let (key, subdir) = (format!("\0engine\0{name}"), subdir.to_owned());
        Ok(Self::Engine(Kept { key, subdir }))
    }

    /// The volume at an address.
    pub(crate) fn at(address: &str) -> Result<Self, Error> {
        if let Some(rest) = address.strip_prefix(SSHFS_SCHEME) {
            return Sshfs::at(rest).map(Self::Sshfs);
        }
        let Some(rest) = address.strip_prefix(SCHEME) else {
            return Err(Error::user(format!("`{address}` names no volume"))
                .with_hint("write it as `engine-volume://name`, `engine-volume://name?subdir=directory` or `sshfs://user@host/directory?privateKey=<secret>&knownHosts=<secret>`"));
        };
        let Some((name, query)) = rest.split_once('?') else {
            return Self::of_engine(rest, "");
        };
        match query.strip_prefix("subdir=").filter(|subdir| !subdir.contains('&')) {
            Some(subdir) => Self::of_engine(name, subdir),
            None => {
                Err(Error::user(format!("`{query}` says nothing about a volume of the engine"))
                    .with_hint("it takes `subdir=directory`"))
            }
        }
    }

    /// Feeds the name of a command with what the volume is. What is in it is no part of any name.
    pub(crate) async fn digest_into<'a>(
        &self,
        digest: &'a mut DigestBuilder,
        cx: &Context,
    ) -> Result<&'a mut DigestBuilder, Error> {
        match self {
            Self::Engine(kept) => Ok(digest.text("volume").text(&kept.key).text(&kept.subdir)),
            Self::Sshfs(sshfs) => sshfs.digest_into(digest, cx).await,
        }
    }
}

/// A volume that the engine keeps under a name, made when it is first mounted. Commands that have it
/// mounted share it as it is, and run every time.
#[derive(Args)]
struct EngineVolume {
    /// What it is called.
    name: String,
    /// A directory in it to mount instead of all of it; made when it is missing.
    subdir: Option<String>,
}

impl Op for EngineVolume {
    type Parent = Root;
    type Output = Volume;
    const NAME: &'static str = "engineVolume";

    async fn run(&self, _: &Root, _: &Context) -> Result<Volume, Error> {
        Volume::of_engine(&self.name, self.subdir.as_deref().unwrap_or_default())
    }
}

/// A directory of another machine, which the engine reaches by ssh. Every command that has it mounted has a
/// connection of its own for as long as it runs. Needs the program `sshfs` and a kernel with fuse where the engine runs.
#[derive(Args)]
struct SshfsVolume {
    /// Where it is: `user@host:directory` or `ssh://user@host:port/directory`.
    endpoint: String,
    /// The key that the other machine lets in, as OpenSSH writes it, without a passphrase.
    private_key: Ref<Secret>,
    /// Lines of a `known_hosts` file that say who the other machine is: no other is trusted.
    known_hosts: Option<Ref<Secret>>,
    /// What stands for the key in the names of services that mount it; the key itself by default.
    cache_key: Option<String>,
    /// Trust whoever answers, without `knownHosts`. Whoever is on the way can read and change everything.
    #[arg(default = "false")]
    insecure_skip_host_key_check: bool,
    /// The service that the other machine is.
    experimental_service_host: Option<Ref<Service>>,
}

impl Op for SshfsVolume {
    type Parent = Root;
    type Output = Volume;
    const NAME: &'static str = "sshfsVolume";
    const SCOPE: Scope = Scope::Session;

    fn check(args: &[(Box<str>, Value)]) -> Result<(), Error> {
        let find = |wanted: &str| args.iter().find(|(name, _)| **name == *wanted);
        if let Some(endpoint) = find("endpoint").and_then(|(_, value)| value.as_str()) {
            Endpoint::parse(endpoint)?;
        }
        match find("knownHosts").or_else(|| find("insecureSkipHostKeyCheck")) {
            Some(_) => Ok(()),
            None => Err(sshfs::unknown_host()),
        }
    }

    async fn run(&self, _: &Root, _: &Context) -> Result<Volume, Error> {
        Ok(Volume::Sshfs(Sshfs {
            endpoint: Endpoint::parse(&self.endpoint)?,
            private_key: self.private_key.arc(),
            known_hosts: match self.insecure_skip_host_key_check {
                true => None,
                false => self.known_hosts.as_ref().map(Ref::arc),
            },
            cache_key: self.cache_key.clone(),
            service: self.experimental_service_host.as_ref().map(Ref::arc),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine(address: &str) -> (String, String) {
        match Volume::at(address) {
            Ok(Volume::Engine(kept)) => (kept.key, kept.subdir),
            Ok(_) => panic!("{address} is no volume of the engine"),
            Err(error) => panic!("{address}: {error}"),
        }
    }

    #[test]
    fn addresses_of_volumes() {
        assert_eq!(
            engine("engine-volume://data?subdir=a/b"),
            ("\0engine\0data".into(), "a/b".into())
        );
        assert_eq!(engine("engine-volume://data").1, "");
        for right in [
            "sshfs://u@host/d?privateKey=env://KEY&knownHosts=file://hosts",
            "sshfs://u@host:2222/d?privateKey=env://KEY&insecureSkipHostKeyCheck=true",
        ] {
            assert!(matches!(Volume::at(right), Ok(Volume::Sshfs(_))), "{right}");
        }
        for wrong in [
            "data",
            "ssh://host/x",
            "engine-volume://",
            "engine-volume://a/b",
            "engine-volume://a?subdir=../b",
            "engine-volume://a?other=b",
            "engine-volume://a?subdir=b&other=c",
            "sshfs://u@host/d",
            "sshfs://u@host/d?privateKey=env://KEY",
            "sshfs://u@host/d?privateKey=env://KEY&knownHosts=env://H&other=1",
            "sshfs://u@host/d?privateKey=env://KEY&insecureSkipHostKeyCheck=maybe",
        ] {
            assert!(Volume::at(wrong).is_err(), "{wrong}");
        }
    }
}
