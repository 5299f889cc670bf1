//! [`PortForward`]: a port that leads to another.

use crate::container::{ExposedPort, NetworkProtocol};
use graph::Input;
use protocol::{DigestBuilder, Error};

/// A port that leads to another.
#[derive(Clone, Debug, PartialEq, Eq, Input)]
#[graph(name = "PortForward")]
pub(crate) struct PortForward {
    /// The port that it leads to.
    backend: i64,
    /// The port that is connected to; one is chosen where none is given.
    frontend: Option<i64>,
    /// The protocol of both.
    #[arg(default = "TCP")]
    protocol: NetworkProtocol,
}

/// The same, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Forwarded {
    /// None is any.
    pub(super) frontend: Option<u16>,
    pub(super) backend: u16,
    pub(super) protocol: NetworkProtocol,
}

impl PortForward {
    pub(super) fn checked(&self) -> Result<Forwarded, Error> {
        let frontend = self.frontend.filter(|port| *port != 0);
        Ok(Forwarded {
            frontend: frontend.map(crate::container::port_number).transpose()?,
            backend: crate::container::port_number(self.backend)?,
            protocol: self.protocol,
        })
    }
}

impl Forwarded {
    /// From a port to the very same, or from any.
    pub(super) fn of(port: &ExposedPort, frontend: Option<u16>) -> Self {
        Self { frontend, backend: port.number, protocol: port.protocol }
    }

    pub(super) fn is_udp(self) -> bool {
        self.protocol == NetworkProtocol::Udp
    }

    /// The port that is connected to, as one that a service listens on.
    pub(super) fn exposed(self, number: u16) -> ExposedPort {
        ExposedPort { number, protocol: self.protocol, description: None, skip_healthcheck: true }
    }

    pub(super) fn digest_into(self, digest: &mut DigestBuilder) {
        digest.number(u64::from(self.frontend.unwrap_or_default()));
        digest.number(u64::from(self.backend)).number(u64::from(self.is_udp()));
    }
}
