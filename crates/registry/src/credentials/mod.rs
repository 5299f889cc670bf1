//! Who asks: credentials of registries, and where they come from.
//!
//! A client asks [`Credentials`] only when a registry has asked for them, and keeps what it got for
//! as long as the registry is content with it.

mod docker;
mod program;

pub use docker::{DockerConfig, Places};

use crate::Error;
use crate::reference::canonical_registry;
use futures::future::BoxFuture;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// What a registry wants to see. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// A user and a password or an access token in its place.
    Password {
        /// Name of the user.
        username: String,
        /// The password.
        password: String,
    },
    /// A token that is changed for short-lived ones.
    IdentityToken(String),
    /// A token that is sent as it is.
    Bearer(String),
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Password { .. } => "Password",
            Self::IdentityToken(_) => "IdentityToken",
            Self::Bearer(_) => "Bearer",
        })
    }
}

/// Answer to who asks for credentials.
pub type Found<'a> = BoxFuture<'a, Result<Option<Credential>, Error>>;

/// Where credentials come from.
pub trait Credentials: Send + Sync {
    /// The credential for a registry (`docker.io`, `localhost:5000`), if there is one.
    fn find<'a>(&'a self, registry: &'a str) -> Found<'a>;
}

/// Nobody has credentials.
#[derive(Clone, Copy, Debug, Default)]
pub struct Anonymous;

impl Credentials for Anonymous {
    fn find<'a>(&'a self, _registry: &'a str) -> Found<'a> {
        Box::pin(async { Ok(None) })
    }
}

/// Credentials that were given one by one.
#[derive(Clone, Debug, Default)]
pub struct Given {
    by_registry: HashMap<String, Credential>,
}

impl Given {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one, or replaces it.
    pub fn insert(&mut self, registry: &str, credential: Credential) {
        self.by_registry.insert(canonical_registry(registry).to_owned(), credential);
    }

    /// Takes one away.
    pub fn remove(&mut self, registry: &str) {
        self.by_registry.remove(canonical_registry(registry));
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_registry.is_empty()
    }
}

impl Credentials for Given {
    fn find<'a>(&'a self, registry: &'a str) -> Found<'a> {
        let found = self.by_registry.get(canonical_registry(registry)).cloned();
        Box::pin(async move { Ok(found) })
    }
}

/// Several sources, the first that has an answer wins.
#[derive(Clone, Default)]
pub struct Chain {
    sources: Vec<Arc<dyn Credentials>>,
}

impl Chain {
    /// In the order in which they are asked.
    pub fn new(sources: Vec<Arc<dyn Credentials>>) -> Self {
        Self { sources }
    }
}

impl Credentials for Chain {
    fn find<'a>(&'a self, registry: &'a str) -> Found<'a> {
        Box::pin(async move {
            for source in &self.sources {
                if let Some(found) = source.find(registry).await? {
                    return Ok(Some(found));
                }
            }
            Ok(None)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(registry: &str, token: &str) -> Arc<dyn Credentials> {
        let mut given = Given::new();
        given.insert(registry, Credential::Bearer(token.to_owned()));
        Arc::new(given)
    }

    #[tokio::test]
    async fn the_first_source_with_an_answer_wins() {
        let chain = Chain::new(vec![
            Arc::new(Anonymous),
            given("index.docker.io", "one"),
            given("docker.io", "two"),
            given("a.example", "three"),
        ]);
        let found = |name: &'static str| chain.find(name);
        let bearer = |token: &str| Some(Credential::Bearer(token.to_owned()));
        assert_eq!(found("docker.io").await.unwrap(), bearer("one"));
        assert_eq!(found("a.example").await.unwrap(), bearer("three"));
        assert_eq!(found("b.example").await.unwrap(), None);
    }

    #[test]
    fn secrets_are_not_printed() {
        let password = "hush".to_owned();
        let credential = Credential::Password { username: "me".to_owned(), password };
        assert_eq!(format!("{credential:?}"), "Password");
    }
}
