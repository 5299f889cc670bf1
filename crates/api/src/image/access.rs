//! Who asks a registry, and how: logins, protocols, and what tags mean in a session.

use super::Images;
use super::error::of_registry;
use crate::host::Host;
use graph::Context;
use protocol::attach::Login;
use protocol::{Digest, Error};
use registry::{
    Chain, Credential, Credentials, Fetched, Found, Given, Protocol, Reference, Registries,
};
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;

/// Sessions whose tags are kept. An older one that is still there asks again.
const MOST_SESSIONS: usize = 256;

/// A login that a container brings.
#[derive(Clone)]
pub(crate) struct Auth {
    /// The registry, by its host.
    pub(crate) registry: String,
    pub(crate) username: String,
    pub(crate) password: Arc<str>,
}

/// How a registry is to be spoken with, where the caller says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Reach {
    pub(crate) protocol: Option<Protocol>,
    pub(crate) insecure: bool,
    /// Where the registry is, if it is a service.
    pub(crate) address: Option<SocketAddr>,
}

/// Registries as somebody reaches them.
#[derive(Clone)]
pub(crate) struct Access {
    pub(super) registries: Registries,
    /// Who that is, in memory alone.
    asker: Digest,
}

/// What is known of a session.
#[derive(Default)]
struct Known {
    /// Registries as it reaches them without logins of its own.
    registries: Option<Registries>,
    tags: Tags,
}

/// What a name meant when it was first asked for in this way. Shared with all who ask at the same
/// time.
type Tags = HashMap<(String, Reach, Digest), Arc<OnceCell<Arc<Fetched>>>>;

#[derive(Default)]
pub(super) struct Sessions(Mutex<(HashMap<String, Known>, VecDeque<String>)>);

impl Sessions {
    fn with<T>(&self, id: &str, look: impl FnOnce(&mut Known) -> T) -> T {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, order) = &mut *sessions;
        if !known.contains_key(id) {
            order.push_back(id.to_owned());
        }
        if order.len() > MOST_SESSIONS
            && let Some(oldest) = order.pop_front()
        {
            known.remove(&oldest);
        }
        look(known.entry(id.to_owned()).or_default())
    }
}

impl Images {
    /// Registries as a caller reaches them: its own logins first, then those of the engine's
    /// configuration, then those of the client's machine.
    pub(crate) fn access(&self, auths: &[Auth], cx: &Context) -> Access {
        let rest: Vec<Arc<dyn Credentials>> = match cx.get::<Host>() {
            Ok(host) => vec![self.configured.clone(), Arc::new(OfClient(host.clone()))],
            Err(_) => vec![self.configured.clone()],
        };
        let chain = |first: Vec<Arc<dyn Credentials>>| {
            let sources = first.into_iter().chain(rest.clone()).collect();
            self.registries.with_credentials(Arc::new(Chain::new(sources)))
        };
        if auths.is_empty() {
            let look =
                |known: &mut Known| known.registries.get_or_insert_with(|| chain(vec![])).clone();
            let registries = self.sessions.with(cx.session_id(), look);
            return Access { registries, asker: Digest::of(b"") };
        }
        let (mut given, mut asker) = (Given::new(), Digest::builder("asker"));
        for auth in auths {
            let (username, password) = (auth.username.clone(), auth.password.to_string());
            asker.text(&auth.registry).text(&username).text(&password);
            given.insert(&auth.registry, Credential::Password { username, password });
        }
        Access { registries: chain(vec![Arc::new(given)]), asker: asker.finish() }
    }

    /// What a name leads to: asked of the registry once a session, for each login.
    pub(super) async fn resolved(
        &self,
        access: &Access,
        (reference, reach): (&Reference, Reach),
        cx: &Context,
    ) -> Result<Arc<Fetched>, Error> {
        let registries = &access.registries;
        let key = (reference.to_string(), reach, access.asker);
        let look = |known: &mut Known| known.tags.entry(key).or_default().clone();
        let cell = self.sessions.with(cx.session_id(), look);
        let ask = || async {
            let fetched = registries.manifest(reference).await.map_err(of_registry)?;
            Ok::<_, Error>(Arc::new(fetched))
        };
        cell.get_or_try_init(ask).await.cloned()
    }
}

impl Reach {
    /// The same access, with the registry of an image spoken with in this way.
    pub(super) fn apply(self, access: &Access, reference: &Reference) -> Access {
        if self == Self::default() {
            return access.clone();
        }
        let registries = access.registries.with_host(reference.registry(), |host| {
            host.protocol = self.protocol.or(host.protocol);
            host.insecure |= self.insecure;
            host.address = self.address.or(host.address);
        });
        Access { registries, asker: access.asker }
    }
}

/// The logins of the client's machine, which only the client can read.
struct OfClient(Arc<Host>);

impl Credentials for OfClient {
    fn find<'a>(&'a self, registry: &'a str) -> Found<'a> {
        Box::pin(async move {
            let login = match self.0.files().login(registry.to_owned()).await {
                Ok(login) => login,
                Err(error) => {
                    // Anonymous access may do, and if not, the registry says what is missing.
                    tracing::warn!(registry, %error, "the client's logins cannot be read");
                    None
                }
            };
            Ok(login.map(|login| match login {
                Login::Password { username, password } => {
                    Credential::Password { username, password }
                }
                Login::IdentityToken(token) => Credential::IdentityToken(token),
                Login::Bearer(token) => Credential::Bearer(token),
            }))
        })
    }
}
