//! Ports that a container says it listens on.

use super::{Config, Container};
use graph::{Args, Builder, Context, Enum, Object, Op};
use protocol::Error;

pub(super) fn install(builder: &mut Builder) {
    builder
        .install::<WithExposedPort>()
        .install::<WithoutExposedPort>()
        .install::<ExposedPorts>()
        .install::<Number>()
        .install::<Protocol>()
        .install::<Description>()
        .install::<SkipHealthcheck>();
}

/// A protocol of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
#[graph(name = "NetworkProtocol")]
pub(crate) enum NetworkProtocol {
    /// Streams.
    Tcp,
    /// Datagrams.
    Udp,
}

/// A port that a container listens on. Number and protocol are what it is known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExposedPort {
    pub(crate) number: u16,
    pub(crate) protocol: NetworkProtocol,
    pub(crate) description: Option<String>,
    pub(crate) skip_healthcheck: bool,
}

impl Object for ExposedPort {
    const TYPE: &'static str = "Port";
}

impl ExposedPort {
    /// From `80/tcp` as images write it; none for what is no port. A port of an image is not waited
    /// for: nobody said that it answers.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (number, protocol) = text.split_once('/').unwrap_or((text, "tcp"));
        let protocol = match protocol {
            "tcp" => NetworkProtocol::Tcp,
            "udp" => NetworkProtocol::Udp,
            _ => return None,
        };
        let number = number.parse().ok()?;
        Some(Self { number, protocol, description: None, skip_healthcheck: true })
    }
}

/// As images write it.
impl std::fmt::Display for ExposedPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let protocol = match self.protocol {
            NetworkProtocol::Tcp => "tcp",
            NetworkProtocol::Udp => "udp",
        };
        write!(f, "{}/{protocol}", self.number)
    }
}

impl Config {
    /// Adds a port; one that is there is replaced.
    pub(super) fn expose(&mut self, port: ExposedPort) {
        self.hide(port.number, port.protocol);
        self.ports.push(port);
    }

    fn hide(&mut self, number: u16, protocol: NetworkProtocol) {
        self.ports.retain(|port| (port.number, port.protocol) != (number, protocol));
    }
}

/// Says that the container listens on a port.
#[derive(Args)]
struct WithExposedPort {
    /// What it is for.
    description: Option<String>,
    /// Do not wait for it when the container runs as a service.
    #[arg(default = "false")]
    experimental_skip_healthcheck: bool,
    /// Its number.
    port: i64,
    /// Its protocol.
    #[arg(default = "TCP")]
    protocol: NetworkProtocol,
}

impl Op for WithExposedPort {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withExposedPort";

    async fn run(&self, container: &Container, _: &Context) -> Result<Container, Error> {
        let port = ExposedPort {
            number: port_number(self.port)?,
            protocol: self.protocol,
            description: self.description.clone(),
            skip_healthcheck: self.experimental_skip_healthcheck,
        };
        Ok(container.with_config(|config| config.expose(port)))
    }
}

/// Says that the container does not listen on a port.
#[derive(Args)]
struct WithoutExposedPort {
    /// Its number.
    port: i64,
    /// Its protocol.
    #[arg(default = "TCP")]
    protocol: NetworkProtocol,
}

impl Op for WithoutExposedPort {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withoutExposedPort";

    async fn run(&self, container: &Container, _: &Context) -> Result<Container, Error> {
        let number = port_number(self.port)?;
        Ok(container.with_config(|config| config.hide(number, self.protocol)))
    }
}

/// A number that is one of a port.
pub(crate) fn port_number(port: i64) -> Result<u16, Error> {
    let number = u16::try_from(port).ok().filter(|number| *number > 0);
    number.ok_or_else(|| Error::user(format!("{port} is no port: ports go from 1 to 65535")))
}

/// All ports that the container listens on.
#[derive(Args)]
struct ExposedPorts {}

impl Op for ExposedPorts {
    type Parent = Container;
    type Output = Vec<ExposedPort>;
    const NAME: &'static str = "exposedPorts";

    async fn run(&self, container: &Container, _: &Context) -> Result<Vec<ExposedPort>, Error> {
        Ok(container.config.ports.clone())
    }
}

/// Its number.
#[derive(Args)]
struct Number {}

impl Op for Number {
    type Parent = ExposedPort;
    type Output = i64;
    const NAME: &'static str = "port";

    async fn run(&self, port: &ExposedPort, _: &Context) -> Result<i64, Error> {
        Ok(port.number.into())
    }
}

/// Its protocol.
#[derive(Args)]
struct Protocol {}

impl Op for Protocol {
    type Parent = ExposedPort;
    type Output = NetworkProtocol;
    const NAME: &'static str = "protocol";

    async fn run(&self, port: &ExposedPort, _: &Context) -> Result<NetworkProtocol, Error> {
        Ok(port.protocol)
    }
}

/// What it is for; null where nobody said it.
#[derive(Args)]
struct Description {}

impl Op for Description {
    type Parent = ExposedPort;
    type Output = Option<String>;
    const NAME: &'static str = "description";

    async fn run(&self, port: &ExposedPort, _: &Context) -> Result<Option<String>, Error> {
        Ok(port.description.clone())
    }
}

/// Whether it is not waited for when the container runs as a service.
#[derive(Args)]
struct SkipHealthcheck {}

impl Op for SkipHealthcheck {
    type Parent = ExposedPort;
    type Output = bool;
    const NAME: &'static str = "experimentalSkipHealthcheck";

    async fn run(&self, port: &ExposedPort, _: &Context) -> Result<bool, Error> {
        Ok(port.skip_healthcheck)
    }
}
