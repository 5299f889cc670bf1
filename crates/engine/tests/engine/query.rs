//! Requests, and what becomes of those that are no good.

use crate::world::{MEETING, World};
use bytes::Bytes;
use futures::stream;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use protocol::session::{
    ClientSettings, ERROR_KINDS_HEADER, EngineStatus, MAX_BODY_BYTES, Purpose, QUERY_PATH,
    SCHEMA_PATH, STATUS_PATH,
};
use serde_json::{Value, json};

#[tokio::test]
async fn a_query_is_answered() {
    let world = World::new();
    let session = world.session().await;
    let reply = session.query("{ echo(text: \"hi\") }").await;
    assert_eq!(reply, json!({ "data": { "echo": "hi" } }));
}

#[tokio::test]
async fn absent_null_and_empty_mean_the_same() {
    let world = World::new();
    let session = world.session().await;
    let query = "query Q($t: String = \\\"d\\\") { echo(text: $t) }";
    for rest in [
        "",
        ", \"variables\": null",
        ", \"variables\": {}",
        ", \"operationName\": null",
        ", \"operationName\": \"\"",
        ", \"operationName\": \"Q\"",
        ", \"extensions\": {\"unknown\": 1}",
    ] {
        let body = format!("{{\"query\": \"{query}\"{rest}}}");
        let (status, text) = session.ask("POST", QUERY_PATH, &body).await;
        assert_eq!((status, text.as_str()), (StatusCode::OK, r#"{"data":{"echo":"d"}}"#), "{rest}");
    }
}

#[tokio::test]
async fn what_is_no_request_is_a_bad_request_in_json() {
    let world = World::new();
    let session = world.session().await;
    for body in
        ["", "no json", "[]", "{}", "{\"query\": null}", "{\"query\": 1}", "{\"query\":\"{a}\""]
    {
        let (status, text) = session.ask("POST", QUERY_PATH, body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
        let json: Value = serde_json::from_str(&text).unwrap();
        assert!(json["errors"][0]["message"].is_string() && json["data"].is_null(), "{text}");
    }
}

#[tokio::test]
async fn what_reached_graphql_is_answered_with_status_200() {
    let world = World::new();
    let session = world.session().await;
    for document in ["{ nothing }", "{", "mutation { x }"] {
        let reply = session.query(document).await;
        assert!(reply["errors"][0]["message"].is_string(), "{reply}");
        assert_eq!(reply["errors"][0].get("extensions"), None, "{reply}");
    }
}

#[tokio::test]
async fn kinds_of_errors_are_told_to_who_asks() {
    let world = World::new();
    let session = world.session().await;
    let body = Full::new(Bytes::from("{\"query\": \"{ nothing }\"}"));
    let request = Request::post(QUERY_PATH).header(ERROR_KINDS_HEADER, "1").body(body).unwrap();
    let body = session.send(request).await.into_body().collect().await.unwrap().to_bytes();
    let reply: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(reply["errors"][0]["extensions"]["_type"], "USER", "{reply}");
}

#[tokio::test]
async fn other_paths_and_methods_are_refused() {
    let world = World::new();
    let session = world.session().await;
    for (method, path, expected) in [
        ("GET", "/query", StatusCode::METHOD_NOT_ALLOWED),
        ("POST", "/events", StatusCode::METHOD_NOT_ALLOWED),
        ("GET", "/close", StatusCode::METHOD_NOT_ALLOWED),
        ("GET", "/", StatusCode::NOT_FOUND),
        ("POST", "/files/read", StatusCode::NOT_FOUND),
    ] {
        assert_eq!(session.ask(method, path, "").await.0, expected, "{method} {path}");
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_and_the_session_goes_on() {
    let world = World::new();
    let session = world.session().await;
    let long = "x".repeat(MAX_BODY_BYTES + 1);
    let (status, text) = session.ask("POST", QUERY_PATH, &long).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["errors"][0]["message"], "the request is larger than 32 MiB");
    assert_eq!(session.query("{ echo(text: \"a\") }").await["data"]["echo"], "a");
}

#[tokio::test]
async fn a_body_of_unknown_length_is_refused_when_it_grows_too_long() {
    let world = World::new();
    let line = crate::world::hello(Purpose::Query(ClientSettings::default()));
    let (stream, _) = world.greet(&line).await;
    let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, driver) = handshake.await.unwrap();
    tokio::spawn(driver);
    let piece = Bytes::from(vec![b'x'; 1 << 20]);
    let pieces = (0..100).map(move |_| Ok::<_, std::io::Error>(Frame::data(piece.clone())));
    let body = StreamBody::new(stream::iter(pieces));
    let response = sender.send_request(Request::post(QUERY_PATH).body(body).unwrap()).await;
    assert_eq!(response.unwrap().status(), StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn a_thousand_requests_run_at_the_same_time() {
    let world = World::new();
    let session = world.session().await;
    let all = (0..MEETING).map(|number| {
        let session = &session;
        async move { session.query(&format!("{{ meet(number: {number}) }}")).await }
    });
    let replies = futures::future::join_all(all).await;
    assert!(replies.iter().all(|reply| reply["data"]["meet"] == "met"));
}

#[tokio::test]
async fn schema_and_status_are_told() {
    let world = World::new();
    let session = world.session().await;
    let (_, schema) = session.ask("GET", SCHEMA_PATH, "").await;
    let schema: protocol::schema::Schema = serde_json::from_str(&schema).unwrap();
    assert!(schema.types["Query"].fields.iter().any(|field| field.name == "echo"));
    let (_, status) = session.ask("GET", STATUS_PATH, "").await;
    let status: EngineStatus = serde_json::from_str(&status).unwrap();
    assert_eq!((status.sessions, status.pid), (1, std::process::id()));
}
