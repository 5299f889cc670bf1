//! [`Route`]: the way to an engine that runs already, and how it is opened.
//!
//! What is said on the way is the same for all of them. One that leaves this machine has limits: an
//! engine that has vanished must not be waited for.

mod ssh;
mod tcp;

pub(crate) use ssh::Ssh;
pub use tcp::Certificates;
pub(crate) use tcp::Tcp;

use crate::Error;
use link::Stream;
use std::fmt;
use std::path::{Path, PathBuf};
use tokio::net::UnixStream;

/// Longest path that fits into a unix socket address, its closing zero left out.
const MAX_SOCKET_PATH: usize = 107;

/// The way to an engine.
#[derive(Clone, Debug)]
pub(crate) enum Route {
    /// A socket of this machine.
    Socket(PathBuf),
    /// A port of this or another machine.
    Tcp(Tcp),
    /// Another machine, by ssh.
    Ssh(Ssh),
}

impl Route {
    /// Opens the way.
    pub(crate) async fn open(&self) -> Result<Stream, Error> {
        match self {
            Self::Socket(path) => Ok(socket(path).await?.into()),
            Self::Tcp(tcp) => {
                let opening = tokio::time::timeout(link::OPEN_TIME, tcp.open());
                opening.await.unwrap_or_else(|_| Err(self.silent()))
            }
            Self::Ssh(ssh) => ssh.open(),
        }
    }

    /// Whether it stays on this machine: only then can open directories be handed over on it.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self, Self::Socket(_))
    }

    /// The engine cannot be reached, for this reason.
    pub(crate) fn unreachable(&self, reason: impl fmt::Display) -> Error {
        Error::Unreachable { engine: self.to_string(), reason: reason.to_string() }
    }

    /// The engine does not answer.
    pub(crate) fn silent(&self) -> Error {
        self.unreachable("it does not answer")
    }
}

impl fmt::Display for Route {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => write!(formatter, "unix://{}", path.display()),
            Self::Tcp(tcp) => write!(formatter, "{tcp}"),
            Self::Ssh(ssh) => write!(formatter, "{ssh}"),
        }
    }
}

/// Dials a socket of this machine and looks who is at the other end.
pub(crate) async fn socket(path: &Path) -> Result<UnixStream, Error> {
    if path.as_os_str().len() > MAX_SOCKET_PATH {
        return Err(Error::SocketPathTooLong(path.to_owned()));
    }
    let absent = |source| Error::Absent { path: path.to_owned(), source };
    let stream = UnixStream::connect(path).await.map_err(absent)?;
    let uid = stream.peer_cred().map_err(absent)?.uid();
    if uid != 0 && uid != rustix::process::geteuid().as_raw() {
        return Err(Error::Foreign { path: path.to_owned(), uid });
    }
    Ok(stream)
}
