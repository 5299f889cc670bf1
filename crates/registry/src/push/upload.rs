//! A blob into a registry.
//!
//! A small blob goes with the request that closes its upload. A larger one is sent before as one
//! stream, which every registry takes; when that breaks, the registry is asked how much it has. If it
//! does not say, the upload begins anew. The bytes come from a [`Source`] that can be read again from
//! anywhere. Who knows early that a blob will come may open its upload before there is a blob.

use super::flow::{Flow, parts};
use super::{begin, blob_name, head_blob, post};
use crate::wire::{Endpoint, Exchange, Reply, Request};
use crate::{Descriptor, Error, Inner, Progress, Reference, Source};
use reqwest::header::{CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HeaderValue, RANGE};
use reqwest::{Body, Method, StatusCode, Url};
use std::io;
use std::sync::Arc;

/// Largest blob that is sent in one request: what to send again is not worth a question.
const SMALL: u64 = 4 << 20;

/// An upload that is open and has nothing in it. One that is not used expires.
pub struct OpenUpload(Url);

/// Opens an upload, once: who cannot opens it when there is a blob.
pub(crate) async fn open(inner: &Inner, reference: &Reference) -> Result<OpenUpload, Error> {
    let what = format!("an upload to `{}`", reference.repository());
    let endpoint = inner.origin(reference);
    let exchange = begin(inner, &endpoint, reference, what).await?;
    open_on(&exchange, reference).await.map(OpenUpload)
}

async fn open_on(exchange: &Exchange<'_>, reference: &Reference) -> Result<Url, Error> {
    let url = exchange.url(reference.repository(), "blobs/uploads/")?;
    let reply = exchange.send(&post(url)).await?;
    match reply.status() {
        StatusCode::ACCEPTED => exchange.located(&reply),
        _ => Err(exchange.refusal(reply).await),
    }
}

pub(crate) async fn upload(
    inner: &Inner,
    (reference, descriptor): (&Reference, &Descriptor),
    (opened, source): (Option<OpenUpload>, Arc<dyn Source>),
    progress: Progress,
) -> Result<(), Error> {
    let endpoint = inner.origin(reference);
    let what = blob_name(reference, &descriptor.digest);
    let opened = opened.map(|OpenUpload(at)| at);
    let (tried, at) = (false, None);
    let mut upload =
        Upload { inner, reference, descriptor, source, progress, what, tried, opened, at };
    let mut tries = inner.tries(&endpoint);
    loop {
        match upload.try_once(&endpoint).await {
            Ok(()) => return Ok(()),
            Err(error) => tries.pause_after(error).await?,
        }
    }
}

/// A blob on its way into a registry.
struct Upload<'a> {
    inner: &'a Inner,
    reference: &'a Reference,
    descriptor: &'a Descriptor,
    source: Arc<dyn Source>,
    progress: Progress,
    what: String,
    tried: bool,
    /// An upload that was opened before.
    opened: Option<Url>,
    /// Where the bytes go, once an upload was opened that can go on.
    at: Option<Url>,
}

impl Upload<'_> {
    async fn try_once(&mut self, endpoint: &Endpoint) -> Result<(), Error> {
        let exchange = begin(self.inner, endpoint, self.reference, self.what.clone()).await?;
        let is_retry = std::mem::replace(&mut self.tried, true);
        let known = match self.at.take() {
            Some(at) => ask_offset(&exchange, at).await,
            None => None,
        };
        let (at, offset) = match (self.opened.take(), known) {
            (Some(at), _) => (at, 0),
            (None, Some((at, offset))) if offset <= self.descriptor.size => (at, offset),
            // The last answer may have been lost when everything was done.
            _ if is_retry && self.is_there(endpoint).await? => return Ok(()),
            _ => (open_on(&exchange, self.reference).await?, 0),
        };
        if self.descriptor.size <= SMALL {
            return self.close(&exchange, at, offset).await;
        }
        self.at = Some(at.clone());
        let at = match offset < self.descriptor.size {
            true => self.send(&exchange, at, offset).await?,
            false => at,
        };
        self.at = Some(at.clone());
        self.close(&exchange, at, self.descriptor.size).await
    }

    async fn is_there(&self, endpoint: &Endpoint) -> Result<bool, Error> {
        head_blob(self.inner, endpoint, self.reference, &self.descriptor.digest).await
    }

    /// Sends everything from an offset on. The registry names where to go on.
    async fn send(&self, exchange: &Exchange<'_>, at: Url, offset: u64) -> Result<Url, Error> {
        let mut request = Request::new(Method::PATCH, at);
        if offset > 0 {
            let range = format!("{offset}-{}", self.descriptor.size - 1);
            let range = HeaderValue::from_str(&range);
            let range = range.map_err(|error| exchange.answer(&error.to_string()))?;
            request.headers.insert(CONTENT_RANGE, range);
        }
        let reply = self.send_rest(exchange, request, offset).await?;
        match reply.status() {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT | StatusCode::CREATED => {
                exchange.located(&reply)
            }
            _ => Err(upload_refusal(exchange, reply).await),
        }
    }

    /// Sends what is left and has the registry check and keep the whole.
    async fn close(
        &mut self,
        exchange: &Exchange<'_>,
        mut at: Url,
        offset: u64,
    ) -> Result<(), Error> {
        at.query_pairs_mut().append_pair("digest", self.descriptor.digest.as_str());
        let reply = self.send_rest(exchange, Request::new(Method::PUT, at), offset).await?;
        if reply.status().is_success() {
            return Ok(());
        }
        if reply.status().is_client_error() {
            // What is there is not what it should be: the next try begins anew.
            self.at = None;
        }
        Err(upload_refusal(exchange, reply).await)
    }

    async fn send_rest(
        &self,
        exchange: &Exchange<'_>,
        mut request: Request,
        offset: u64,
    ) -> Result<Reply, Error> {
        let fail = |source: io::Error| Error::Source { what: self.what.clone(), source };
        let (size, settings) = (self.descriptor.size, &self.inner.settings);
        let rest = size - offset;
        let octets = HeaderValue::from_static("application/octet-stream");
        request.headers.insert(CONTENT_TYPE, octets);
        request.headers.insert(CONTENT_LENGTH, HeaderValue::from(rest));
        let flow = Arc::new(Flow::new(offset, size, settings, self.progress.clone()));
        let body = match rest {
            0 => Body::from(""),
            _ => {
                let reader = self.source.open(offset).await.map_err(fail)?;
                Body::wrap_stream(parts(reader, rest, flow.clone()))
            }
        };
        let result = exchange.send_body(request, body, || flow.idle()).await;
        match flow.failure() {
            Some(source) => Err(fail(source)),
            None => result,
        }
    }
}

/// How much of an upload a registry has, if it says so.
async fn ask_offset(exchange: &Exchange<'_>, at: Url) -> Option<(Url, u64)> {
    let reply = exchange.send(&Request::new(Method::GET, at.clone())).await.ok()?;
    if !matches!(reply.status(), StatusCode::NO_CONTENT | StatusCode::ACCEPTED) {
        return None;
    }
    let offset = reply.text_of(RANGE).and_then(range_end)?;
    Some((exchange.located(&reply).unwrap_or(at), offset))
}

/// An upload that is unknown, or whose key has been renewed meanwhile, is begun anew.
async fn upload_refusal(exchange: &Exchange<'_>, reply: Reply) -> Error {
    let status = reply.status();
    let again = [
        StatusCode::UNAUTHORIZED,
        StatusCode::NOT_FOUND,
        StatusCode::BAD_REQUEST,
        StatusCode::RANGE_NOT_SATISFIABLE,
    ];
    if !again.contains(&status) {
        return exchange.refusal(reply).await;
    }
    let error = exchange.refusal(reply).await;
    exchange.broken(format!("the upload was refused with {}: {error}", status.as_u16()))
}

/// `0-9` are ten bytes. So is none where a registry has none: `0-0` by its own habit.
fn range_end(text: &str) -> Option<u64> {
    let (start, end) = text.trim().trim_start_matches("bytes=").split_once('-')?;
    let end = end.parse::<u64>().ok()?;
    match (start, end) {
        ("0", 0) => Some(0),
        ("0", end) => end.checked_add(1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::range_end;

    #[test]
    fn offsets_are_read() {
        for (text, expect) in [
            ("0-9", Some(10)),
            ("bytes=0-9", Some(10)),
            ("0-0", Some(0)),
            ("0--1", None),
            ("5-9", None),
            ("", None),
        ] {
            assert_eq!(range_end(text), expect, "{text}");
        }
    }
}
