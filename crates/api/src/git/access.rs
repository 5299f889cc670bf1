//! Credentials for a remote: those that were given with its url, or those that the caller's machine keeps.

use super::agent::Lent;
use crate::host::Host;
use crate::secret::Secret;
use crate::service::{Forward, Lease, Service};
use crate::socket::Socket;
use git::{Access, HttpAccess, Scheme, Url};
use graph::Context;
use protocol::Error;
use protocol::attach::GitCredentialRequest;
use redact::Known;
use std::sync::Arc;

/// Who a token belongs to when nobody says it: servers look at the token alone.
const TOKEN_USER: &str = "x-access-token";
/// The variable that says where the caller's agent listens.
const AGENT_VARIABLE: &str = "env://SSH_AUTH_SOCK";

/// What was given with a url.
#[derive(Clone, Default)]
pub(crate) struct Given {
    pub(crate) token: Option<Arc<Secret>>,
    pub(crate) username: String,
    pub(crate) header: Option<Arc<Secret>>,
    /// From the url itself.
    pub(crate) password: Option<String>,
    pub(crate) socket: Option<Arc<Socket>>,
    pub(crate) known_hosts: String,
    /// The server, where it is a service of this session.
    pub(crate) service: Option<Arc<Service>>,
}

/// A service that is used while this is held.
pub(super) struct Served {
    _lease: Lease,
    forward: Forward,
}

impl Given {
    /// Starts the service that the server is, if it is one, and says where it is reached.
    pub(super) async fn reach(
        &self,
        url: &Url,
        cx: &Context,
    ) -> Result<(Url, Option<Served>), Error> {
        let Some(service) = &self.service else { return Ok((url.clone(), None)) };
        let lease = service.start(cx).await?;
        let forward = lease.forwarded(url.port(), cx).await?;
        let served = Served { _lease: lease, forward };
        let address = served.forward.address();
        Ok((url.at(&address.ip().to_string(), address.port()), Some(served)))
    }

    /// For git, and what must be held meanwhile.
    pub(super) async fn access(
        &self,
        url: &Url,
        cx: &Context,
    ) -> Result<(Access, Option<Lent>), Error> {
        let mut access = Access::default();
        if matches!(url.scheme(), Scheme::Http | Scheme::Https)
            && let Some(http) = self.http(url, cx).await?
        {
            access.http = Some((url.clone(), http));
        }
        if url.scheme() != Scheme::Ssh {
            return Ok((access, None));
        }
        let socket = self.agent(url, cx).await?;
        let lent = Lent::new(&socket, &self.known_hosts, cx)?;
        access.agent = Some(lent.agent());
        Ok((access, Some(lent)))
    }

    async fn http(&self, url: &Url, cx: &Context) -> Result<Option<HttpAccess>, Error> {
        if let Some(header) = &self.header {
            let value = header.text(cx).await?.trim().to_owned();
            if value.chars().any(char::is_control) {
                let message = format!("secret `{}` is not the value of a header", header.name());
                return Err(Error::user(message));
            }
            return Ok(Some(HttpAccess::Header(value)));
        }
        let password = match (&self.token, &self.password) {
            (Some(token), _) => token.text(cx).await?.trim().to_owned(),
            (None, Some(password)) => {
                cx.get::<Known>()?.add(password.as_bytes());
                password.clone()
            }
            (None, None) => return Ok(None),
        };
        let username = match (&*self.username, url.user()) {
            ("", Some(user)) => user.to_owned(),
            ("", None) => TOKEN_USER.to_owned(),
            (given, _) => given.to_owned(),
        };
        Ok(Some(HttpAccess::Password { username, password }))
    }

    /// The agent: the one that was given, or that of the caller.
    async fn agent(&self, url: &Url, cx: &Context) -> Result<Arc<Socket>, Error> {
        if let Some(socket) = &self.socket {
            return Ok(socket.clone());
        }
        let path = match cx.get::<Host>() {
            Ok(host) => host.files().secret(AGENT_VARIABLE.to_owned()).await.ok(),
            Err(_) => None,
        };
        let path =
            path.and_then(|path| String::from_utf8(path).ok()).filter(|path| !path.is_empty());
        let none = || {
            Error::user(format!("`{url}` is reached by ssh, which needs the socket of an agent"))
                .with_hint("pass it with `sshAuthSocket`, or start an agent: `eval $(ssh-agent)`")
        };
        Ok(Arc::new(Socket::at(&path.ok_or_else(none)?)?))
    }

    /// Whether the caller's machine may be asked for credentials: none were given.
    pub(super) fn leaves_open(&self, url: &Url) -> bool {
        matches!(url.scheme(), Scheme::Http | Scheme::Https)
            && self.token.is_none()
            && self.header.is_none()
            && self.password.is_none()
    }
}

/// What the caller's own git would use for a url.
pub(super) async fn of_caller(url: &Url, cx: &Context) -> Option<HttpAccess> {
    let host = cx.get::<Host>().ok()?;
    let port = match (url.scheme(), url.port()) {
        (Scheme::Https, 443) | (Scheme::Http, 80) => String::new(),
        (_, port) => format!(":{port}"),
    };
    let request = GitCredentialRequest {
        protocol: url.scheme().name().to_owned(),
        host: format!("{}{port}", url.host()),
        path: url.path().trim_start_matches('/').to_owned(),
        username: url.user().map(str::to_owned),
    };
    let credential = host.files().git_credential(request).await.ok()??;
    cx.get::<Known>().ok()?.add(credential.password.as_bytes());
    let (username, password) = (credential.username, credential.password);
    Some(HttpAccess::Password { username, password })
}
