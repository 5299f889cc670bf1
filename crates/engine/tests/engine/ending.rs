//! How requests, sessions and engines end.

use crate::world::{World, hello};
use bytes::Bytes;
use engine::Ended;
use http::{Request, StatusCode};
use http_body_util::Full;
use protocol::session::{CLOSE_PATH, ClientSettings, Greeting, Purpose, QUERY_PATH};
use serde_json::json;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const HANG: &str = "{ hang(name: \"a\") }";

fn request(document: &str) -> Request<Full<Bytes>> {
    let body = json!({ "query": document }).to_string();
    Request::post(QUERY_PATH).body(Full::new(body.into())).unwrap()
}

#[tokio::test]
async fn a_request_that_is_given_up_is_cancelled() {
    let world = World::new();
    let session = world.session().await;
    let mut sender = session.sender.clone();
    let asking = tokio::spawn(async move { sender.send_request(request(HANG)).await.map(drop) });
    assert_eq!(world.news().await, "started");
    asking.abort();
    assert_eq!(world.news().await, "dropped");
    assert_eq!(session.query("{ echo(text: \"a\") }").await["data"]["echo"], "a");
}

#[tokio::test]
async fn a_client_that_vanishes_takes_its_work_with_it() {
    let world = World::new();
    let (session, other) = (world.session().await, world.session().await);
    let mut sender = session.sender.clone();
    let asking = tokio::spawn(async move { sender.send_request(request(HANG)).await.map(drop) });
    assert_eq!(world.news().await, "started");
    session.hang_up().await;
    assert_eq!(world.news().await, "dropped");
    assert!(asking.await.unwrap().is_err());
    assert_eq!(other.query("{ echo(text: \"a\") }").await["data"]["echo"], "a");
}

#[tokio::test]
async fn a_session_is_flushed_before_it_is_let_go() {
    let world = World::new();
    let session = world.session().await;
    session.query("{ echo(text: \"a\") }").await;
    assert_eq!(world.flushes.load(Ordering::SeqCst), 0);
    let (status, _) = session.ask("POST", CLOSE_PATH, "").await;
    assert_eq!((status, world.flushes.load(Ordering::SeqCst)), (StatusCode::OK, 1));
    // The engine closes the connection.
    session.driver.await.unwrap();
}

#[tokio::test]
async fn a_client_with_one_connection_serves_its_files_there_until_the_session_ends() {
    let world = World::new();
    let document = "{ ask(uri: \"env://A\") }";
    let session = world.session().await;
    let serving = session.serve_within("hidden").await;
    assert_eq!(session.query(document).await["data"]["ask"], "hidden");
    // Neither waits for the other.
    let (status, _) = session.ask("POST", CLOSE_PATH, "").await;
    assert_eq!(status, StatusCode::OK);
    session.driver.await.unwrap();
    serving.await.unwrap();
    // The same without a goodbye.
    let session = world.session().await;
    let serving = session.serve_within("hidden").await;
    assert_eq!(session.query(document).await["data"]["ask"], "hidden");
    session.hang_up().await;
    serving.await.unwrap();
}

#[tokio::test]
async fn only_the_way_to_files_is_opened_within_a_connection() {
    let world = World::new();
    let session = world.session().await;
    let request = Request::connect("elsewhere:80").body(Full::default()).unwrap();
    assert_eq!(session.send(request).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(session.query("{ echo(text: \"a\") }").await["data"]["echo"], "a");
}

#[tokio::test]
async fn nobody_attaches_to_a_session_that_has_ended() {
    let world = World::new();
    let session = world.session().await;
    let name = session.name.clone();
    let (mut attached, _) = world.greet(&hello(Purpose::Attach { session: name.clone() })).await;
    session.hang_up().await;
    // The second connection ends with the first.
    let mut rest = vec![];
    let _ = attached.read_to_end(&mut rest).await;
    let (_, greeting) = world.greet(&hello(Purpose::Attach { session: name })).await;
    assert!(matches!(greeting, Greeting::Refused(_)));
}

#[tokio::test]
async fn an_engine_without_sessions_ends_after_the_idle_time() {
    let world = World::with_idle_timeout(Duration::from_millis(1));
    assert_eq!(world.serving.await.unwrap(), Ended::Idle);
}

#[tokio::test]
async fn an_engine_with_a_session_does_not_idle_out() {
    // A slow machine takes longer than that to open one.
    let mut idle = Duration::from_millis(300);
    let (world, session) = loop {
        let world = World::with_idle_timeout(idle);
        if let Some(session) = world.session_in_time().await {
            break (world, session);
        }
        idle *= 2;
    };
    // Time itself is what is tested here.
    tokio::time::sleep(idle * 2).await;
    assert_eq!(session.query("{ echo(text: \"a\") }").await["data"]["echo"], "a");
    session.hang_up().await;
    assert_eq!(world.serving.await.unwrap(), Ended::Idle);
}

#[tokio::test]
async fn an_idle_engine_ends_when_asked() {
    let world = World::new();
    let (mut stream, greeting) =
        world.greet(&hello(Purpose::Stop { force: false, when_idle: false })).await;
    assert!(matches!(greeting, Greeting::Welcome(_)));
    assert_eq!(world.serving.await.unwrap(), Ended::Asked);
    // Who asked is kept until the engine has gone.
    drop(world.door);
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
}

#[tokio::test]
async fn an_engine_with_sessions_ends_only_by_force() {
    let world = World::new();
    let session = world.session().await;
    let (_, greeting) = world.greet(&hello(Purpose::Stop { force: false, when_idle: false })).await;
    let Greeting::Refused(refusal) = greeting else { panic!("it must refuse") };
    assert_eq!(refusal.error.message, "1 session is open on this engine");
    let mut sender = session.sender.clone();
    let asking = tokio::spawn(async move { sender.send_request(request(HANG)).await.map(drop) });
    assert_eq!(world.news().await, "started");
    let (_stream, greeting) =
        world.greet(&hello(Purpose::Stop { force: true, when_idle: false })).await;
    assert!(matches!(greeting, Greeting::Welcome(_)));
    assert_eq!(world.news().await, "dropped");
    assert!(asking.await.unwrap().is_err());
}

const WHEN_IDLE: Purpose = Purpose::Stop { force: false, when_idle: true };

#[tokio::test]
async fn an_engine_that_is_to_end_when_idle_ends_with_its_last_session() {
    let world = World::new();
    let session = world.session().await;
    let (_waiting, greeting) = world.greet(&hello(WHEN_IDLE)).await;
    assert!(matches!(greeting, Greeting::Welcome(_)));
    // Whoever comes meanwhile is let in.
    let late = world.session().await;
    session.hang_up().await;
    assert_eq!(late.query("{ echo(text: \"a\") }").await["data"]["echo"], "a");
    late.hang_up().await;
    assert_eq!(world.serving.await.unwrap(), Ended::Asked);
}

#[tokio::test]
async fn who_no_longer_waits_for_the_end_does_not_cause_it() {
    let world = World::new();
    let session = world.session().await;
    let (mut waiting, _) = world.greet(&hello(WHEN_IDLE)).await;
    waiting.shutdown().await.unwrap();
    // The door has noticed once it hangs up too.
    assert_eq!(waiting.read(&mut [0]).await.unwrap(), 0);
    session.hang_up().await;
    let next = world.session().await;
    assert_eq!(next.query("{ echo(text: \"a\") }").await["data"]["echo"], "a");
}

#[tokio::test]
async fn words_for_the_user_are_told_once() {
    let world = World::new();
    world.door.announce(vec!["the cache was begun anew".into()]);
    let line = hello(Purpose::Query(ClientSettings::default()));
    let mut told = vec![];
    for _ in 0..2 {
        let (_, Greeting::Welcome(welcome)) = world.greet(&line).await else { panic!("refused") };
        told.push(welcome.notices);
    }
    assert_eq!(told, [vec!["the cache was begun anew".to_owned()], vec![]]);
}
