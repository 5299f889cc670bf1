//! An engine on a machine that one can log in to: ssh runs `ci-tool engine dial-stdio` there, which
//! starts the engine of that user where needed and passes bytes on.
//!
//! Which key, which port, which way round: all that is ssh's own configuration.

use crate::Error;
use link::{Program, Stream};
use std::fmt;
use tokio::process::Command;

/// Starts ssh so that Ctrl-C, which goes to all programs on a terminal, does not end it: what an interrupted command has still to
/// say goes over this connection. A process group of its own would keep ssh from asking for anything.
const START: &str = r#"
command -v ssh >/dev/null || { echo 'cannot run `ssh`: it is not installed' >&2; exit 127; }
trap '' INT
exec ssh "$@"
"#;

/// What runs on the other machine.
const REMOTE_COMMAND: [&str; 3] = ["ci-tool", "engine", "dial-stdio"];

/// A login on another machine.
#[derive(Clone, Debug)]
pub(crate) struct Ssh {
    user: Option<String>,
    host: String,
    port: Option<u16>,
}

impl Ssh {
    /// Reads `[user@]host[:port]`; none when it is something else.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (user, place) = match text.rsplit_once('@') {
            Some((user, place)) => (Some(user.to_owned()), place),
            None => (None, text),
        };
        let (host, port) = match place.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']')?;
                (host, if port.is_empty() { None } else { Some(port.strip_prefix(':')?) })
            }
            None => match place.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (place, None),
            },
        };
        let port = match port {
            Some(port) => Some(port.parse().ok().filter(|port| *port > 0)?),
            None => None,
        };
        // A name with a hyphen in front would be taken for an option.
        let sound = |name: &str| !name.is_empty() && !name.starts_with('-') && !name.contains('/');
        let fits = sound(host) && user.as_deref().is_none_or(sound);
        fits.then(|| Self { user, host: host.to_owned(), port })
    }

    /// Starts ssh, whose streams are the connection once it has logged in.
    pub(crate) fn open(&self) -> Result<Stream, Error> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", START, "ssh"]);
        // No terminal on the other side, and no waiting for a machine that is not there.
        command.args(["-T", "-o"]).arg(format!("ConnectTimeout={}", link::OPEN_TIME.as_secs()));
        if let Some(port) = self.port {
            command.arg("-p").arg(port.to_string());
        }
        if let Some(user) = &self.user {
            command.args(["-l", user]);
        }
        command.arg("--").arg(&self.host).args(REMOTE_COMMAND);
        let program = Program::start(command).map_err(|error| Error::Unreachable {
            engine: self.to_string(),
            reason: format!("cannot run `ssh`: {error}"),
        })?;
        Ok(Stream::Program(Box::new(program)))
    }
}

impl fmt::Display for Ssh {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ssh://")?;
        if let Some(user) = &self.user {
            write!(formatter, "{user}@")?;
        }
        match self.host.contains(':') {
            true => write!(formatter, "[{}]", self.host)?,
            false => write!(formatter, "{}", self.host)?,
        }
        match self.port {
            Some(port) => write!(formatter, ":{port}"),
            None => Ok(()),
        }
    }
}
