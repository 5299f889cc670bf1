//! One request of the endpoint: checked, passed on, answered.

use super::counted::{Counted, drain};
use crate::Error;
use crate::session::{Body, Requests, full};
use bytes::Bytes;
use http::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HeaderName, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use link::Token;
use protocol::session::{ERROR_KINDS_HEADER, MAX_BODY_BYTES, QUERY_PATH, SCHEMA_PATH};
use serde_json::json;
use std::error::Error as StdError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A body up to this size is passed on at once.
const SMALL_BODY: usize = 64 << 10;
/// How many bytes of larger bodies are on their way at a time; the rest wait in their sockets. The
/// engine has to hold a body until it is complete.
const LARGE_BODIES: usize = 2 * MAX_BODY_BYTES;
/// Passes requests on to the engine.
pub(super) struct Forward {
    requests: Requests,
    token: Token,
    large_bodies: Arc<Semaphore>,
}

impl Forward {
    pub(super) fn new(requests: Requests, token: Token) -> Self {
        Self { requests, token, large_bodies: Arc::new(Semaphore::new(LARGE_BODIES)) }
    }

    /// The answer to one request.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        if !self.token.admits(request.headers().get(http::header::AUTHORIZATION)) {
            return unauthorized();
        }
        let method = match request.uri().path() {
            QUERY_PATH => Method::POST,
            // Not for published clients: our own command line reads it when it joins a session.
            SCHEMA_PATH => Method::GET,
            path => return refusal(StatusCode::NOT_FOUND, &format!("there is no `{path}` here")),
        };
        if *request.method() != method {
            let mut response =
                refusal(StatusCode::METHOD_NOT_ALLOWED, &format!("use {method} here"));
            let allowed = HeaderValue::from_str(method.as_str()).expect("a method is a token");
            response.headers_mut().insert(ALLOW, allowed);
            return response;
        }
        if declared_length(request.headers()).is_some_and(|length| length > MAX_BODY_BYTES as u64) {
            return refuse_body(request);
        }
        self.pass_on(request).await
    }

    async fn pass_on(&self, request: Request<Incoming>) -> Response<Body> {
        let permit = self.admit(&request).await;
        let (head, body) = request.into_parts();
        let too_long = Arc::new(AtomicBool::new(false));
        let mut forwarded = Request::builder().method(head.method).uri(head.uri.path());
        for name in [CONTENT_TYPE, HeaderName::from_static(ERROR_KINDS_HEADER)] {
            if let Some(value) = head.headers.get(&name) {
                forwarded = forwarded.header(name, value);
            }
        }
        let body = Counted::new(body, too_long.clone(), permit);
        let request = forwarded.body(body.boxed_unsync()).expect("a head made of valid parts");
        match self.requests.send(request).await {
            Ok(response) => passed_back(response),
            Err(_) if too_long.load(Ordering::Relaxed) => refuse_long(),
            Err(error) => bad_gateway(&error),
        }
    }

    /// Waits until a large body may be sent. A body of unknown length counts as the largest.
    async fn admit(&self, request: &Request<Incoming>) -> Option<OwnedSemaphorePermit> {
        let hint = request.body().size_hint();
        let bytes = hint.upper().unwrap_or(MAX_BODY_BYTES as u64) as usize;
        if bytes <= SMALL_BODY {
            return None;
        }
        self.large_bodies.clone().acquire_many_owned(bytes as u32).await.ok()
    }
}

fn declared_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn passed_back(response: Response<Incoming>) -> Response<Body> {
    let (head, body) = response.into_parts();
    let body = body.map_err(|error| Box::new(error) as Box<dyn StdError + Send + Sync>);
    let mut passed = Response::new(body.boxed_unsync());
    *passed.status_mut() = head.status;
    if let Some(kind) = head.headers.get(CONTENT_TYPE) {
        passed.headers_mut().insert(CONTENT_TYPE, kind.clone());
    }
    passed
}

/// Refuses a body whose length was declared. It is read away, unless its sender waits for our word
/// before it sends.
fn refuse_body(request: Request<Incoming>) -> Response<Body> {
    if !request.headers().contains_key(EXPECT) {
        drain(request.into_body());
    }
    refuse_long()
}

fn refuse_long() -> Response<Body> {
    let limit = MAX_BODY_BYTES >> 20;
    refusal(StatusCode::PAYLOAD_TOO_LARGE, &format!("the request is larger than {limit} MiB"))
}

/// An answer in the form of a GraphQL error, which every client library can show.
fn refusal(status: StatusCode, message: &str) -> Response<Body> {
    let json = json!({ "errors": [{ "message": message }], "data": null }).to_string();
    plain(status, "application/json", json)
}

fn unauthorized() -> Response<Body> {
    let mut response = plain(StatusCode::UNAUTHORIZED, "", String::new());
    let challenge = HeaderValue::from_static("Basic realm=\"ci-tool session\"");
    response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    response
}

fn bad_gateway(error: &Error) -> Response<Body> {
    plain(StatusCode::BAD_GATEWAY, "text/plain", format!("{error}\n"))
}

fn plain(status: StatusCode, kind: &'static str, text: String) -> Response<Body> {
    let mut response = Response::new(full(Bytes::from(text)));
    *response.status_mut() = status;
    if !kind.is_empty() {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    response
}
