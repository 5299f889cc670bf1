//! An engine made of a few lines: it greets, and answers requests with a function.

use bytes::Bytes;
use client::{ClientEnvironment, Session, SessionOptions, connect};
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use protocol::session::{Greeting, Hello, Purpose, Welcome};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

pub(crate) type Answer = UnsyncBoxBody<Bytes, Infallible>;
type Handler = dyn Fn(Request<Incoming>) -> BoxFuture<'static, Response<Answer>> + Send + Sync;

/// What the fake engine saw.
pub(crate) enum Seen {
    /// A greeting.
    Hello(Hello),
    /// A client that serves attachables.
    Attached(SendRequest<Full<Bytes>>),
    /// A query connection ended.
    Ended,
}

pub(crate) struct FakeEngine {
    dir: Arc<TempDir>,
    seen: mpsc::UnboundedReceiver<Seen>,
    accepting: JoinHandle<()>,
}

/// A body of these bytes.
pub(crate) fn body(text: impl Into<Bytes>) -> Answer {
    Full::new(text.into()).boxed_unsync()
}

/// An answer of GraphQL data.
pub(crate) fn data(text: &str) -> Response<Answer> {
    let json = format!("{{\"data\":{text}}}");
    Response::builder().header("content-type", "application/json").body(body(json)).unwrap()
}

impl FakeEngine {
    /// Listens in a folder of its own.
    pub(crate) fn start<F>(handler: impl Fn(Request<Incoming>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Response<Answer>> + Send + 'static,
    {
        let dir = Arc::new(tempfile::tempdir().unwrap());
        let handler: Arc<Handler> = Arc::new(move |request| Box::pin(handler(request)));
        Self::listen(dir, welcome(), handler)
    }

    /// Greets every client with this.
    pub(crate) fn greeting(greeting: Greeting) -> Self {
        let handler: Arc<Handler> = Arc::new(|_| Box::pin(async { data("null") }));
        Self::listen(Arc::new(tempfile::tempdir().unwrap()), greeting, handler)
    }

    /// Listens in a state folder that a test made.
    pub(crate) fn in_state(dir: Arc<TempDir>) -> Self {
        let handler: Arc<Handler> = Arc::new(|_| Box::pin(async { data("null") }));
        Self::listen(dir, welcome(), handler)
    }

    fn listen(dir: Arc<TempDir>, greeting: Greeting, handler: Arc<Handler>) -> Self {
        let listener = UnixListener::bind(dir.path().join("engine.sock")).unwrap();
        let (sender, seen) = mpsc::unbounded_channel();
        let accepting = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                connections.spawn(serve(stream, greeting.clone(), handler.clone(), sender.clone()));
            }
        });
        Self { dir, seen, accepting }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("engine.sock")
    }

    /// Ends with all its connections.
    pub(crate) async fn end(&mut self) {
        self.accepting.abort();
        let _ = (&mut self.accepting).await;
    }

    pub(crate) async fn next(&mut self) -> Seen {
        self.seen.recv().await.unwrap()
    }

    /// Surroundings that name this engine.
    pub(crate) fn environment(&self) -> ClientEnvironment {
        ClientEnvironment {
            engine: format!("unix://{}", self.socket().display()),
            ..surroundings(self.dir.path())
        }
    }

    pub(crate) async fn session(&self) -> Session {
        connect(&self.environment(), SessionOptions::default()).await.unwrap()
    }
}

fn welcome() -> Greeting {
    let (version, session) = ("fake".into(), "s".into());
    Greeting::Welcome(Welcome { version, session, notices: vec!["words".into()] })
}

/// Surroundings with a state folder.
pub(crate) fn surroundings(state: &Path) -> ClientEnvironment {
    let mut environment = ClientEnvironment {
        program: "/nonexistent/ci-tool".into(),
        workdir: state.to_owned(),
        ..ClientEnvironment::default()
    };
    environment.variables.state_dir = Some(state.to_owned());
    environment.variables.home = Some(state.to_owned());
    environment
}

async fn serve(
    stream: UnixStream,
    greeting: Greeting,
    handler: Arc<Handler>,
    seen: mpsc::UnboundedSender<Seen>,
) {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
        return;
    }
    let hello: Hello = serde_json::from_str(&line).unwrap();
    let attach = matches!(hello.purpose, Purpose::Attach { .. });
    let _ = seen.send(Seen::Hello(hello));
    let answer = serde_json::to_string(&greeting).unwrap() + "\n";
    stream.write_all(answer.as_bytes()).await.unwrap();
    let io = TokioIo::new(stream);
    if attach {
        let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), io);
        let (sender, driver) = handshake.await.unwrap();
        let _ = seen.send(Seen::Attached(sender));
        let _ = driver.await;
        return;
    }
    let service = service_fn(move |request| {
        let answer = handler(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    let _ = builder.max_concurrent_streams(10_000).serve_connection(io, service).await;
    let _ = seen.send(Seen::Ended);
}
