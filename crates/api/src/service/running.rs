//! [`RunningServices`]: what runs in the background of one session.

use super::instance::Instance;
use protocol::{Digest, Error};
use sandbox::Wish;
use sandbox::network::Party;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The services of a session that run, and its party on the network of containers. The engine gives
/// every session one.
pub struct RunningServices {
    party: Option<Party>,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    instances: HashMap<Digest, Arc<Instance>>,
    /// Whether the session is over, so that nothing begins any more.
    over: bool,
}

impl RunningServices {
    /// None runs yet. Without a party there is no network on which services could be reached.
    pub fn new(party: Option<Party>) -> Self {
        Self { party, table: Mutex::default() }
    }

    /// The session is over: asks everything that runs to end.
    pub fn end(&self) {
        let instances: Vec<_> = {
            let mut table = self.lock();
            table.over = true;
            table.instances.values().cloned().collect()
        };
        instances.iter().for_each(|instance| instance.wish(Wish::End));
    }

    /// Whom containers of this session reach.
    pub(crate) fn party(&self) -> Option<&Party> {
        self.party.as_ref()
    }

    /// The party, which services cannot do without.
    pub(super) fn need_party(&self) -> Result<&Party, Error> {
        self.party.as_ref().ok_or_else(|| {
            Error::environment("services need the engine's own network, which is off")
                .with_hint("take `network` out of engine.toml")
        })
    }

    /// The instance of this name, if it runs.
    pub(super) fn find(&self, identity: &Digest) -> Option<Arc<Instance>> {
        self.lock().instances.get(identity).cloned()
    }

    /// The instance that is reached by this name, if one is.
    pub(super) fn named(&self, hostname: &str) -> Option<Arc<Instance>> {
        let table = self.lock();
        table.instances.values().find(|instance| instance.hostname() == hostname).cloned()
    }

    /// The instance of this name, or a new one, which the second says.
    pub(super) fn find_or_make(
        &self,
        identity: &Digest,
        make: impl FnOnce() -> Arc<Instance>,
    ) -> Result<(Arc<Instance>, bool), Error> {
        let mut table = self.lock();
        if table.over {
            return Err(Error::new(protocol::ErrorKind::Cancelled, "the session has ended"));
        }
        if let Some(instance) = table.instances.get(identity) {
            return Ok((instance.clone(), false));
        }
        let instance = make();
        table.instances.insert(*identity, instance.clone());
        Ok((instance, true))
    }

    /// Forgets an instance that has ended.
    pub(super) fn forget(&self, identity: &Digest) {
        self.lock().instances.remove(identity);
    }

    /// Every change is one insert or one remove: a panic elsewhere leaves the table whole.
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
