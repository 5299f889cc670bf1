//! [`Remote`]: a repository elsewhere, asked once a session.

use super::access::{self, Given, Served};
use super::agent::Lent;
use super::told;
use crate::services::Services;
use git::{Access, Git, Refs, Scheme, Spelled, Url};
use graph::Context;
use protocol::Error;
use tokio::sync::OnceCell;

/// A repository elsewhere.
pub(crate) struct Remote {
    spelled: Place,
    given: Given,
    open: OnceCell<Open>,
}

/// Where it is, as far as the text says.
#[derive(Clone)]
enum Place {
    Url(Url),
    Schemeless(String),
}

/// What was found when it was first asked.
pub(super) struct Open {
    /// Where it is, as it is shown and kept.
    pub(super) url: Url,
    /// Where it is reached, which is elsewhere for a service.
    pub(super) reach: Url,
    pub(super) access: Access,
    pub(super) refs: Refs,
    _lent: Option<Lent>,
    served: Option<Served>,
}

impl Open {
    /// Whether it was read with something of the session: credentials, or a service.
    pub(super) fn is_private(&self) -> bool {
        self.access.http.is_some() || self.access.agent.is_some() || self.served.is_some()
    }
}

impl Remote {
    /// The repository of a text that is no path.
    pub(super) fn new(spelled: Spelled, mut given: Given) -> Option<Self> {
        let spelled = match spelled {
            Spelled::Url(url, password) => {
                given.password = password.or(given.password);
                Place::Url(url)
            }
            Spelled::Schemeless(text) => Place::Schemeless(text),
            Spelled::Path(_) => return None,
        };
        Some(Self { spelled, given, open: OnceCell::new() })
    }

    /// The same place with other credentials.
    pub(super) fn with(&self, change: impl FnOnce(&mut Given)) -> Self {
        let mut given = self.given.clone();
        change(&mut given);
        Self { spelled: self.spelled.clone(), given, open: OnceCell::new() }
    }

    /// The repository of a submodule, with those credentials that are for its host too.
    pub(super) fn submodule(&self, of: &Url, spelled: Spelled) -> Option<Self> {
        let mut given = self.given.clone();
        let same = matches!(&spelled, Spelled::Url(url, _) if url.same_host(of));
        if !same {
            given =
                Given { socket: given.socket, known_hosts: given.known_hosts, ..Given::default() };
        }
        Self::new(spelled, given)
    }

    /// Where it is. Only a place without a protocol has to be asked.
    pub(super) async fn url(&self, cx: &Context) -> Result<String, Error> {
        match &self.spelled {
            Place::Url(url) => Ok(url.to_string()),
            Place::Schemeless(_) => Ok(self.open(cx).await?.url.to_string()),
        }
    }

    /// Asks it, once a session.
    pub(super) async fn open(&self, cx: &Context) -> Result<&Open, Error> {
        let ask = || async {
            match &self.spelled {
                Place::Url(url) => self.ask(url, cx).await,
                Place::Schemeless(text) => self.find(text, cx).await,
            }
        };
        self.open.get_or_try_init(ask).await
    }

    async fn ask(&self, url: &Url, cx: &Context) -> Result<Open, Error> {
        let services = cx.get::<Services>()?;
        let git: &Git = services.git.git();
        let (reach, served) = self.given.reach(url, cx).await?;
        let (mut access, lent) = self.given.access(&reach, cx).await?;
        let mut asked = Refs::of_remote(git, &reach, &access).await;
        if matches!(asked, Err(git::Error::Authentication { .. }))
            && self.given.leaves_open(url)
            && let Some(own) = access::of_caller(url, cx).await
        {
            access.http = Some((reach.clone(), own));
            asked = Refs::of_remote(git, &reach, &access).await;
        }
        let refs = asked.map_err(told)?;
        Ok(Open { url: url.clone(), reach, access, refs, _lent: lent, served })
    }

    /// Asks a place of which only trying tells the protocol.
    async fn find(&self, text: &str, cx: &Context) -> Result<Open, Error> {
        let url = |scheme| {
            Url::of_schemeless(scheme, text).map_err(|error| Error::user(error.to_string()))
        };
        let first = match self.ask(&url(Scheme::Https)?, cx).await {
            Ok(open) => return Ok(open),
            Err(error) => error,
        };
        let mut reason = first.message.clone();
        if self.given.socket.is_some() {
            match self.ask(&url(Scheme::Ssh)?, cx).await {
                Ok(open) => return Ok(open),
                Err(second) => reason = format!("{reason}; {}", second.message),
            }
        }
        let message = format!("failed to determine Git URL protocol of `{text}`: {reason}");
        Err(Error { message, ..first }.with_hint("write it: `https://...` or `ssh://...`"))
    }
}
