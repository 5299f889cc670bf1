//! [`Address`]: which engine is meant.

use crate::Error;
use crate::route::{Certificates, Route, Ssh, Tcp};
use config::paths::StateFiles;
use std::path::PathBuf;

/// Which engine is meant.
#[derive(Clone, Debug)]
pub(crate) enum Address {
    /// The engine of a state folder, started when it does not run.
    Own(StateFiles),
    /// An engine somebody else runs. It is never started from here, but for one behind ssh, which its
    /// own machine starts.
    Other(Route),
}

impl Address {
    /// Reads an address as `CITOOL_ENGINE` has it.
    pub(crate) fn parse(text: &str, certificates: &Certificates) -> Result<Self, Error> {
        let bad = || Error::BadAddress(text.to_owned());
        let (scheme, rest) = text.split_once("://").ok_or_else(bad)?;
        let route = match scheme {
            "unix" if rest.starts_with('/') => Route::Socket(PathBuf::from(rest)),
            "tcp" => Route::Tcp(Tcp::parse(rest, certificates)?.ok_or_else(bad)?),
            "ssh" => Route::Ssh(Ssh::parse(rest).ok_or_else(bad)?),
            _ => return Err(bad()),
        };
        Ok(Self::Other(route))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let read = |text: &str| match Address::parse(text, &Certificates::default()) {
            Ok(Address::Other(route)) => route.to_string(),
            Ok(Address::Own(_)) => unreachable!("an address never names a state folder"),
            Err(error) => error.to_string(),
        };
        for same in [
            "unix:///run/ci-tool.sock",
            "tcp://127.0.0.1:7433",
            "tcp://[::1]:7433",
            "tcp://localhost:7433",
            "ssh://host",
            "ssh://user@host",
            "ssh://user@host:2222",
            "ssh://user@[fe80::1]:2222",
        ] {
            assert_eq!(read(same), same);
        }
        for bad in [
            "unix://relative",
            "/run/ci-tool.sock",
            "http://x",
            "tcp://host",
            "tcp://:1",
            "tcp://host:0",
            "tcp://host:port",
            "tcp://::1:7433",
            "ssh://",
            "ssh://@host",
            "ssh://host:",
            "ssh://host/path",
            "ssh://-oProxyCommand=x",
            "ssh://user@-host",
        ] {
            assert_eq!(read(bad), format!("`{bad}` is no address of an engine"));
        }
        assert_eq!(read("tcp://host:1"), "the engine at `tcp://host:1` needs certificates");
    }
}
