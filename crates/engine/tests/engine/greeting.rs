//! Who is let in.

use crate::world::{World, hello};
use protocol::ErrorKind;
use protocol::session::{ClientSettings, Greeting, Purpose};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

fn refusal(greeting: Greeting) -> protocol::Error {
    match greeting {
        Greeting::Refused(refusal) => refusal.error,
        Greeting::Welcome(_) => panic!("let in"),
    }
}

#[tokio::test]
async fn every_session_has_an_unguessable_name() {
    let world = World::new();
    let (one, two) = (world.session().await, world.session().await);
    assert!(one.name.len() == 64 && one.name.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert_ne!(one.name, two.name);
}

#[tokio::test]
async fn another_version_is_refused_with_a_hint() {
    let world = World::new();
    let line = hello(Purpose::Query(ClientSettings::default())).replace(protocol::VERSION, "9.9.9");
    let error = refusal(world.greet(&line).await.1);
    assert_eq!(error.kind, ErrorKind::Environment);
    assert!(error.message.contains("9.9.9") && error.message.contains(protocol::VERSION));
    assert!(error.hints.iter().any(|hint| hint.contains("engine stop")), "{:?}", error.hints);
}

#[tokio::test]
async fn noise_is_refused() {
    let world = World::new();
    let error = refusal(world.greet("GET / HTTP/1.1").await.1);
    assert!(error.message.starts_with("this is no greeting"), "{error}");
}

#[tokio::test]
async fn a_greeting_without_end_is_cut_off() {
    let world = World::new();
    let mut stream = UnixStream::connect(world.socket()).await.unwrap();
    let noise = vec![b'x'; 1 << 20];
    // The door stops reading long before all is written.
    let _ = stream.write_all(&noise).await;
    let mut rest = vec![];
    let _ = stream.read_to_end(&mut rest).await;
    assert!(rest.is_empty());
    world.session().await;
}

#[tokio::test]
async fn only_a_session_that_is_open_can_be_attached_to() {
    let world = World::new();
    let session = world.session().await;
    let attach = |name: &str| hello(Purpose::Attach { session: name.into() });
    let (_stream, greeting) = world.greet(&attach(&session.name)).await;
    assert!(matches!(greeting, Greeting::Welcome(_)));
    let error = refusal(world.greet(&attach(&"0".repeat(64))).await.1);
    assert_eq!(error.message, "there is no such session");
}
