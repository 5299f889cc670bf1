//! Secrets and sockets of a client of a few lines.

use super::*;
use futures::StreamExt as _;
use protocol::attach::{SECRET_PATH, SOCKET_HEADER, SOCKET_PATH, SecretRequest, SocketAddress};

/// A client that sends back what comes, and what it was asked for first.
fn echo() -> Arc<AttachedHost> {
    let (ours, theirs) = UnixStream::pair().unwrap();
    tokio::spawn(async move {
        let service = service_fn(|request: Request<Incoming>| async move {
            assert_eq!(request.uri().path(), SOCKET_PATH);
            let header = request.headers()[SOCKET_HEADER].as_bytes().to_vec();
            let _: SocketAddress = serde_json::from_slice(&header).unwrap();
            Ok::<_, Infallible>(Response::new(request.into_body()))
        });
        let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        let _ = builder.serve_connection(TokioIo::new(theirs), service).await;
    });
    attached(ours)
}

#[tokio::test]
async fn a_secret_is_asked_for_by_its_address() {
    let mut world = World::new(StatusCode::OK, &b"\xffhunter2\n"[..]);
    let secret = world.host.secret("env://TOKEN".into()).await.unwrap();
    assert_eq!(secret, b"\xffhunter2\n");
    let (path, _, body) = world.asked.recv().await.unwrap();
    assert_eq!(path, SECRET_PATH);
    let asked: SecretRequest = serde_json::from_slice(&body).unwrap();
    assert_eq!(asked.uri, "env://TOKEN");
}

#[tokio::test]
async fn a_connection_is_two_streams_that_end_apart() {
    let host = echo();
    let mut channel = host.connect(SocketAddress::Unix("/s".into())).await.unwrap();
    for text in ["one", "two"] {
        channel.outgoing.send(text.into()).await.unwrap();
        assert_eq!(channel.incoming.next().await.unwrap(), text);
    }
    drop(channel.outgoing);
    assert_eq!(channel.incoming.next().await, None);
}

#[tokio::test]
async fn many_connections_are_open_at_once() {
    let host = echo();
    let mut open = vec![];
    for _ in 0..100 {
        open.push(host.connect(SocketAddress::Tcp("localhost".into(), 80)).await.unwrap());
    }
    for channel in open.iter_mut().rev() {
        channel.outgoing.send("still alive".into()).await.unwrap();
        assert_eq!(channel.incoming.next().await.unwrap(), "still alive");
    }
}
