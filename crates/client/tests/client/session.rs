//! Greeting an engine, asking it, being asked by it, and leaving it.

use crate::fake::{Answer, FakeEngine, Seen, body, data, surroundings};
use client::{ClientEnvironment, Endpoint, Error, Session, SessionOptions, connect, stop};
use futures::stream;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use protocol::attach::{FIND_UP_PATH, FindUpReply, FindUpRequest};
use protocol::session::{
    CLOSE_PATH, ERROR_KINDS_HEADER, EVENTS_PATH, EngineStatus, Greeting, Purpose, STATUS_PATH,
    Welcome,
};
use protocol::{ErrorKind, Event, Outcome, SpanId};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

/// Answers a query with what was asked.
async fn echo(request: Request<Incoming>) -> Response<Answer> {
    let kinds = request.headers().contains_key(ERROR_KINDS_HEADER);
    let asked = request.into_body().collect().await.unwrap().to_bytes();
    let asked: Value = serde_json::from_slice(&asked).unwrap();
    data(&json!({ "asked": asked, "kinds": kinds }).to_string())
}

async fn open(engine: &FakeEngine) -> Result<Session, Error> {
    connect(&engine.environment(), SessionOptions::default()).await
}

#[tokio::test]
async fn a_query_carries_document_variables_and_operation() {
    let mut engine = FakeEngine::start(echo);
    let session = engine.session().await;
    let variables = json!({ "v": 1 }).as_object().cloned();
    let found = session.query("{ x }", variables, Some("Op")).await.unwrap();
    let asked = json!({ "query": "{ x }", "variables": { "v": 1 }, "operationName": "Op" });
    assert_eq!(found, json!({ "asked": asked, "kinds": true }));
    let Seen::Hello(hello) = engine.next().await else { panic!("the greeting comes first") };
    let Purpose::Query(settings) = hello.purpose else { panic!("a session is opened first") };
    assert_eq!(settings.workdir, engine.environment().workdir.to_str().unwrap());
    assert_eq!(session.engine_version(), "fake");
}

#[tokio::test]
async fn a_refusal_is_shown_with_its_hint() {
    let refusal = protocol::Error::environment("the engine is older").with_hint("end it");
    let engine = FakeEngine::greeting(Greeting::Refused(refusal.into()));
    let error: protocol::Error = open(&engine).await.unwrap_err().into();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ErrorKind::Environment, "the engine is older")
    );
    assert_eq!(error.hints, ["end it"]);
}

#[tokio::test]
async fn who_is_not_there_or_no_engine_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("engine.sock");
    let environment = ClientEnvironment {
        engine: format!("unix://{}", path.display()),
        ..surroundings(dir.path())
    };
    let open = || connect(&environment, SessionOptions::default());
    let error = open().await.unwrap_err();
    assert!(matches!(error, Error::Absent { .. }), "{error}");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    let (error, ()) = tokio::join!(open(), async {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = BufReader::new(stream);
        stream.read_line(&mut String::new()).await.unwrap();
        stream.write_all(b"SSH-2.0\n").await.unwrap();
    });
    let error = error.unwrap_err();
    assert!(matches!(error, Error::NotAnEngine(_)), "{error}");
    let (error, ()) = tokio::join!(open(), async { drop(listener.accept().await.unwrap()) });
    let error = error.unwrap_err();
    assert!(matches!(error, Error::Gone(_)), "{error}");
}

#[tokio::test]
async fn a_socket_path_that_does_not_fit_is_an_error_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let environment = surroundings(&dir.path().join("x".repeat(120)));
    let error = connect(&environment, SessionOptions::default()).await.unwrap_err();
    let error = protocol::Error::from(error);
    assert!(error.message.contains("too long"), "{error}");
    assert!(error.hints[0].contains("CITOOL_STATE_DIR"));
}

#[tokio::test]
async fn events_come_in_order_and_end_with_the_session() {
    let event = |number| Event::Ended { id: SpanId(number), outcome: Outcome::Done, at: number };
    let mut engine = FakeEngine::start(move |request: Request<Incoming>| async move {
        if request.uri().path() != EVENTS_PATH {
            assert_eq!(request.uri().path(), CLOSE_PATH);
            return Response::new(body(""));
        }
        let lines: String =
            (0..5).map(|n| serde_json::to_string(&event(n)).unwrap() + "\n").collect();
        // Cut where no line ends, with a line of another engine's in between.
        let text = lines.replacen('\n', "\n{\"Unknown\":{}}\n", 1);
        let pieces: Vec<_> = text.as_bytes().chunks(7).map(<[u8]>::to_vec).collect();
        let frames = pieces.into_iter().map(|piece| Ok(Frame::data(piece.into())));
        Response::new(StreamBody::new(stream::iter(frames)).boxed_unsync())
    });
    let session = engine.session().await;
    let mut events = session.events();
    session.close().await.unwrap();
    for number in 0..5 {
        assert_eq!(events.next().await, Some(event(number)));
    }
    assert_eq!(events.next().await, None);
    engine.end().await;
}

#[tokio::test]
async fn a_dropped_session_ends_its_connection_whatever_is_on_its_way() {
    let (sender, mut asked) = mpsc::unbounded_channel();
    let mut engine = FakeEngine::start(move |_| {
        sender.send(()).unwrap();
        std::future::pending()
    });
    let session = engine.session().await;
    let endpoint = Endpoint::start(&session).await.unwrap();
    let joined = Session::join(&endpoint.port().to_string(), endpoint.token()).unwrap();
    let asking = tokio::spawn(async move { joined.query("{ x }", None, None).await });
    asked.recv().await.unwrap();
    drop(session);
    while !matches!(engine.next().await, Seen::Ended) {}
    let error = asking.await.unwrap().unwrap_err();
    assert!(error.message.contains("the engine is gone"), "{error}");
}

#[tokio::test]
async fn files_are_served_for_as_long_as_the_session_lives() {
    let mut engine = FakeEngine::start(echo);
    let session = engine.session().await;
    let mut sender = loop {
        if let Seen::Attached(sender) = engine.next().await {
            break sender;
        }
    };
    let asked = serde_json::to_vec(&FindUpRequest { name: "engine.sock".into() }).unwrap();
    let request = Request::post(FIND_UP_PATH).body(Full::new(asked.into())).unwrap();
    let response = sender.send_request(request).await.unwrap();
    let reply = response.into_body().collect().await.unwrap().to_bytes();
    let reply: FindUpReply = serde_json::from_slice(&reply).unwrap();
    assert_eq!(reply.path.as_deref(), Some("engine.sock"));
    drop(session);
    let request = Request::post(FIND_UP_PATH).body(Full::default()).unwrap();
    assert!(sender.send_request(request).await.is_err());
}

#[tokio::test]
async fn status_is_read() {
    let status = EngineStatus { version: "v".into(), pid: 1, sessions: 2, uptime_seconds: 3 };
    let json = serde_json::to_string(&status).unwrap();
    let engine = FakeEngine::start(move |request: Request<Incoming>| {
        assert_eq!(request.uri().path(), STATUS_PATH);
        let json = json.clone();
        async move { Response::new(body(json)) }
    });
    assert_eq!(engine.session().await.status().await.unwrap(), status);
}

#[tokio::test]
async fn stop_waits_until_the_engine_has_gone() {
    let welcome = Welcome { version: String::new(), session: String::new(), notices: vec![] };
    let mut engine = FakeEngine::greeting(Greeting::Welcome(welcome));
    let environment = engine.environment();
    let stopping = tokio::spawn(async move { stop(&environment, true).await });
    let Seen::Hello(hello) = engine.next().await else { panic!("the greeting comes first") };
    assert_eq!(hello.purpose, Purpose::Stop { force: true, when_idle: false });
    assert!(!stopping.is_finished());
    engine.end().await;
    assert!(stopping.await.unwrap().unwrap());
    std::fs::remove_file(engine.socket()).unwrap();
    assert!(!stop(&engine.environment(), true).await.unwrap());
}

#[tokio::test]
async fn joining_needs_a_port_and_a_token() {
    for (port, token, message) in [
        ("x", "t", "cannot join the session: `x` is no port"),
        ("0", "t", "cannot join the session: `0` is no port"),
        ("99999", "t", "cannot join the session: `99999` is no port"),
        ("1", "", "cannot join the session: the port is set and the token is not"),
    ] {
        let environment = ClientEnvironment {
            session_port: port.into(),
            session_token: token.into(),
            ..ClientEnvironment::default()
        };
        let error = connect(&environment, SessionOptions::default()).await.unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}
