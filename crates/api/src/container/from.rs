//! `Container.from` and `Container.import`: starts from an image.

use super::config::set;
use super::ports::ExposedPort;
use super::{Config, Container};
use crate::debian::Address;
use crate::file::File;
use crate::image::{Base, Pulled, Reach};
use crate::lock::{self, Lookup};
use crate::service::{Forward, Lease, Service};
use crate::services::Services;
use crate::tree::Tree;
use graph::{Args, Builder, Context, Enum, Op, Ref};
use image::ImageConfig;
use protocol::Error;
use protocol::attach::LockPolicy;
use std::net::SocketAddr;
use std::sync::Arc;

/// Search path of a Debian image.
const DEBIAN_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

pub(super) fn install(builder: &mut Builder) {
    builder.install::<From>().install::<Import>().install::<ImageRef>();
}

/// How a registry is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
pub(crate) enum RegistryProtocol {
    /// Encrypted.
    Https,
    /// Plain.
    Http,
}

/// Starts from an image: its root file system replaces the container's, its configuration is added.
#[derive(Args)]
struct From {
    /// Where the image is: `[registry/]repository[:tag][@digest]`, or `deb://bookworm+python3`, which
    /// assembles one from Debian packages.
    address: String,
    /// A service that is the registry.
    registry_service: Option<Ref<Service>>,
    /// How to speak to the registry; without a word encrypted, or plain on this very machine.
    protocol: Option<RegistryProtocol>,
    /// Accept any certificate of the registry.
    #[arg(default = "false", name = "insecureSkipTLSVerify")]
    insecure_skip_tls_verify: bool,
}

impl Op for From {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "from";

    async fn run(&self, container: &Container, cx: &Context) -> Result<Container, Error> {
        let registry = self.registry_service.is_some()
            || self.protocol.is_some()
            || self.insecure_skip_tls_verify;
        let Some(address) = Address::parse(&self.address)? else {
            let mut reach = reach(self.protocol, self.insecure_skip_tls_verify);
            let way = Way::to(&self.address, self.registry_service.as_deref(), cx).await?;
            reach.address = way.as_ref().map(Way::address);
            return container.pulled(&self.address, reach, cx).await;
        };
        if registry {
            return Err(Error::user(
                "a `deb://` image comes from no registry: leave out its settings",
            ));
        }
        container.of_packages(&address, cx).await
    }
}

/// How a registry is to be spoken with.
pub(super) fn reach(protocol: Option<RegistryProtocol>, insecure: bool) -> Reach {
    let protocol = protocol.map(|protocol| match protocol {
        RegistryProtocol::Https => registry::Protocol::Https,
        RegistryProtocol::Http => registry::Protocol::Http,
    });
    Reach { protocol, insecure, address: None }
}

/// The way to a registry that is a service, which runs for as long as this lives.
pub(super) struct Way {
    forward: Forward,
    _lease: Lease,
}

impl Way {
    /// To this service, or to the one of the session that the address names; none if it names none.
    pub(super) async fn to(
        address: &str,
        service: Option<&Service>,
        cx: &Context,
    ) -> Result<Option<Self>, Error> {
        let reference = registry::Reference::parse(address);
        let host = reference.as_ref().map(registry::Reference::registry).unwrap_or_default();
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) => (name, port.parse().ok()),
            None => (host, None),
        };
        let lease = match service {
            Some(service) => Some(service.start(cx).await?),
            None => Lease::of_host(name, cx),
        };
        let Some(lease) = lease else { return Ok(None) };
        let port = port.or_else(|| lease.ports().first().map(|port| port.number));
        let port = port.ok_or_else(|| {
            let message = format!("nobody says on which port the registry {name} listens");
            Error::user(message).with_hint("give the port in the address, or expose it")
        })?;
        let forward = lease.forwarded(port, cx).await?;
        Ok(Some(Self { forward, _lease: lease }))
    }

    /// Where the registry is reached.
    pub(super) fn address(&self) -> SocketAddr {
        self.forward.address()
    }
}

/// Starts from an image in a file: an OCI layout as a tar, or what `docker save` writes.
#[derive(Args)]
struct Import {
    /// The file, compressed or not.
    source: Ref<File>,
    /// Which image, where the file holds several.
    #[arg(default = "\"\"")]
    tag: String,
}

impl Op for Import {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "import";

    async fn run(&self, container: &Container, cx: &Context) -> Result<Container, Error> {
        let pulled = crate::image::import(&self.source, &self.tag, &container.platform, cx).await?;
        Ok(container.with_image(pulled))
    }
}

/// The full name of the image that the container began from, with its digest.
#[derive(Args)]
struct ImageRef {}

impl Op for ImageRef {
    type Parent = Container;
    type Output = String;
    const NAME: &'static str = "imageRef";

    async fn run(&self, container: &Container, _: &Context) -> Result<String, Error> {
        match &container.image_ref {
            Some(reference) => Ok(reference.to_string()),
            None => Err(Error::user(
                "the container is no image of a registry, or its configuration was changed since",
            )),
        }
    }
}

impl Container {
    /// The container that begins from the image at an address, for the engine's own platform.
    pub(crate) async fn at(address: &str, cx: &Context) -> Result<Self, Error> {
        Self::scratch(crate::platform::current()).based_on(address, cx).await
    }

    /// This container with the image at an address as its root, as `from` without further words does it.
    pub(crate) async fn based_on(&self, address: &str, cx: &Context) -> Result<Self, Error> {
        let from = From {
            address: address.to_owned(),
            registry_service: None,
            protocol: None,
            insecure_skip_tls_verify: false,
        };
        from.run(self, cx).await
    }

    async fn pulled(&self, address: &str, reach: Reach, cx: &Context) -> Result<Self, Error> {
        let images = &cx.get::<Services>()?.images;
        let access = images.access(&self.auths, cx);
        let pulled = images.pull(&access, (address, reach), &self.platform, cx).await?;
        Ok(self.with_image(pulled))
    }

    /// This container with an image as its root that is assembled from Debian packages.
    pub(super) async fn assembled(&self, address: &str, cx: &Context) -> Result<Self, Error> {
        let address = Address::parse(address)?;
        let address = address.ok_or_else(|| Error::internal("that is no Debian image"))?;
        self.of_packages(&address, cx).await
    }

    async fn of_packages(&self, address: &Address, cx: &Context) -> Result<Self, Error> {
        if &*self.platform != crate::platform::current() {
            let message = format!("a `deb://` image for {} cannot be made here", self.platform);
            return Err(Error::user(message));
        }
        let debian = &cx.get::<Services>()?.debian;
        let image = match lock::is_used(cx) {
            true => {
                let inputs = vec![address.to_string(), self.platform.to_string()];
                let policy = LockPolicy::Pin;
                let lookup = Lookup { operation: crate::image::OPERATION, inputs, policy };
                let packages = lock::settled(cx, lookup, debian.resolved(address, cx)).await?;
                debian.locked_image(address, &packages, cx).await?
            }
            false => debian.image(address, cx).await?,
        };
        let mut changed = self.with_config(|config| {
            set(&mut config.env, "PATH", DEBIAN_PATH.to_owned());
        });
        changed.rootfs = Tree::settled(image.identity, image.snapshot);
        changed.base = None;
        changed.steps = Arc::default();
        Ok(changed)
    }

    /// This container with an image as its root, and what the image says added to its configuration.
    pub(super) fn with_image(&self, image: Pulled) -> Self {
        let mut changed = self.with_config(|config| config.add(&image.config));
        changed.rootfs = image.tree;
        changed.image_ref = image.reference.map(Arc::from);
        changed.base = Some(Arc::new(base(image.config)));
        changed.steps = Arc::default();
        changed
    }
}

/// What is kept of an image for the image that is made from it.
fn base(image: ImageConfig) -> Base {
    Base {
        created: image.created,
        author: image.author,
        os_version: image.platform.os_version,
        history: image.history,
        diff_ids: image.rootfs.diff_ids,
    }
}

impl Config {
    /// Takes over what an image says. Variables, labels and ports that were set before stay unless the
    /// image has the same.
    fn add(&mut self, image: &ImageConfig) {
        let image = &image.config;
        for variable in &image.env {
            let (name, value) = variable.split_once('=').unwrap_or((variable, ""));
            if !name.is_empty() {
                set(&mut self.env, name, value.to_owned());
            }
        }
        for (name, value) in &image.labels {
            set(&mut self.labels, name, value.clone());
        }
        for port in image.exposed_ports.keys().filter_map(|text| ExposedPort::parse(text)) {
            self.expose(port);
        }
        self.workdir.clone_from(&image.working_dir);
        self.user.clone_from(&image.user);
        self.entrypoint.clone_from(&image.entrypoint);
        self.default_args.clone_from(&image.cmd);
        self.other.clone_from(&image.other);
    }
}
