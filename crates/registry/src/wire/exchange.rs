//! [`Exchange`]: requests about one image to one host, with the keys that the host wants.
//!
//! Keys go to the host that asked for them and to nobody else: a redirect is followed without them
//! unless it leads to the same place. Nothing that began with TLS goes on without.

use super::challenge::challenges;
use super::clients::{Way, host_of, is_loopback};
use super::endpoint::Endpoint;
use super::reply::{Reply, refine, stalled};
use crate::{Credential, Error, Inner, Protocol};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Body, Method, RequestBuilder, StatusCode, Url};
use std::time::Duration;

/// How many redirects are followed.
const REDIRECTS: u32 = 5;

/// What is said to a registry that speaks HTTPS when it is spoken to in plain HTTP.
const WRONG_PROTOCOL: &str = "HTTP request to an HTTPS server";

/// A request without a body, or with a small one.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<bytes::Bytes>,
}

impl Request {
    pub(crate) fn new(method: Method, url: Url) -> Self {
        Self { method, url, headers: HeaderMap::new(), body: None }
    }
}

/// Requests about one image to one host.
pub(crate) struct Exchange<'a> {
    pub(crate) inner: &'a Inner,
    pub(crate) endpoint: &'a Endpoint,
    /// What is to be done, as token servers write it.
    pub(crate) scope: String,
    /// The image or blob, for messages.
    pub(crate) what: String,
    base: Url,
}

impl<'a> Exchange<'a> {
    /// Finds out how the host speaks, where that is not certain.
    pub(crate) async fn begin(
        inner: &'a Inner,
        endpoint: &'a Endpoint,
        scope: String,
        what: String,
    ) -> Result<Self, Error> {
        let protocol = match endpoint.protocols.as_slice() {
            [one] => *one,
            _ => match inner.endpoints.spoken(&endpoint.host) {
                Some(protocol) => protocol,
                None => probe(inner, endpoint, &what).await?,
            },
        };
        let base = base(endpoint, protocol)?;
        Ok(Self { inner, endpoint, scope, what, base })
    }

    /// An address below `/v2/<repository>/`.
    pub(crate) fn url(&self, repository: &str, rest: &str) -> Result<Url, Error> {
        let repository = self.endpoint.repository(repository);
        let joined = self.base.join(&format!("v2/{repository}/{rest}"));
        joined.map_err(|error| self.answer(&error.to_string()))
    }

    /// Sends, logs in when asked to, and follows redirects of what is only read. Any status but
    /// those is the caller's.
    pub(crate) async fn send(&self, request: &Request) -> Result<Reply, Error> {
        let mut renewed = false;
        loop {
            let key = self.key(&request.url);
            let builder = self.builder(&request.method, &request.url, request.headers.clone())?;
            let builder = match &request.body {
                Some(body) => builder.body(body.clone()),
                None => builder,
            };
            let reply = self.receive(with_key(builder, &key), &request.url).await?;
            if reply.status() == StatusCode::UNAUTHORIZED && !renewed {
                self.renew(&reply, key.as_ref()).await?;
                renewed = true;
                continue;
            }
            let reads = [Method::GET, Method::HEAD].contains(&request.method);
            return match reads && reply.status().is_redirection() {
                true => self.follow(request, reply).await,
                false => Ok(reply),
            };
        }
    }

    /// Sends a body once. Who gets 401 renews the key and begins anew.
    pub(crate) async fn send_body(
        &self,
        request: Request,
        body: Body,
        moves: impl Fn() -> Duration,
    ) -> Result<Reply, Error> {
        let key = self.key(&request.url);
        let builder = self.builder(&request.method, &request.url, request.headers)?.body(body);
        let sending = with_key(builder, &key).send();
        tokio::pin!(sending);
        let stall = self.inner.settings.stall_timeout;
        let response = loop {
            let patience = stall.saturating_sub(moves()).max(Duration::from_millis(1));
            match tokio::time::timeout(patience, &mut sending).await {
                Ok(response) => break response,
                Err(_) if moves() < stall => {}
                Err(_) => return Err(stalled(&self.what, &request.url, stall)),
            }
        };
        let response = response.map_err(|error| refine(&self.what, &request.url, &error))?;
        let reply = Reply::new(response, &self.what, stall);
        if reply.status() == StatusCode::UNAUTHORIZED {
            self.renew(&reply, key.as_ref()).await?;
        }
        Ok(reply)
    }

    /// Sends to a host that has nothing to do with the registry's keys.
    pub(crate) async fn send_elsewhere(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Option<bytes::Bytes>,
    ) -> Result<Reply, Error> {
        let builder = self.builder(&method, url, headers)?;
        let builder = match body {
            Some(body) => builder.body(body),
            None => builder,
        };
        self.receive(builder, url).await
    }

    /// The server for tokens, if it may be asked: no credential goes out without TLS when the
    /// registry itself has it.
    pub(crate) fn checked_realm(&self, realm: &str) -> Result<Url, Error> {
        let url =
            Url::parse(realm).map_err(|_| self.answer("its server for tokens is no address"))?;
        match url.scheme() {
            "https" => Ok(url),
            "http" if self.base.scheme() == "http" => Ok(url),
            _ => Err(self.answer(&format!("its server for tokens, `{realm}`, is without TLS"))),
        }
    }

    pub(crate) async fn find_credential(&self) -> Result<Option<Credential>, Error> {
        self.inner.settings.credentials.find(&self.endpoint.name).await
    }

    /// An address that the registry gave, relative or not.
    pub(crate) fn located(&self, reply: &Reply) -> Result<Url, Error> {
        let location = reply.text_of(LOCATION).ok_or_else(|| self.answer("no `Location`"))?;
        let from = reply.url();
        let mut url = from.join(location).map_err(|_| self.answer("`Location` is no address"))?;
        match (from.scheme(), url.scheme()) {
            (_, "https") | ("http", "http") => Ok(url),
            // A registry behind a proxy that ends TLS often does not know better.
            ("https", "http") if url.host() == from.host() => {
                if url.set_scheme("https").is_err() {
                    return Err(self.answer("`Location` is no address"));
                }
                Ok(url)
            }
            _ => Err(self.answer(&format!("it leads from TLS to `{}`", host_of(&url)))),
        }
    }

    pub(crate) fn answer(&self, reason: &str) -> Error {
        Error::Answer {
            what: self.what.clone(),
            registry: self.endpoint.name.clone(),
            reason: reason.to_owned(),
        }
    }

    pub(crate) fn broken(&self, reason: String) -> Error {
        Error::Broken { what: self.what.clone(), host: self.endpoint.host.clone(), reason }
    }

    pub(crate) fn unauthorized(&self, reason: String) -> Error {
        Error::Unauthorized {
            what: self.what.clone(),
            registry: self.endpoint.name.clone(),
            reason,
        }
    }

    /// The error that an answer of refusal means.
    pub(crate) async fn refusal(&self, reply: Reply) -> Error {
        reply.into_error(&self.endpoint.name).await
    }

    async fn renew(&self, reply: &Reply, refused: Option<&HeaderValue>) -> Result<(), Error> {
        self.inner.keyring.renew(self, refused, &challenges(reply.headers())).await
    }

    async fn follow(&self, request: &Request, mut reply: Reply) -> Result<Reply, Error> {
        for _ in 0..REDIRECTS {
            if !reply.status().is_redirection() {
                return Ok(reply);
            }
            let url = self.located(&reply)?;
            let key = self.key(&url);
            let builder = self.builder(&request.method, &url, request.headers.clone())?;
            reply = self.receive(with_key(builder, &key), &url).await?;
        }
        Err(self.answer("it redirects in circles"))
    }

    /// The key for an address, if it is one of the host that the key is of.
    fn key(&self, url: &Url) -> Option<HeaderValue> {
        let same = url.origin() == self.base.origin();
        same.then(|| self.inner.keyring.header(&self.endpoint.host, &self.scope)).flatten()
    }

    fn builder(
        &self,
        method: &Method,
        url: &Url,
        headers: HeaderMap,
    ) -> Result<RequestBuilder, Error> {
        let settings = &self.inner.settings;
        let way = match url.origin() == self.base.origin() {
            true => self.endpoint.way.clone(),
            false => way_elsewhere(self.inner, url),
        };
        let client = self.inner.clients.get(settings, &way, url, &self.what)?;
        Ok(client.request(method.clone(), url.clone()).headers(headers))
    }

    async fn receive(&self, builder: RequestBuilder, url: &Url) -> Result<Reply, Error> {
        receive(self.inner, builder, url, &self.what).await
    }
}

fn with_key(builder: RequestBuilder, key: &Option<HeaderValue>) -> RequestBuilder {
    match key {
        Some(key) => builder.header(AUTHORIZATION, key.clone()),
        None => builder,
    }
}

async fn receive(
    inner: &Inner,
    builder: RequestBuilder,
    url: &Url,
    what: &str,
) -> Result<Reply, Error> {
    let stall = inner.settings.stall_timeout;
    match tokio::time::timeout(stall, builder.send()).await {
        Ok(Ok(response)) => Ok(Reply::new(response, what, stall)),
        Ok(Err(error)) => Err(refine(what, url, &error)),
        Err(_) => Err(stalled(what, url, stall)),
    }
}

/// How to trust a host that is not the registry: as the settings say of it.
fn way_elsewhere(inner: &Inner, url: &Url) -> Way {
    let host = host_of(url);
    let special = inner.settings.hosts.get(&host).cloned().unwrap_or_default();
    let direct = special.address.is_some() || is_loopback(&host);
    let named = url.host_str().unwrap_or_default().to_owned();
    let elsewhere = special.address.map(|address| (named, address));
    Way { insecure: special.insecure, ca: special.ca, direct, elsewhere }
}

fn base(endpoint: &Endpoint, protocol: Protocol) -> Result<Url, Error> {
    let scheme = match protocol {
        Protocol::Https => "https",
        Protocol::Http => "http",
    };
    Url::parse(&format!("{scheme}://{}/", endpoint.host)).map_err(|error| Error::Settings {
        registry: endpoint.name.clone(),
        reason: error.to_string(),
    })
}

/// Asks a host in each way it may speak and keeps the first that works.
async fn probe(inner: &Inner, endpoint: &Endpoint, what: &str) -> Result<Protocol, Error> {
    let mut first = None;
    for protocol in &endpoint.protocols {
        match speaks(inner, endpoint, *protocol, what).await {
            Ok(true) => {
                inner.endpoints.set_spoken(&endpoint.host, *protocol);
                return Ok(*protocol);
            }
            Ok(false) => {}
            // Who says nothing to one will say nothing to the other.
            Err(error @ Error::Stalled { .. }) => return Err(error),
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or_else(|| Error::Answer {
        what: what.to_owned(),
        registry: endpoint.name.clone(),
        reason: "it speaks neither HTTP nor HTTPS".to_owned(),
    }))
}

async fn speaks(
    inner: &Inner,
    endpoint: &Endpoint,
    protocol: Protocol,
    what: &str,
) -> Result<bool, Error> {
    let base = base(endpoint, protocol)?;
    let url = base.join("v2/").unwrap_or(base);
    let client = inner.clients.get(&inner.settings, &endpoint.way, &url, what)?;
    let mut reply = receive(inner, client.get(url.clone()), &url, what).await?;
    if reply.status() != StatusCode::BAD_REQUEST {
        return Ok(true);
    }
    let text = reply.bytes(1 << 16).await.unwrap_or_default();
    Ok(!String::from_utf8_lossy(&text).contains(WRONG_PROTOCOL))
}
