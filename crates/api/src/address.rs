//! `Address`: a text that names an object, for clients that let the engine read it.

use crate::container::Container;
use crate::secret::Secret;
use crate::service::Service;
use crate::socket::Socket;
use crate::volume::Volume;
use graph::{Args, Builder, Context, Object, Op, Root, Scope};
use protocol::Error;

pub(crate) fn install(builder: &mut Builder) {
    builder
        .install::<MakeAddress>()
        .install::<Value>()
        .install::<SecretAt>()
        .install::<SocketAt>()
        .install::<ContainerAt>()
        .install::<VolumeAt>()
        .install::<ServiceAt>();
}

/// A text that names an object.
pub(crate) struct Address(String);

impl Address {
    /// The text.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

impl Object for Address {
    const TYPE: &'static str = "Address";
}

/// A text that names an object: a secret or a socket of your machine.
#[derive(Args)]
struct MakeAddress {
    /// The text.
    value: String,
}

impl Op for MakeAddress {
    type Parent = Root;
    type Output = Address;
    const NAME: &'static str = "address";

    async fn run(&self, _: &Root, _: &Context) -> Result<Address, Error> {
        Ok(Address(self.value.clone()))
    }
}

/// The text.
#[derive(Args)]
struct Value {}

impl Op for Value {
    type Parent = Address;
    type Output = String;
    const NAME: &'static str = "value";

    async fn run(&self, address: &Address, _: &Context) -> Result<String, Error> {
        Ok(address.0.clone())
    }
}

/// The secret at this address: `env://NAME`, `file://path` or `cmd://line`.
#[derive(Args)]
struct SecretAt {}

impl Op for SecretAt {
    type Parent = Address;
    type Output = Secret;
    const NAME: &'static str = "secret";
    const SCOPE: Scope = Scope::Session;

    async fn run(&self, address: &Address, _: &Context) -> Result<Secret, Error> {
        Secret::kept(&address.0, None)
    }
}

/// The socket at this address: a path, `unix://path` or `tcp://host:port`.
#[derive(Args)]
struct SocketAt {}

impl Op for SocketAt {
    type Parent = Address;
    type Output = Socket;
    const NAME: &'static str = "socket";
    const SCOPE: Scope = Scope::Session;

    async fn run(&self, address: &Address, _: &Context) -> Result<Socket, Error> {
        Socket::at(&address.0)
    }
}

/// The container that begins from the image at this address: `[registry/]repository[:tag][@digest]` or
/// `deb://suite[+package...]`.
#[derive(Args)]
struct ContainerAt {}

impl Op for ContainerAt {
    type Parent = Address;
    type Output = Container;
    const NAME: &'static str = "container";

    async fn run(&self, address: &Address, cx: &Context) -> Result<Container, Error> {
        Container::at(&address.0, cx).await
    }
}

/// The volume at this address: `engine-volume://name[?subdir=directory]`, or
/// `sshfs://user@host[:port]/directory?privateKey=<secret>&knownHosts=<secret>`.
#[derive(Args)]
struct VolumeAt {}

impl Op for VolumeAt {
    type Parent = Address;
    type Output = Volume;
    const NAME: &'static str = "volume";
    const SCOPE: Scope = Scope::Session;
    const EAGER: bool = true;

    async fn run(&self, address: &Address, _: &Context) -> Result<Volume, Error> {
        Volume::at(&address.0)
    }
}

/// The service at this address, as your machine reaches it: `tcp://host:port` or `udp://host:port`.
#[derive(Args)]
struct ServiceAt {}

impl Op for ServiceAt {
    type Parent = Address;
    type Output = Service;
    const NAME: &'static str = "service";
    const SCOPE: Scope = Scope::Session;
    const EAGER: bool = true;

    async fn run(&self, address: &Address, cx: &Context) -> Result<Service, Error> {
        Service::at(&address.0, cx)
    }
}
