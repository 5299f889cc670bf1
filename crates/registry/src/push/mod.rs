//! Blobs and manifests into a registry.

mod flow;
mod upload;

pub use upload::OpenUpload;
pub(crate) use upload::{open, upload};

use crate::manifest::{CONTENT_DIGEST, digest_as};
use crate::wire::{Endpoint, Exchange, Request};
use crate::{Digest, Error, Inner, Reference};
use bytes::Bytes;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, StatusCode, Url};

pub(crate) async fn has_blob(
    inner: &Inner,
    reference: &Reference,
    digest: &Digest,
) -> Result<bool, Error> {
    let endpoint = inner.origin(reference);
    let mut tries = inner.tries(&endpoint);
    loop {
        match head_blob(inner, &endpoint, reference, digest).await {
            Ok(found) => return Ok(found),
            Err(error) => tries.pause_after(error).await?,
        }
    }
}

async fn head_blob(
    inner: &Inner,
    endpoint: &Endpoint,
    reference: &Reference,
    digest: &Digest,
) -> Result<bool, Error> {
    let exchange = begin(inner, endpoint, reference, blob_name(reference, digest)).await?;
    let url = exchange.url(reference.repository(), &format!("blobs/{digest}"))?;
    let reply = exchange.send(&Request::new(Method::HEAD, url)).await?;
    match reply.status() {
        status if status.is_success() => Ok(true),
        StatusCode::NOT_FOUND => Ok(false),
        _ => Err(exchange.refusal(reply).await),
    }
}

pub(crate) async fn mount_blob(
    inner: &Inner,
    reference: &Reference,
    digest: &Digest,
    from: &str,
) -> Result<bool, Error> {
    let endpoint = inner.origin(reference);
    let mut tries = inner.tries(&endpoint);
    loop {
        match try_mount(inner, &endpoint, reference, (digest, from)).await {
            Ok(mounted) => return Ok(mounted),
            Err(error) => tries.pause_after(error).await?,
        }
    }
}

async fn try_mount(
    inner: &Inner,
    endpoint: &Endpoint,
    reference: &Reference,
    (digest, from): (&Digest, &str),
) -> Result<bool, Error> {
    let mut exchange = begin(inner, endpoint, reference, blob_name(reference, digest)).await?;
    exchange.scope = format!("{} repository:{}:pull", exchange.scope, from);
    let mut url = exchange.url(reference.repository(), "blobs/uploads/")?;
    url.query_pairs_mut().append_pair("mount", digest.as_str()).append_pair("from", from);
    let reply = exchange.send(&post(url)).await?;
    match reply.status() {
        StatusCode::CREATED => Ok(true),
        StatusCode::ACCEPTED => {
            // It opened an upload instead, which nobody will use.
            if let Ok(url) = exchange.located(&reply) {
                let _ = exchange.send(&Request::new(Method::DELETE, url)).await;
            }
            Ok(false)
        }
        // Who may not read the other repository pushes the bytes.
        StatusCode::NOT_FOUND | StatusCode::FORBIDDEN | StatusCode::METHOD_NOT_ALLOWED => Ok(false),
        _ => Err(exchange.refusal(reply).await),
    }
}

pub(crate) async fn push_manifest(
    inner: &Inner,
    reference: &Reference,
    media_type: &str,
    bytes: &[u8],
) -> Result<Digest, Error> {
    let own = reference.digest().map_or_else(|| Digest::sha256(bytes), |it| digest_as(it, bytes));
    if let Some(expected) = reference.digest().filter(|expected| **expected != own) {
        let (what, expected) = (reference.to_string(), expected.clone());
        return Err(Error::Digest { what, expected, found: own });
    }
    let endpoint = inner.origin(reference);
    let mut tries = inner.tries(&endpoint);
    loop {
        match put_manifest(inner, &endpoint, reference, (media_type, bytes)).await {
            Ok(said) => return agree(reference, own, said),
            Err(error) => tries.pause_after(error).await?,
        }
    }
}

async fn put_manifest(
    inner: &Inner,
    endpoint: &Endpoint,
    reference: &Reference,
    (media_type, bytes): (&str, &[u8]),
) -> Result<Option<Digest>, Error> {
    let exchange = begin(inner, endpoint, reference, reference.to_string()).await?;
    let path = format!("manifests/{}", reference.target());
    let mut request = Request::new(Method::PUT, exchange.url(reference.repository(), &path)?);
    let media_type = HeaderValue::from_str(media_type);
    let media_type = media_type.map_err(|error| exchange.answer(&error.to_string()))?;
    request.headers.insert(CONTENT_TYPE, media_type);
    request.body = Some(Bytes::copy_from_slice(bytes));
    let reply = exchange.send(&request).await?;
    match reply.status().is_success() {
        true => Ok(reply.text_of(CONTENT_DIGEST).and_then(|text| text.parse().ok())),
        false => Err(exchange.refusal(reply).await),
    }
}

/// A registry that kept something else than it was sent must not go unnoticed.
fn agree(reference: &Reference, own: Digest, said: Option<Digest>) -> Result<Digest, Error> {
    match said {
        Some(found) if found != own && found.as_str().starts_with("sha256:") => {
            Err(Error::Digest { what: reference.to_string(), expected: own, found })
        }
        _ => Ok(own),
    }
}

async fn begin<'a>(
    inner: &'a Inner,
    endpoint: &'a Endpoint,
    reference: &Reference,
    what: String,
) -> Result<Exchange<'a>, Error> {
    let scope = format!("repository:{}:pull,push", reference.repository());
    Exchange::begin(inner, endpoint, scope, what).await
}

fn post(url: Url) -> Request {
    let mut request = Request::new(Method::POST, url);
    request.headers.insert(CONTENT_LENGTH, HeaderValue::from(0));
    request
}

fn blob_name(reference: &Reference, digest: &Digest) -> String {
    format!("{}@{digest}", reference.name())
}
