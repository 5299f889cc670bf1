//! [`Address`]: which engine is meant.

use crate::Error;
use config::paths::StateFiles;
use std::path::PathBuf;

/// Which engine is meant.
#[derive(Clone, Debug)]
pub enum Address {
    /// The engine of a state folder, started when it does not run.
    Own(StateFiles),
    /// An engine somebody else runs, on this socket. It is never started from here.
    Socket(PathBuf),
}

impl Address {
    /// Reads an address as `CITOOL_ENGINE` has it.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
        match scheme {
            "unix" if rest.starts_with('/') => Ok(Self::Socket(PathBuf::from(rest))),
            "tcp" | "ssh" => Err(Error::AddressLater(scheme.to_owned())),
            _ => Err(Error::BadAddress(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let socket = |text: &str| match Address::parse(text) {
            Ok(Address::Socket(path)) => path.to_string_lossy().into_owned(),
            Ok(Address::Own(_)) => unreachable!("an address never names a state folder"),
            Err(error) => error.to_string(),
        };
        for (text, expected) in [
            ("unix:///run/ci-tool.sock", "/run/ci-tool.sock"),
            ("unix://relative", "`unix://relative` is no address of an engine"),
            ("/run/ci-tool.sock", "`/run/ci-tool.sock` is no address of an engine"),
            ("http://x", "`http://x` is no address of an engine"),
            ("tcp://host:1", "engines at `tcp://` addresses come later"),
            ("ssh://host", "engines at `ssh://` addresses come later"),
        ] {
            assert_eq!(socket(text), expected, "{text}");
        }
    }
}
