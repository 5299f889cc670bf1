//! [`Keyring`]: what each host accepted, for as long as it does.

use super::challenge::Challenge;
use super::exchange::Exchange;
use super::token::{self, Token};
use crate::{Credential, Error};
use reqwest::header::HeaderValue;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Keys of all hosts for one set of credentials.
#[derive(Debug, Default)]
pub(crate) struct Keyring {
    hosts: Mutex<HashMap<String, Arc<Keys>>>,
}

/// Keys of one host.
#[derive(Debug, Default)]
struct Keys {
    /// One at a time asks for a key; the others then find it.
    asking: tokio::sync::Mutex<()>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    credential: Option<Credential>,
    /// Opens everything.
    master: Option<HeaderValue>,
    /// By scope.
    tokens: HashMap<String, Token>,
}

impl Known {
    fn header(&self, scope: &str) -> Option<HeaderValue> {
        if let Some(master) = &self.master {
            return Some(master.clone());
        }
        let token = self.tokens.get(scope)?;
        let fresh = token.until.is_none_or(|until| Instant::now() < until);
        fresh.then(|| token.header.clone())
    }
}

impl Keyring {
    /// What to show a host, if it asked before.
    pub(crate) fn header(&self, host: &str, scope: &str) -> Option<HeaderValue> {
        lock(&self.keys(host).known).header(scope)
    }

    /// Finds what a host accepts that has refused, and keeps it.
    pub(crate) async fn renew(
        &self,
        exchange: &Exchange<'_>,
        refused: Option<&HeaderValue>,
        challenges: &[Challenge],
    ) -> Result<(), Error> {
        let keys = self.keys(&exchange.endpoint.host);
        let _turn = keys.asking.lock().await;
        let now = lock(&keys.known).header(&exchange.scope);
        if now.is_some() && now.as_ref() != refused {
            return Ok(());
        }
        let kept = lock(&keys.known).credential.clone().filter(|_| refused.is_none());
        let credential = match kept {
            Some(kept) => Some(kept),
            None => exchange.find_credential().await?,
        };
        let challenge = choose(challenges, credential.as_ref())
            .ok_or_else(|| exchange.unauthorized(unanswerable(challenges)))?;
        let found = answer(exchange, challenge, credential.as_ref()).await?;
        let same = |header: &HeaderValue| refused == Some(header);
        let mut known = lock(&keys.known);
        match found {
            Key::Master(header) | Key::Token(Token { header, .. }) if same(&header) => {
                known.credential = None;
                known.master = None;
                let reason = "it does not accept what it was shown".to_owned();
                return Err(exchange.unauthorized(reason));
            }
            Key::Master(header) => known.master = Some(header),
            Key::Token(token) => {
                known.master = None;
                known.tokens.insert(exchange.scope.clone(), token);
            }
        }
        known.credential = credential;
        Ok(())
    }

    fn keys(&self, host: &str) -> Arc<Keys> {
        lock(&self.hosts).entry(host.to_owned()).or_default().clone()
    }
}

enum Key {
    Master(HeaderValue),
    Token(Token),
}

/// The way to log in that the credential fits. A token can be had without one.
fn choose<'a>(
    challenges: &'a [Challenge],
    credential: Option<&Credential>,
) -> Option<&'a Challenge> {
    let bearer = challenges.iter().find(|one| matches!(one, Challenge::Bearer { .. }));
    let basic = challenges.iter().find(|one| matches!(one, Challenge::Basic));
    let basic = basic.filter(|_| matches!(credential, Some(Credential::Password { .. })));
    bearer.or(basic)
}

fn unanswerable(challenges: &[Challenge]) -> String {
    match challenges.is_empty() {
        true => "it names no way that is known here".to_owned(),
        false => "there is no user and password for it".to_owned(),
    }
}

async fn answer(
    exchange: &Exchange<'_>,
    challenge: &Challenge,
    credential: Option<&Credential>,
) -> Result<Key, Error> {
    let unusable = || exchange.unauthorized("its credential has characters it cannot".to_owned());
    match (challenge, credential) {
        (Challenge::Basic, Some(Credential::Password { username, password })) => {
            token::basic(username, password).map(Key::Master).ok_or_else(unusable)
        }
        (_, Some(Credential::Bearer(token))) => {
            token::bearer(token).map(Key::Master).ok_or_else(unusable)
        }
        _ => token::fetch(exchange, challenge, credential).await.map(Key::Token),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
