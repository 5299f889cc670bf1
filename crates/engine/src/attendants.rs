//! The processes that are started while the engine has one thread: all others are theirs.

use crate::{Error, Settings};
use config::engine::{Engine, Network};
use sandbox::network::Guard;
use sandbox::{Errands, Zygote};

/// Attendants of the engine, in roles of the same program.
pub(crate) struct Attendants {
    /// Starts containers.
    pub(crate) zygote: Zygote,
    /// Cleans up after the network, where there is one.
    pub(crate) guard: Option<Guard>,
    /// Runs programs of the host that the engine needs.
    pub(crate) errands: Errands,
    /// Variables that say how the network is reached, for all that they start.
    pub(crate) proxies: Vec<(String, String)>,
}

impl Attendants {
    /// Starts them. Must be called while the process has one thread.
    pub(crate) fn start(settings: &Settings, config: &Engine) -> Result<Attendants, Error> {
        let program = settings.program.as_path();
        let failed = |error: sandbox::Error| Error::part("sandbox")(&error);
        let guard = match config.network {
            Network::Bridge => Some(Guard::start(program, &["engine", "guard"]).map_err(failed)?),
            Network::None | Network::Host => None,
        };
        let zygote = Zygote::start(program, &["engine", "zygote"]).map_err(failed)?;
        let errands = Errands::start(program, &["engine", "errands"]).map_err(failed)?;
        Ok(Attendants { zygote, guard, errands, proxies: settings.proxies.clone() })
    }
}
