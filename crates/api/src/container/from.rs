//! `Container.from`: starts from an image.

use super::Container;
use super::config::set;
use crate::debian::Address;
use crate::service::Service;
use crate::services::Services;
use crate::tree::Tree;
use graph::{Args, Builder, Context, Enum, Op, Ref};
use protocol::{Error, ErrorKind};

/// Search path of a Debian image.
const DEBIAN_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

pub(super) fn install(builder: &mut Builder) {
    builder.install::<From>();
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
    /// Where the image is. `deb://bookworm+python3` assembles one from Debian packages.
    address: String,
    /// A service that is the registry.
    registry_service: Option<Ref<Service>>,
    /// How to speak to the registry.
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
        let address = match Address::parse(&self.address)? {
            Some(address) if !registry => address,
            Some(_) => {
                return Err(Error::user(
                    "a `deb://` image comes from no registry: leave out its settings",
                ));
            }
            None => return Err(no_registries(&self.address)),
        };
        if &*container.platform != crate::platform::current() {
            let message =
                format!("a `deb://` image for {} cannot be made here", container.platform);
            return Err(Error::user(message));
        }
        let services = cx.get::<Services>()?;
        let image = services.debian.image(&address, cx).await?;
        let mut changed = container.with_config(|config| {
            set(&mut config.env, "PATH", DEBIAN_PATH.to_owned());
        });
        changed.rootfs = Tree::settled(image.identity, image.snapshot);
        Ok(changed)
    }
}

fn no_registries(address: &str) -> Error {
    let message = format!("image `{address}`: images from registries are not implemented yet");
    Error::new(ErrorKind::NotImplemented, message)
        .with_hint("start from Debian packages, e.g. deb://bookworm or deb://bookworm+python3")
}
