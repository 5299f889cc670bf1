//! Manifests and indexes, by tag or digest.

use crate::wire::{Endpoint, Exchange, Reply, Request};
use crate::{Digest, Error, Inner, Reference, Verifier};
use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use serde::Deserialize;

/// Largest manifest: what the distribution protocol asks registries to take.
const LIMIT: u64 = 4 << 20;

/// What the registry says the digest of its answer is.
pub(crate) const CONTENT_DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");

/// Kinds that we can use.
const ACCEPTED: &str = "application/vnd.oci.image.index.v1+json, \
     application/vnd.oci.image.manifest.v1+json, \
     application/vnd.docker.distribution.manifest.list.v2+json, \
     application/vnd.docker.distribution.manifest.v2+json";

/// A manifest or index, verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The digest of the bytes.
    pub digest: Digest,
    /// What it is, as the registry says or the document itself does; may be empty.
    pub media_type: String,
    /// The document.
    pub bytes: Vec<u8>,
}

pub(crate) async fn fetch(inner: &Inner, reference: &Reference) -> Result<Fetched, Error> {
    for mirror in inner.mirrors(reference)? {
        match fetch_from(inner, &mirror, reference).await {
            Ok(fetched) => return Ok(fetched),
            Err(error) => inner.pass_over(&mirror, &error),
        }
    }
    fetch_from(inner, &inner.origin(reference), reference).await
}

pub(crate) async fn resolve(inner: &Inner, reference: &Reference) -> Result<Digest, Error> {
    if let Some(digest) = reference.digest() {
        return Ok(digest.clone());
    }
    for mirror in inner.mirrors(reference)? {
        match resolve_at(inner, &mirror, reference).await {
            Ok(digest) => return Ok(digest),
            Err(error) => inner.pass_over(&mirror, &error),
        }
    }
    resolve_at(inner, &inner.origin(reference), reference).await
}

async fn fetch_from(
    inner: &Inner,
    endpoint: &Endpoint,
    reference: &Reference,
) -> Result<Fetched, Error> {
    let mut tries = inner.tries(endpoint);
    loop {
        let result = match ask(inner, endpoint, reference, Method::GET).await {
            Ok(reply) => read(endpoint, reference, reply).await,
            Err(error) => Err(error),
        };
        match result {
            Ok(fetched) => return Ok(fetched),
            Err(error) => tries.pause_after(error).await?,
        }
    }
}

/// Asks for the head alone, and for the whole where that says no digest.
async fn resolve_at(
    inner: &Inner,
    endpoint: &Endpoint,
    reference: &Reference,
) -> Result<Digest, Error> {
    let mut tries = inner.tries(endpoint);
    loop {
        match ask(inner, endpoint, reference, Method::HEAD).await {
            Ok(reply) => match said_digest(&reply) {
                Some(digest) => return Ok(digest),
                None => break,
            },
            // Some answer to this question only with a text.
            Err(Error::Status { status: 405, .. }) => break,
            Err(error) => tries.pause_after(error).await?,
        }
    }
    fetch_from(inner, endpoint, reference).await.map(|fetched| fetched.digest)
}

async fn ask(
    inner: &Inner,
    endpoint: &Endpoint,
    reference: &Reference,
    method: Method,
) -> Result<Reply, Error> {
    let scope = format!("repository:{}:pull", endpoint.repository(reference.repository()));
    let exchange = Exchange::begin(inner, endpoint, scope, reference.to_string()).await?;
    let path = format!("manifests/{}", reference.target());
    let mut request = Request::new(method, exchange.url(reference.repository(), &path)?);
    request.headers.insert(ACCEPT, HeaderValue::from_static(ACCEPTED));
    let reply = exchange.send(&request).await?;
    match reply.status().is_success() {
        true => Ok(reply),
        false => Err(exchange.refusal(reply).await),
    }
}

async fn read(
    endpoint: &Endpoint,
    reference: &Reference,
    mut reply: Reply,
) -> Result<Fetched, Error> {
    let what = || reference.to_string();
    let promised = reply.length();
    let said = said_digest(&reply);
    let media_type = reply.text_of(CONTENT_TYPE).map(bare_type).unwrap_or_default();
    let bytes = reply.bytes(LIMIT).await?;
    if let Some(expected) = promised.filter(|length| *length != bytes.len() as u64) {
        return Err(Error::Size { what: what(), expected, found: bytes.len() as u64 });
    }
    // What the name asks for goes before what the registry says.
    let expected = reference.digest().cloned().or(said);
    let found = match &expected {
        Some(expected) => digest_as(expected, &bytes),
        None => Digest::sha256(&bytes),
    };
    if let Some(expected) = expected.filter(|expected| *expected != found) {
        return Err(Error::Digest { what: what(), expected, found });
    }
    let media_type = match media_type.is_empty() || media_type == "application/json" {
        true => type_inside(&bytes).unwrap_or(media_type),
        false => media_type,
    };
    if media_type.starts_with("text/html") {
        let (registry, reason) = (endpoint.name.clone(), "a web page".to_owned());
        return Err(Error::Answer { what: what(), registry, reason });
    }
    Ok(Fetched { digest: found, media_type, bytes })
}

fn said_digest(reply: &Reply) -> Option<Digest> {
    reply.text_of(CONTENT_DIGEST)?.parse().ok()
}

/// The digest of bytes by the same function as another.
pub(crate) fn digest_as(other: &Digest, bytes: &[u8]) -> Digest {
    let mut verifier = Verifier::new(other);
    verifier.update(bytes);
    verifier.digest()
}

/// A media type without parameters.
fn bare_type(text: &str) -> String {
    text.split(';').next().unwrap_or_default().trim().to_owned()
}

fn type_inside(bytes: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Typed {
        #[serde(rename = "mediaType")]
        media_type: Option<String>,
    }
    serde_json::from_slice::<Typed>(bytes).ok()?.media_type
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_are_found() {
        assert_eq!(bare_type("application/json; charset=utf-8"), "application/json");
        assert_eq!(type_inside(b"{\"mediaType\":\"a/b\"}").as_deref(), Some("a/b"));
        assert_eq!(type_inside(b"[]"), None);
    }
}
