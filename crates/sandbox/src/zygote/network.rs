//! The network namespace of the next container, made while nobody waits for it.
//!
//! A new network namespace is the dearest part of a container's start. So the zygote itself always
//! stands in a fresh one: a container is cloned into it for nothing, and the zygote moves on to
//! another as soon as it has nothing else to do. Each serves one container and goes with it.

use crate::sys;
use crate::wire::Failure;

/// The state of the network namespace that this process is in.
pub(super) enum Network {
    /// The host's, which all containers share.
    Host,
    /// Fresh: the next container may have it.
    Ready,
    /// A container has it, or it is the one that the zygote was started in.
    Used,
    /// No other could be made; the next container tries again and is told why.
    Stuck,
}

impl Network {
    pub(super) fn new(host: bool) -> Network {
        if host { Network::Host } else { Network::Used }
    }

    /// Whether another one should be made when there is time.
    pub(super) fn is_used(&self) -> bool {
        matches!(self, Network::Used)
    }

    /// Notes that a container was cloned into it.
    pub(super) fn use_up(&mut self) {
        if let Network::Ready = self {
            *self = Network::Used;
        }
    }

    /// Moves on to a fresh one while nobody waits. Who fails is not tried again until it is needed.
    pub(super) fn renew(&mut self) {
        *self = if fresh().is_ok() { Network::Ready } else { Network::Stuck };
    }

    /// Makes sure that a container may be cloned now.
    pub(super) fn ready(&mut self) -> Result<(), Failure> {
        if matches!(self, Network::Used | Network::Stuck) {
            fresh()?;
            *self = Network::Ready;
        }
        Ok(())
    }
}

fn fresh() -> Result<(), Failure> {
    sys::enter_new_network().map_err(Failure::setup("make a network namespace"))?;
    sys::loopback_up().map_err(Failure::setup("bring the loopback up"))
}
