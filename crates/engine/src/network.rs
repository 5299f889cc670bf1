//! The network of containers, by the engine's settings.

use crate::{Error, certificates};
use api::{Surroundings, Web};
use config::engine::{Engine, Network};
use fetch::Fetcher;
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

/// How the engine itself reaches web servers for its users.
pub(crate) fn web(config: &Engine) -> Result<Web, Error> {
    let read = |path: &std::path::PathBuf| {
        let failed = |source| Error::File { path: path.clone(), source };
        std::fs::read(path).map_err(failed)
    };
    let authorities = config.ca_certificates.as_ref().map(read).transpose()?;
    let authorities = authorities.filter(|pem| !pem.is_empty()).map(Into::into);
    let proxy = config.proxy.clone();
    let settings = fetch::Settings { proxy, authorities, ..fetch::Settings::default() };
    Ok(Web::new(Fetcher::new(settings)))
}
