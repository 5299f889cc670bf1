//! What a client hears of its session.

use crate::world::{Client, World};
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use protocol::session::{CLOSE_PATH, EVENTS_PATH};
use protocol::{Event, Outcome};

async fn listen(session: &Client) -> Incoming {
    let request = Request::get(EVENTS_PATH).body(Full::<Bytes>::default()).unwrap();
    let response = session.send(request).await;
    assert_eq!(response.status(), StatusCode::OK);
    response.into_body()
}

fn read(lines: &[u8]) -> Vec<Event> {
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

#[tokio::test]
async fn a_client_hears_of_its_own_calls_until_it_leaves() {
    let world = World::new();
    let (session, other) = (world.session().await, world.session().await);
    let body = listen(&session).await;
    session.query("{ talk(text: \"mine\") }").await;
    other.query("{ talk(text: \"another's\") }").await;
    session.ask("POST", CLOSE_PATH, "").await;
    let events = read(&body.collect().await.unwrap().to_bytes());
    let started = events.iter().find_map(|event| match event {
        Event::Started { id, name, .. } if name.contains("talk") => Some(*id),
        _ => None,
    });
    let span = started.expect("the call has a span");
    assert!(events.iter().any(|event| matches!(event,
        Event::Log { id, text, .. } if *id == span && text == "mine")));
    assert!(events.iter().any(|event| matches!(event,
        Event::Ended { id, outcome: Outcome::Done, .. } if *id == span)));
    assert!(!format!("{events:?}").contains("another's"));
}

#[tokio::test]
async fn events_that_came_before_the_reader_are_kept_for_it() {
    let world = World::new();
    let session = world.session().await;
    session.query("{ talk(text: \"early\") }").await;
    let body = listen(&session).await;
    session.ask("POST", CLOSE_PATH, "").await;
    let events = read(&body.collect().await.unwrap().to_bytes());
    assert!(format!("{events:?}").contains("early"), "{events:?}");
}

#[tokio::test]
async fn events_have_one_reader() {
    let world = World::new();
    let session = world.session().await;
    let _body = listen(&session).await;
    assert_eq!(session.ask("GET", EVENTS_PATH, "").await.0, StatusCode::CONFLICT);
}

#[tokio::test]
async fn who_does_not_read_holds_nobody_up() {
    let world = World::new();
    let session = world.session().await;
    let body = listen(&session).await;
    let text = "x".repeat(1 << 20);
    for number in 0..10 {
        session.query(&format!("{{ talk(text: \"{number}{text}\") }}")).await;
    }
    session.ask("POST", CLOSE_PATH, "").await;
    let events = read(&body.collect().await.unwrap().to_bytes());
    let notes = events.iter().filter(|event| {
        matches!(event, Event::Log { text, .. } if text.contains("bytes of output are not shown"))
    });
    assert!(notes.count() > 0);
    let ends = events.iter().filter(|event| matches!(event, Event::Ended { .. })).count();
    assert!(ends >= 10, "{ends}");
}
