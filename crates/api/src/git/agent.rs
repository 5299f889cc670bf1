//! [`Lent`]: an agent of the caller's machine, and the hosts that are trusted, as files that `ssh` opens.
//!
//! Both are in memory: the socket is ours, and whoever connects there is connected through the client. A program that
//! runs beside the engine finds them by the engine's own open descriptors.

use crate::container::{Listening, lend_socket};
use crate::services::Services;
use crate::socket::Socket;
use git::Agent;
use graph::Context;
use protocol::Error;
use sandbox::memory_place;
use store::Mount;

/// An agent that programs of this engine may ask while this is held.
pub(super) struct Lent {
    agent: Agent,
    _socket: Mount,
    _listening: Listening,
    _known_hosts: Option<Mount>,
}

impl Lent {
    /// Lends a socket of the caller. Hosts that are not in `known_hosts` are refused; where it is empty, hosts are trusted
    /// when they are first met.
    pub(super) fn new(socket: &Socket, known_hosts: &str, cx: &Context) -> Result<Self, Error> {
        let services = cx.get::<Services>()?;
        let (mount, listening) = lend_socket(socket, cx)?;
        let failed = |error: sandbox::Error| Error::environment(error.to_string());
        let strict = !known_hosts.trim().is_empty();
        let (file, held) = match strict {
            true => {
                let text = format!("{}\n", known_hosts.trim());
                let file = sandbox::memory_file(text.as_bytes(), 0o600, (0, 0)).map_err(failed)?;
                (memory_place(&file), Some(file))
            }
            false => (services.git.known_hosts()?.to_owned(), None),
        };
        let agent = Agent { socket: memory_place(&mount), known_hosts: file, strict };
        Ok(Self { agent, _socket: mount, _listening: listening, _known_hosts: held })
    }

    pub(super) fn agent(&self) -> Agent {
        self.agent.clone()
    }
}
