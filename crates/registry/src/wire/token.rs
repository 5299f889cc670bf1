//! Tokens: what a server that the registry names gives for a credential, or for nothing.

use super::challenge::Challenge;
use super::clients::host_of;
use super::exchange::Exchange;
use super::reply::Reply;
use crate::{Credential, Error};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, StatusCode, Url};
use serde::Deserialize;
use std::time::{Duration, Instant};

/// How we name ourselves where a server wants a name.
const CLIENT: &str = "ci-tool";

/// Life of a token whose server does not say.
const USUAL_LIFE: Duration = Duration::from_secs(60);

/// A token is not used in its last moments, lest it expire on the way.
const MARGIN: Duration = Duration::from_secs(5);

/// Largest answer with a token.
const LIMIT: u64 = 1 << 20;

/// What to show, and until when.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) header: HeaderValue,
    pub(crate) until: Option<Instant>,
}

#[derive(Deserialize)]
struct Answer {
    token: Option<String>,
    access_token: Option<String>,
    expires_in: Option<u64>,
}

/// User and password as a header.
pub(crate) fn basic(username: &str, password: &str) -> Option<HeaderValue> {
    let text = STANDARD.encode(format!("{username}:{password}"));
    secret(&format!("Basic {text}"))
}

/// A token as a header.
pub(crate) fn bearer(token: &str) -> Option<HeaderValue> {
    secret(&format!("Bearer {token}"))
}

fn secret(text: &str) -> Option<HeaderValue> {
    let mut header = HeaderValue::from_str(text).ok()?;
    header.set_sensitive(true);
    Some(header)
}

/// Changes a credential, or none, for a token that opens what the exchange is about.
pub(crate) async fn fetch(
    exchange: &Exchange<'_>,
    challenge: &Challenge,
    credential: Option<&Credential>,
) -> Result<Token, Error> {
    let Challenge::Bearer { realm, service, scope } = challenge else {
        return Err(exchange.answer("no server for tokens"));
    };
    let realm = exchange.checked_realm(realm)?;
    let mut pairs = vec![];
    pairs.extend(service.as_ref().map(|service| ("service", service.clone())));
    let scopes = scopes(&exchange.scope, scope.as_deref());
    let mut reply = match credential {
        Some(Credential::IdentityToken(token)) => {
            pairs.push(("scope", scopes.join(" ")));
            pairs.push(("grant_type", "refresh_token".to_owned()));
            pairs.push(("client_id", CLIENT.to_owned()));
            pairs.push(("refresh_token", token.clone()));
            post(exchange, &realm, &pairs).await?
        }
        _ => {
            pairs.extend(scopes.into_iter().map(|scope| ("scope", scope)));
            let account = match credential {
                Some(Credential::Password { username, password }) => Some((username, password)),
                _ => None,
            };
            pairs.extend(account.map(|(username, _)| ("account", username.clone())));
            let header = account.and_then(|(username, password)| basic(username, password));
            get(exchange, realm.clone(), &pairs, header).await?
        }
    };
    if !reply.status().is_success() {
        return Err(refusal(exchange, reply, &realm, credential.is_some()).await);
    }
    read(exchange, &reply.bytes(LIMIT).await?)
}

async fn get(
    exchange: &Exchange<'_>,
    mut url: Url,
    pairs: &[(&str, String)],
    authorization: Option<HeaderValue>,
) -> Result<Reply, Error> {
    url.query_pairs_mut().extend_pairs(pairs);
    let mut headers = HeaderMap::new();
    headers.extend(authorization.map(|value| (AUTHORIZATION, value)));
    exchange.send_elsewhere(Method::GET, &url, headers, None).await
}

async fn post(
    exchange: &Exchange<'_>,
    url: &Url,
    pairs: &[(&str, String)],
) -> Result<Reply, Error> {
    // The form of a query is the form of a form.
    let mut form = url.clone();
    form.set_query(None);
    form.query_pairs_mut().extend_pairs(pairs);
    let body = form.query().unwrap_or_default().to_owned();
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
    exchange.send_elsewhere(Method::POST, url, headers, Some(body.into())).await
}

async fn refusal(exchange: &Exchange<'_>, reply: Reply, realm: &Url, known: bool) -> Error {
    let status = reply.status();
    let host = host_of(realm);
    match status {
        StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            let reason = match known {
                true => format!("`{host}` refuses the credentials"),
                false => format!("`{host}` gives no token to who is not logged in"),
            };
            exchange.unauthorized(reason)
        }
        StatusCode::NOT_FOUND => exchange.answer(&format!("there is no `{realm}` for tokens")),
        _ => reply.into_error(&host).await,
    }
}

fn read(exchange: &Exchange<'_>, text: &[u8]) -> Result<Token, Error> {
    let answer: Answer =
        serde_json::from_slice(text).map_err(|_| exchange.answer("no token in the answer"))?;
    let token = answer.token.filter(|token| !token.is_empty()).or(answer.access_token);
    let header = token.as_deref().filter(|token| !token.is_empty()).and_then(bearer);
    let header = header.ok_or_else(|| exchange.answer("no token in the answer"))?;
    let life = answer.expires_in.map_or(USUAL_LIFE, Duration::from_secs);
    let until = Instant::now().checked_add(life.saturating_sub(MARGIN));
    Ok(Token { header, until })
}

/// Ours, and what the registry asks for beyond.
fn scopes(ours: &str, asked: Option<&str>) -> Vec<String> {
    let mut scopes: Vec<String> = ours.split(' ').map(str::to_owned).collect();
    for scope in asked.unwrap_or_default().split(' ').filter(|scope| !scope.is_empty()) {
        if !scopes.iter().any(|ours| covers(ours, scope)) {
            scopes.push(scope.to_owned());
        }
    }
    scopes
}

/// Whether a scope holds all of another: the same thing, and every action, in whatever order.
fn covers(scope: &str, other: &str) -> bool {
    let (Some((thing, actions)), Some((other_thing, other_actions))) =
        (scope.rsplit_once(':'), other.rsplit_once(':'))
    else {
        return scope == other;
    };
    let has = |action: &str| actions.split(',').any(|ours| ours == action);
    thing == other_thing && other_actions.split(',').all(has)
}

#[cfg(test)]
mod tests {
    use super::scopes;

    #[test]
    fn scopes_are_united() {
        let table = [
            ("repository:a:pull", None, vec!["repository:a:pull"]),
            ("repository:a:pull", Some("repository:a:pull"), vec!["repository:a:pull"]),
            ("repository:a:pull,push", Some("repository:a:pull"), vec!["repository:a:pull,push"]),
            (
                "repository:a:pull,push",
                Some("repository:a:push,pull"),
                vec!["repository:a:pull,push"],
            ),
            (
                "repository:a:pull",
                Some("repository:a:pull,push"),
                vec!["repository:a:pull", "repository:a:pull,push"],
            ),
            (
                "repository:a:pull repository:b:pull",
                Some("registry:catalog:*"),
                vec!["repository:a:pull", "repository:b:pull", "registry:catalog:*"],
            ),
        ];
        for (ours, asked, expect) in table {
            assert_eq!(scopes(ours, asked), expect);
        }
    }
}
