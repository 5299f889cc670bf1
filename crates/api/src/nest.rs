//! Sessions inside containers: what a command with `experimentalPrivilegedNesting` gets.
//!
//! The command finds a port and a token in its environment and speaks to this very engine there, with any client
//! library or with `ci-tool` itself. What answers is a session of its own, opened by the engine through
//! [`Nesting`]: its host is the container, never the machine of whoever asked for the command, and it
//! ends with the command. This file knows how a run is told about it; what the session may do is the engine's.

use futures::future::BoxFuture;
use graph::Context;
use protocol::{Error, env};
use sandbox::{Endpoint, Opened};
use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Opens sessions inside containers. The engine gives every session one.
pub struct Nest(Arc<dyn Nesting>);

/// How sessions inside containers are opened.
pub trait Nesting: Send + Sync {
    /// The token of one more session; an error when there are too many inside each other.
    fn admit(&self) -> Result<String, Error>;

    /// Answers on a port in a container until the future is dropped, which ends the session and all that
    /// runs for it.
    fn serve(&self, inside: Inside, cx: &Context) -> BoxFuture<'static, ()>;
}

/// A container that a session is opened in.
pub struct Inside {
    /// The port, and the container's root.
    pub opened: Opened,
    /// What lets programs in.
    pub token: String,
    /// Where relative paths begin.
    pub workdir: String,
    /// What `~` is.
    pub home: String,
    /// Paths that are not for reading: secrets and sockets.
    pub hidden: Vec<String>,
}

impl Nest {
    /// Opens sessions through `nesting`.
    pub fn new(nesting: Arc<dyn Nesting>) -> Self {
        Self(nesting)
    }
}

/// A session that waits for its container.
pub(crate) struct Nested {
    nest: Arc<Nest>,
    token: String,
    opened: oneshot::Receiver<Opened>,
    place: Place,
}

/// What a session is told about its container.
pub(crate) struct Place {
    pub(crate) workdir: String,
    pub(crate) home: String,
    pub(crate) hidden: Vec<String>,
}

/// Variables that hold the port, and those that hold the token.
const PORTS: [&str; 2] = [env::SESSION_PORT, env::COMPAT_SESSION_PORT];
const TOKENS: [&str; 2] = [env::SESSION_TOKEN, env::COMPAT_SESSION_TOKEN];
/// Variables that name what is not reached through a proxy.
const NO_PROXY: [&str; 2] = ["NO_PROXY", "no_proxy"];
const LOOPBACK: &str = "127.0.0.1";

impl Nested {
    /// Lets a command in, and gives what its container has to open.
    pub(crate) fn admit(place: Place, cx: &Context) -> Result<(Self, Endpoint), Error> {
        let nest = cx.get::<Nest>()?.clone();
        let token = nest.0.admit()?;
        let (sender, opened) = oneshot::channel();
        let variables = PORTS.iter().map(|&name| name.to_owned()).collect();
        let endpoint = Endpoint { variables, opened: sender };
        Ok((Self { nest, token, opened, place }, endpoint))
    }

    /// What must not be seen in what the command prints.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Tells the command. The container adds the port, which nobody knows before it is open.
    pub(crate) fn add_to(&self, env: &mut Vec<(String, String)>) {
        env.retain(|(name, _)| !PORTS.contains(&name.as_str()) && !TOKENS.contains(&name.as_str()));
        env.extend(TOKENS.iter().map(|&name| (name.to_owned(), self.token.clone())));
        let is_proxy = |name: &str| name.to_ascii_lowercase().ends_with("_proxy");
        if !env.iter().any(|(name, _)| is_proxy(name)) {
            return;
        }
        for name in NO_PROXY {
            match env.iter_mut().find(|(known, _)| known == name) {
                Some((_, value)) if value.is_empty() => *value = LOOPBACK.to_owned(),
                Some((_, value)) if value.split(',').any(|host| host.trim() == LOOPBACK) => {}
                Some((_, value)) => value.extend([",", LOOPBACK]),
                None => env.push((name.to_owned(), LOOPBACK.to_owned())),
            }
        }
    }

    /// Answers the command, if it is to be answered, until the future is dropped.
    pub(crate) async fn attend(nested: Option<Self>, cx: Context) -> Infallible {
        let Some(Self { nest, token, opened, place }) = nested else { return pending().await };
        let Place { workdir, home, hidden } = place;
        // A container that cannot be made opens nothing, and says why elsewhere.
        if let Ok(opened) = opened.await {
            let inside = Inside { opened, token, workdir, home, hidden };
            nest.0.serve(inside, &cx).await;
        }
        pending().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Never;

    impl Nesting for Never {
        fn admit(&self) -> Result<String, Error> {
            Ok("token".into())
        }

        fn serve(&self, _: Inside, _: &Context) -> BoxFuture<'static, ()> {
            Box::pin(async {})
        }
    }

    #[test]
    fn a_command_is_told_once_and_reaches_its_port_past_any_proxy() {
        let (_sender, opened) = oneshot::channel();
        let place = Place { workdir: "/".into(), home: "/root".into(), hidden: vec![] };
        let nest = Arc::new(Nest::new(Arc::new(Never)));
        let nested = Nested { nest, token: "token".into(), opened, place };
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut env = vec![pair("CITOOL_SESSION_PORT", "1"), pair("DAGGER_SESSION_TOKEN", "old")];
        nested.add_to(&mut env);
        let told = [pair("CITOOL_SESSION_TOKEN", "token"), pair("DAGGER_SESSION_TOKEN", "token")];
        assert_eq!(env, told);
        env.push(pair("https_proxy", "http://p"));
        env.push(pair("NO_PROXY", "localhost"));
        nested.add_to(&mut env);
        nested.add_to(&mut env);
        assert!(env.contains(&pair("NO_PROXY", "localhost,127.0.0.1")), "{env:?}");
        assert!(env.contains(&pair("no_proxy", "127.0.0.1")), "{env:?}");
    }
}
