//! The paths of a session, and what each answers.

use super::Session;
use super::body::{Body, Received, Receiving, Refused, full};
use futures::stream;
use graph::Request as GraphRequest;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::TokioIo;
use link::Stream;
use protocol::SpanId;
use protocol::session::{
    ATTACH_AUTHORITY, CLOSE_PATH, ERROR_KINDS_HEADER, EVENTS_PATH, MAX_BODY_BYTES,
    PARENT_SPAN_HEADER, QUERY_PATH, SCHEMA_PATH, STATUS_PATH,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::io;
use std::sync::Arc;
use tokio::io::BufReader;

/// JSON up to this size is read where it arrives; more of it would keep others waiting.
const SMALL_JSON: usize = 1 << 20;

impl Session {
    /// The answer to one request. Dropping the future cancels the request.
    pub(crate) async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        if *request.method() == Method::CONNECT {
            return self.attach(request);
        }
        let allowed = match request.uri().path() {
            QUERY_PATH | CLOSE_PATH => Method::POST,
            EVENTS_PATH | SCHEMA_PATH | STATUS_PATH => Method::GET,
            path => return refusal(StatusCode::NOT_FOUND, &format!("there is no `{path}` here")),
        };
        if *request.method() != allowed {
            return wrong_method(&allowed);
        }
        match request.uri().path() {
            QUERY_PATH => self.query(request).await,
            EVENTS_PATH => self.events(),
            SCHEMA_PATH => json_answer(self.door.schema()),
            STATUS_PATH => json_answer(json!(self.door.status()).to_string()),
            _ => self.goodbye().await,
        }
    }

    async fn query(&self, request: Request<Incoming>) -> Response<Body> {
        if !self.is_open() {
            return refusal(StatusCode::CONFLICT, "the session is closed");
        }
        let request = match read_query(self.door.receiving(), request).await {
            Ok(request) => request,
            Err(refused) => return refused,
        };
        tokio::select! {
            reply = self.graph.execute(request) => json_answer(reply),
            () = self.ended() => refusal(StatusCode::GONE, "the session has ended"),
        }
    }

    /// Makes the stream of a request the way to the client's files. It ends with the session, which the connection
    /// that it is part of has to wait for.
    fn attach(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        if request.uri() != ATTACH_AUTHORITY {
            return refusal(StatusCode::NOT_FOUND, &format!("`{}` is not here", request.uri()));
        }
        tokio::spawn(async move {
            let serving = async {
                let stream =
                    TokioIo::new(hyper::upgrade::on(request).await.map_err(io::Error::other)?);
                self.host.serve(BufReader::new(Stream::Within(Box::new(stream)))).await
            };
            tokio::select! {
                served = serving => if let Err(error) = served {
                    tracing::debug!(%error, "the way to a client's files broke");
                },
                () = self.closed() => {}
            }
        });
        Response::new(full(""))
    }

    fn events(&self) -> Response<Body> {
        let Some(reader) = self.events.read() else {
            return refusal(StatusCode::CONFLICT, "the events of this session are read already");
        };
        let chunks = stream::unfold(reader, |mut reader| async move {
            let chunk = reader.next_chunk().await?;
            Some((Ok(Frame::data(chunk)), reader))
        });
        let mut response = Response::new(StreamBody::new(chunks).boxed_unsync());
        let kind = HeaderValue::from_static("application/x-ndjson");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response
    }

    /// Makes safe what the session made, then lets the client go.
    async fn goodbye(&self) -> Response<Body> {
        let flush = self.door.backend().flush.clone();
        let flushed = tokio::task::spawn_blocking(move || flush()).await;
        self.close();
        match flushed {
            Ok(Ok(())) => json_answer("{}"),
            Ok(Err(error)) => refusal(StatusCode::INTERNAL_SERVER_ERROR, &error.message),
            Err(error) => refusal(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        }
    }
}

/// A GraphQL request as it comes over the wire. Absent, null and empty mean the same.
#[derive(Deserialize)]
struct WireRequest {
    query: Option<String>,
    #[serde(default)]
    variables: Option<Map<String, Value>>,
    #[serde(default, rename = "operationName")]
    operation_name: Option<String>,
}

/// Takes in a query; what cannot be read is answered.
pub(super) async fn read_query(
    receiving: &Receiving,
    request: Request<Incoming>,
) -> Result<GraphRequest, Response<Body>> {
    let headers = request.headers().clone();
    let received = receiving.receive(request.into_body()).await;
    let received = received.map_err(|refused| refused_body(&refused))?;
    let read = read(received, &headers).await;
    read.map_err(|message| refusal(StatusCode::BAD_REQUEST, &message))
}

async fn read(received: Received, headers: &HeaderMap) -> Result<GraphRequest, String> {
    let parsed = if received.bytes().len() <= SMALL_JSON {
        parse(&received)
    } else {
        let parsing = tokio::task::spawn_blocking(move || parse(&received));
        parsing.await.map_err(|error| error.to_string())?
    };
    let parsed =
        parsed.map_err(|error| format!("the request is not the JSON of a query: {error}"))?;
    Ok(GraphRequest {
        query: parsed.query.ok_or("the request has no `query`")?,
        variables: parsed.variables,
        operation_name: parsed.operation_name.filter(|name| !name.is_empty()),
        error_kinds: headers.contains_key(ERROR_KINDS_HEADER),
        parent_span: parent_span(headers),
    })
}

fn parse(received: &Received) -> Result<WireRequest, serde_json::Error> {
    serde_json::from_slice(received.bytes())
}

fn parent_span(headers: &HeaderMap) -> Option<SpanId> {
    headers.get(PARENT_SPAN_HEADER)?.to_str().ok()?.parse().ok().map(SpanId)
}

fn refused_body(refused: &Refused) -> Response<Body> {
    let limit = MAX_BODY_BYTES >> 20;
    match refused {
        Refused::TooLarge => refusal(
            StatusCode::PAYLOAD_TOO_LARGE,
            &format!("the request is larger than {limit} MiB"),
        ),
        Refused::Busy => refusal(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many large requests are on their way to the engine",
        ),
        Refused::Broken => refusal(StatusCode::BAD_REQUEST, "the request broke off"),
    }
}

pub(super) fn wrong_method(allowed: &Method) -> Response<Body> {
    let mut response = refusal(StatusCode::METHOD_NOT_ALLOWED, &format!("use {allowed} here"));
    let value = HeaderValue::from_str(allowed.as_str()).expect("a method is a token");
    response.headers_mut().insert(ALLOW, value);
    response
}

/// An answer in the form of a GraphQL error, which every client can show.
pub(super) fn refusal(status: StatusCode, message: &str) -> Response<Body> {
    let body = json!({ "errors": [{ "message": message }], "data": null });
    let mut response = json_answer(body.to_string());
    *response.status_mut() = status;
    response
}

pub(super) fn json_answer(json: impl Into<bytes::Bytes>) -> Response<Body> {
    let mut response = Response::new(full(json));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
