//! Trees and files on their way to the client.

use super::*;
use protocol::attach::Writing;

fn request(path: String) -> WriteRequest {
    WriteRequest { path, what: Writing::Directory { wipe: true } }
}

#[tokio::test]
async fn frames_are_sent_as_they_come_after_their_head() {
    let reply = serde_json::to_vec(&WriteReply { path: "/there".into() }).unwrap();
    let mut world = World::new(StatusCode::OK, reply);
    let (sender, pieces) = mpsc::channel(1);
    let sent: Vec<Vec<u8>> = (0..100u8).map(|number| vec![number; 6000]).collect();
    let expected = sent.concat();
    let sending = tokio::spawn(async move {
        for piece in sent {
            sender.send(piece).await.unwrap();
        }
    });
    let asked = request("\u{e4}".into());
    assert_eq!(world.host.write(asked.clone(), pieces).await.unwrap(), "/there");
    sending.await.unwrap();
    let (path, header, body) = world.asked.recv().await.unwrap();
    assert_eq!(path, WRITE_PATH);
    assert_eq!(serde_json::from_str::<WriteRequest>(&header).unwrap(), asked);
    assert_eq!(body, expected);
}

#[tokio::test]
async fn what_the_client_says_comes_back() {
    let error = Error::environment("/x: read-only file system").with_hint("elsewhere");
    let world = World::new(StatusCode::INTERNAL_SERVER_ERROR, serde_json::to_vec(&error).unwrap());
    let (_, pieces) = mpsc::channel(1);
    let said = world.host.write(request("p".into()), pieces).await.unwrap_err();
    assert_eq!((said.kind, said.message), (error.kind, error.message));
    assert_eq!(said.hints, error.hints);
}

#[tokio::test]
async fn a_path_that_no_system_takes_is_not_sent() {
    let mut world = World::new(StatusCode::OK, "{}");
    let (_sender, pieces) = mpsc::channel(1);
    let error = world.host.write(request("x".repeat(4_000_000)), pieces).await.unwrap_err();
    assert_eq!(error.message, "a path of 4000000 bytes is too long");
    assert!(world.asked.try_recv().is_err());
}
