//! The network of containers, by the engine's settings.

use crate::{Error, certificates};
use api::Surroundings;
use config::engine::{Engine, Network};
use sandbox::network::{Bridge, Guard, Subnet};

/// Makes the engine's network, if there is a guard for it. Blocks.
pub(crate) fn open(config: &Engine, guard: Option<Guard>) -> Result<Option<Bridge>, Error> {
    let Some(guard) = guard else { return Ok(None) };
    let subnet = config.subnet.and_then(|(first, prefix)| Subnet::new(first, prefix));
    let bridge = Bridge::open(subnet, guard);
    bridge.map(Some).map_err(|error| Error::unfit("network", &error, error.hint()))
}

/// What commands get of the machine: nothing, where they reach nobody.
pub(crate) fn surroundings(config: &Engine, proxies: Vec<(String, String)>) -> Surroundings {
    match config.network {
        Network::None => Surroundings::default(),
        Network::Bridge | Network::Host => {
            let certificates = certificates::of(config.ca_certificates.as_deref());
            Surroundings { proxies, certificates }
        }
    }
}
