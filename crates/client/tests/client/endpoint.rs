//! The loopback port: who is let in, what is refused, what is passed on.

use crate::fake::{Answer, FakeEngine, body, data};
use client::{ClientEnvironment, Endpoint, SessionOptions, connect};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use protocol::session::{ERROR_KINDS_HEADER, MAX_BODY_BYTES};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Barrier, mpsc};

async fn echo(request: Request<Incoming>) -> Response<Answer> {
    let kinds = request.headers().contains_key(ERROR_KINDS_HEADER);
    let body = request.into_body().collect().await.unwrap().to_bytes();
    data(&json!({ "length": body.len(), "kinds": kinds }).to_string())
}

fn basic(user: &str) -> String {
    use base64::Engine as _;
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(format!("{user}:")))
}

async fn send(port: u16, request: Request<Full<bytes::Bytes>>) -> (StatusCode, HeaderMap, String) {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let (mut sender, driver) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(driver);
    let response = sender.send_request(request).await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, headers, String::from_utf8(bytes.to_vec()).unwrap())
}

fn query(token: &str, bytes: impl Into<bytes::Bytes>) -> Request<Full<bytes::Bytes>> {
    Request::post("/query")
        .header("authorization", basic(token))
        .body(Full::new(bytes.into()))
        .unwrap()
}

#[tokio::test]
async fn only_the_token_lets_in() {
    let engine = FakeEngine::start(echo);
    let session = engine.session().await;
    let endpoint = Endpoint::start(&session).await.unwrap();
    assert_eq!(endpoint.token().len(), 64);
    let wrong = "0".repeat(64);
    for authorization in [None, Some(basic(&wrong)), Some(basic("")), Some("Bearer x".into())] {
        for path in ["/query", "/other"] {
            let mut request = Request::post(path);
            if let Some(value) = &authorization {
                request = request.header("authorization", value);
            }
            let request = request.body(Full::default()).unwrap();
            let (status, headers, text) = send(endpoint.port(), request).await;
            assert_eq!((status, text.as_str()), (StatusCode::UNAUTHORIZED, ""));
            assert!(headers["www-authenticate"].to_str().unwrap().starts_with("Basic "));
        }
    }
    let (status, headers, text) = send(endpoint.port(), query(endpoint.token(), "{}")).await;
    assert_eq!((status, text.as_str()), (StatusCode::OK, r#"{"data":{"kinds":false,"length":2}}"#));
    assert_eq!(headers["content-type"], "application/json");
}

#[tokio::test]
async fn other_paths_and_methods_are_refused_in_json() {
    let engine = FakeEngine::start(echo);
    let session = engine.session().await;
    let endpoint = Endpoint::start(&session).await.unwrap();
    for (method, path, expected) in [
        ("GET", "/query", StatusCode::METHOD_NOT_ALLOWED),
        ("PUT", "/query", StatusCode::METHOD_NOT_ALLOWED),
        ("POST", "/", StatusCode::NOT_FOUND),
        ("POST", "/close", StatusCode::NOT_FOUND),
        ("GET", "/events", StatusCode::NOT_FOUND),
    ] {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", basic(endpoint.token()))
            .body(Full::default())
            .unwrap();
        let (status, headers, text) = send(endpoint.port(), request).await;
        assert_eq!(status, expected, "{method} {path}");
        assert_eq!(headers.contains_key("allow"), expected == StatusCode::METHOD_NOT_ALLOWED);
        let json: Value = serde_json::from_str(&text).unwrap();
        assert!(json["errors"][0]["message"].is_string() && json["data"].is_null(), "{text}");
    }
}

#[tokio::test]
async fn status_and_kind_of_an_answer_are_passed_back() {
    let engine = FakeEngine::start(|_| async {
        let answer = Response::builder().status(400).header("content-type", "application/json");
        answer.header("location", "elsewhere").body(body("{\"errors\":[]}")).unwrap()
    });
    let session = engine.session().await;
    let endpoint = Endpoint::start(&session).await.unwrap();
    let (status, headers, text) = send(endpoint.port(), query(endpoint.token(), "no json")).await;
    assert_eq!((status, text.as_str()), (StatusCode::BAD_REQUEST, "{\"errors\":[]}"));
    assert!(!headers.contains_key("location"));
}

fn head(token: &str, extra: &str) -> String {
    let authorization = basic(token);
    format!("POST /query HTTP/1.1\r\nhost: x\r\nauthorization: {authorization}\r\n{extra}\r\n\r\n")
}

fn assert_too_large(answer: &str) {
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    let json = answer.split("\r\n\r\n").nth(1).unwrap();
    let json: Value = serde_json::from_str(json).unwrap();
    assert_eq!(json["errors"][0]["message"], "the request is larger than 32 MiB");
    assert!(json["data"].is_null());
}

/// Reads until the body of a small answer is complete.
async fn answer(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    while !text.ends_with('}') {
        let count = stream.read(&mut buffer).await.unwrap();
        assert!(count > 0, "closed after {text:?}");
        text.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
    }
    text
}

#[tokio::test]
async fn a_declared_100_mb_body_is_refused_before_it_is_sent() {
    let engine = FakeEngine::start(echo);
    let session = engine.session().await;
    let endpoint = Endpoint::start(&session).await.unwrap();
    for extra in ["", "\r\nexpect: 100-continue"] {
        let mut stream = TcpStream::connect(("127.0.0.1", endpoint.port())).await.unwrap();
        let head = head(endpoint.token(), &format!("content-length: 100000000{extra}"));
        stream.write_all(head.as_bytes()).await.unwrap();
        assert_too_large(&answer(&mut stream).await);
    }
}

#[tokio::test]
async fn who_sends_100_mb_without_looking_still_gets_the_answer() {
    let engine = FakeEngine::start(echo);
    let session = engine.session().await;
    let endpoint = Endpoint::start(&session).await.unwrap();
    let piece = vec![b'x'; 1 << 20];
    for chunked in [false, true] {
        let mut stream = TcpStream::connect(("127.0.0.1", endpoint.port())).await.unwrap();
        let length = 100 * piece.len();
        let extra = if chunked {
            "transfer-encoding: chunked".into()
        } else {
            format!("content-length: {length}")
        };
        stream.write_all(head(endpoint.token(), &extra).as_bytes()).await.unwrap();
        for _ in 0..100 {
            if chunked {
                stream.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).await.unwrap();
            }
            stream.write_all(&piece).await.unwrap();
            if chunked {
                stream.write_all(b"\r\n").await.unwrap();
            }
        }
        if chunked {
            stream.write_all(b"0\r\n\r\n").await.unwrap();
        }
        assert_too_large(&answer(&mut stream).await);
    }
    // The largest that is allowed, and the endpoint is as healthy as before.
    let largest = vec![b'x'; MAX_BODY_BYTES];
    let (status, _, text) = send(endpoint.port(), query(endpoint.token(), largest)).await;
    assert_eq!(status, StatusCode::OK);
    assert!(text.contains(&format!("\"length\":{MAX_BODY_BYTES}")), "{text}");
}

#[tokio::test]
async fn a_thousand_requests_are_answered_at_the_same_time() {
    const MANY: usize = 1000;
    let barrier = Arc::new(Barrier::new(MANY));
    let engine = FakeEngine::start(move |_| {
        let barrier = barrier.clone();
        async move {
            barrier.wait().await;
            data("1")
        }
    });
    let session = engine.session().await;
    let endpoint = Endpoint::start(&session).await.unwrap();
    let (port, token) = (endpoint.port(), endpoint.token());
    let all = futures::future::join_all((0..MANY).map(|_| send(port, query(token, "{}")))).await;
    assert!(all.iter().all(|(status, _, text)| status.is_success() && text == "{\"data\":1}"));
}

/// Says on a channel when it is dropped.
struct Dropped(mpsc::UnboundedSender<&'static str>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send("dropped");
    }
}

#[tokio::test]
async fn who_hangs_up_cancels_the_request() {
    let (sender, mut seen) = mpsc::unbounded_channel();
    let engine = FakeEngine::start(move |_| {
        let sender = sender.clone();
        async move {
            let _dropped = Dropped(sender.clone());
            sender.send("started").unwrap();
            std::future::pending().await
        }
    });
    let session = engine.session().await;
    let endpoint = Endpoint::start(&session).await.unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", endpoint.port())).await.unwrap();
    let request = head(endpoint.token(), "content-length: 2") + "{}";
    stream.write_all(request.as_bytes()).await.unwrap();
    assert_eq!(seen.recv().await, Some("started"));
    drop(stream);
    assert_eq!(seen.recv().await, Some("dropped"));
}

#[tokio::test]
async fn an_engine_that_has_gone_is_a_bad_gateway() {
    let mut engine = FakeEngine::start(echo);
    let session = engine.session().await;
    let endpoint = Endpoint::start(&session).await.unwrap();
    send(endpoint.port(), query(endpoint.token(), "{}")).await;
    engine.end().await;
    let (status, _, text) = send(endpoint.port(), query(endpoint.token(), "{}")).await;
    assert_eq!(status, StatusCode::BAD_GATEWAY);
    assert!(text.starts_with("the engine is gone"), "{text}");
}

#[tokio::test]
async fn a_dropped_endpoint_no_longer_answers() {
    let engine = FakeEngine::start(echo);
    let session = engine.session().await;
    let endpoint = Endpoint::start(&session).await.unwrap();
    let port = endpoint.port();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    drop(endpoint);
    let mut rest = vec![];
    let read = stream.read_to_end(&mut rest).await;
    assert!(read.is_err() || rest.is_empty());
}

#[tokio::test]
async fn a_joined_session_queries_through_the_endpoint() {
    let engine = FakeEngine::start(echo);
    let session = engine.session().await;
    let endpoint = Endpoint::start(&session).await.unwrap();
    let environment = ClientEnvironment {
        session_port: endpoint.port().to_string(),
        session_token: endpoint.token().into(),
        ..ClientEnvironment::default()
    };
    let joined = connect(&environment, SessionOptions::default()).await.unwrap();
    assert!(joined.is_joined());
    let found = joined.query("{ x }", None, None).await.unwrap();
    assert_eq!(found["kinds"], json!(true));
    assert_eq!(joined.events().next().await, None);
    joined.close().await.unwrap();
    let environment = ClientEnvironment { session_token: "wrong".into(), ..environment };
    let joined = connect(&environment, SessionOptions::default()).await.unwrap();
    let error = joined.query("{ x }", None, None).await.unwrap_err();
    assert!(error.message.contains("refuses the token"), "{error}");
}
