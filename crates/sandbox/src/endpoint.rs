//! A port on the loopback of a container that the engine answers: what a run asks for, and what it gets.
//!
//! The port is opened by the container's own process, before it gives up its powers: nobody has to enter the
//! container's network, and it is there whatever the container can reach. The command learns the number from
//! its environment; the engine gets the listening socket, and the container's root to look around in.

use std::os::fd::OwnedFd;
use tokio::sync::oneshot;

/// Asks for a port on the loopback of the container.
pub struct Endpoint {
    /// Variables of the command that get its number.
    pub variables: Vec<String>,
    /// Gets what the container opened, before the command begins.
    pub opened: oneshot::Sender<Opened>,
}

/// What a container opened for the engine.
#[derive(Debug)]
pub struct Opened {
    /// A socket that listens on the port, and does not block.
    pub listener: OwnedFd,
    /// The root that the command sees, with all that is mounted in it. Nothing can be read from the
    /// descriptor itself.
    pub root: OwnedFd,
}
