//! Asking a client of a few lines for its files.

mod fuzz;
mod handover;
mod socket;
mod terminal;
mod write;

use super::*;
use hyper::service::service_fn;
use protocol::ErrorKind;
use protocol::attach::{
    Entry, EntryKind, FrameKind, Name, READ_PATH, WRITE_HEADER, WRITE_PATH, WriteReply, frame,
};
use std::convert::Infallible;
use std::sync::Arc;
use tokio::io::BufReader;
use tokio::net::UnixStream;
use tokio::task::JoinHandle;

/// The host of a client at the other end.
fn attached(client: UnixStream) -> Arc<AttachedHost> {
    let host = Arc::new(AttachedHost::default());
    let serving = host.clone();
    tokio::spawn(async move { serving.serve(BufReader::new(client.into())).await });
    host
}

/// A host whose client answers with `status` and `answer`, and what the client was asked.
struct World {
    host: Arc<AttachedHost>,
    asked: mpsc::UnboundedReceiver<(String, String, Bytes)>,
    client: JoinHandle<()>,
}

impl World {
    fn new(status: StatusCode, answer: impl Into<Bytes>) -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (sender, asked) = mpsc::unbounded_channel();
        let answer = answer.into();
        let client = tokio::spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                let (sender, answer) = (sender.clone(), answer.clone());
                async move {
                    let path = request.uri().path().to_owned();
                    let header = request.headers().get(WRITE_HEADER);
                    let header = header.map(|value| value.to_str().unwrap().to_owned());
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    sender.send((path, header.unwrap_or_default(), body)).unwrap();
                    let mut response = Response::new(full(answer));
                    *response.status_mut() = status;
                    Ok::<_, Infallible>(response)
                }
            });
            let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            let _ = builder.serve_connection(TokioIo::new(theirs), service).await;
        });
        Self { host: attached(ours), asked, client }
    }

    async fn read(&self) -> (Result<(), Error>, Vec<String>) {
        let (sender, mut receiver) = mpsc::channel(1);
        let collecting = tokio::spawn(async move {
            let mut parts = vec![];
            while let Some(part) = receiver.recv().await {
                parts.push(match part {
                    TreePart::Entry(entry) => format!("entry {}", entry.path),
                    TreePart::Data(bytes) => String::from_utf8(bytes).unwrap(),
                    TreePart::Again(entry) => format!("again {}", entry.path),
                    TreePart::EndOfFile => "end of file".into(),
                    TreePart::End => "end".into(),
                });
            }
            parts
        });
        let result = self.host.read(request(), sender).await;
        (result, collecting.await.unwrap())
    }
}

fn request() -> ReadRequest {
    ReadRequest {
        path: "p".into(),
        directory: true,
        include: vec![],
        exclude: vec![],
        gitignore: false,
    }
}

fn entry() -> Vec<u8> {
    let entry = Entry {
        path: "a".into(),
        kind: EntryKind::File,
        mode: 0o644,
        modified: 0,
        size: 2,
        target: Name::default(),
    };
    frame(FrameKind::Entry, &serde_json::to_vec(&entry).unwrap())
}

#[tokio::test]
async fn a_tree_comes_in_parts() {
    let answer = [
        entry(),
        frame(FrameKind::Data, b"hi"),
        frame(FrameKind::EndOfFile, b""),
        frame(FrameKind::End, b""),
    ];
    let mut world = World::new(StatusCode::OK, answer.concat());
    let (result, parts) = world.read().await;
    result.unwrap();
    assert_eq!(parts, ["entry a", "hi", "end of file", "end"]);
    let (path, _, body) = world.asked.recv().await.unwrap();
    assert_eq!(path, READ_PATH);
    assert_eq!(serde_json::from_slice::<ReadRequest>(&body).unwrap(), request());
}

#[tokio::test]
async fn an_error_of_the_client_keeps_its_kind_and_hints() {
    let error = Error::user("p: no such file").with_hint("look elsewhere");
    let json = serde_json::to_vec(&error).unwrap();
    for (status, answer) in [
        (StatusCode::BAD_REQUEST, json.clone()),
        (StatusCode::OK, [entry(), frame(FrameKind::Failed, &json)].concat()),
    ] {
        let (result, _) = World::new(status, answer).read().await;
        let error = result.unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (ErrorKind::User, "p: no such file"));
        assert_eq!(error.hints, ["look elsewhere"]);
    }
}

#[tokio::test]
async fn a_tree_that_breaks_off_is_an_error() {
    let (result, _) = World::new(StatusCode::OK, entry()).read().await;
    assert!(result.unwrap_err().message.contains("stopped in the middle"));
    let (result, _) = World::new(StatusCode::OK, vec![9; 9]).read().await;
    assert_eq!(result.unwrap_err().kind, ErrorKind::Internal);
    let (result, _) = World::new(StatusCode::BAD_GATEWAY, "what?").read().await;
    assert!(result.unwrap_err().message.contains("it answered: what?"));
}

#[tokio::test]
async fn whoever_gives_up_taking_parts_ends_the_read() {
    let mut answer = vec![];
    for _ in 0..1000 {
        answer.extend(frame(FrameKind::Data, &[0; 1000]));
    }
    let world = World::new(StatusCode::OK, answer);
    let (sender, mut receiver) = mpsc::channel(1);
    let (result, _) = tokio::join!(world.host.read(request(), sender), async {
        receiver.recv().await;
        drop(receiver);
    });
    result.unwrap();
}

#[tokio::test]
async fn find_up_asks_and_answers() {
    let reply = serde_json::to_vec(&FindUpReply { path: Some("../x".into()) }).unwrap();
    let mut world = World::new(StatusCode::OK, reply);
    assert_eq!(world.host.find_up("x".into()).await.unwrap().as_deref(), Some("../x"));
    assert_eq!(world.asked.recv().await.unwrap().0, FIND_UP_PATH);
}

#[tokio::test]
async fn a_client_that_has_gone_is_an_error_at_once() {
    let world = World::new(StatusCode::OK, "{\"path\": null}");
    world.host.find_up("x".into()).await.unwrap();
    world.client.abort();
    let _ = world.client.await;
    let error = world.host.find_up("x".into()).await.unwrap_err();
    assert!(error.message.starts_with("the files of the client cannot be reached"), "{error}");
    world.host.end();
    let error = world.host.find_up("x".into()).await.unwrap_err();
    assert!(error.message.ends_with("its connection is closed"), "{error}");
}
