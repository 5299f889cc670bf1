//! An API of a few fields, a door to it, and a client that speaks the wire by hand.

use bytes::Bytes;
use engine::{Backend, Door, Ended};
use graph::{Args, Context, Extensions, Graph, LogStream, NoMemo, Op, Root};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use protocol::attach::SECRET_PATH;
use protocol::session::{ATTACH_AUTHORITY, ClientSettings, Greeting, Hello, Purpose, QUERY_PATH};
use protocol::{Error, VERSION, WIRE_VERSION};
use serde_json::Value;
use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Barrier, mpsc};
use tokio::task::JoinHandle;

pub(crate) const LONG: Duration = Duration::from_secs(3600);
/// How many requests meet in the field `meet`.
pub(crate) const MEETING: usize = 1000;

const SDL: &str = r#"
    type Query {
        echo(text: String!): String!
        hang(name: String!): String!
        talk(text: String!): String!
        meet(number: Int!): String!
        ask(uri: String!): String!
    }
"#;

/// What the fields tell a test.
pub(crate) struct Probe {
    news: mpsc::UnboundedSender<&'static str>,
    meeting: Barrier,
}

struct Dropped(Arc<Probe>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.news.send("dropped");
    }
}

/// Gives the text back.
#[derive(Args)]
struct Echo {
    /// The text.
    text: String,
}

impl Op for Echo {
    type Parent = Root;
    type Output = String;
    const NAME: &'static str = "echo";

    async fn run(&self, _: &Root, _: &Context) -> Result<String, Error> {
        Ok(self.text.clone())
    }
}

/// Never ends.
#[derive(Args)]
struct Hang {
    /// Keeps two of them apart.
    #[expect(dead_code, reason = "it is there to be part of the call")]
    name: String,
}

impl Op for Hang {
    type Parent = Root;
    type Output = String;
    const NAME: &'static str = "hang";

    async fn run(&self, _: &Root, cx: &Context) -> Result<String, Error> {
        let probe = cx.get::<Probe>()?.clone();
        probe.news.send("started").unwrap();
        let _dropped = Dropped(probe);
        std::future::pending().await
    }
}

/// Writes the text as output.
#[derive(Args)]
struct Talk {
    /// The text.
    text: String,
}

impl Op for Talk {
    type Parent = Root;
    type Output = String;
    const NAME: &'static str = "talk";

    async fn run(&self, _: &Root, cx: &Context) -> Result<String, Error> {
        cx.span().log(LogStream::Stdout, self.text.clone());
        Ok(String::new())
    }
}

/// Waits until [`MEETING`] requests are there.
#[derive(Args)]
struct Meet {
    /// Keeps them apart.
    #[expect(dead_code, reason = "it is there to be part of the call")]
    number: i64,
}

impl Op for Meet {
    type Parent = Root;
    type Output = String;
    const NAME: &'static str = "meet";

    async fn run(&self, _: &Root, cx: &Context) -> Result<String, Error> {
        cx.get::<Probe>()?.meeting.wait().await;
        Ok("met".into())
    }
}

/// Asks the client for a secret.
#[derive(Args)]
struct Ask {
    /// What for.
    uri: String,
}

impl Op for Ask {
    type Parent = Root;
    type Output = String;
    const NAME: &'static str = "ask";

    async fn run(&self, _: &Root, cx: &Context) -> Result<String, Error> {
        let answer = cx.get::<api::host::Host>()?.files().secret(self.uri.clone()).await?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}

/// An engine that is only a door.
pub(crate) struct World {
    dir: TempDir,
    pub(crate) door: Arc<Door>,
    pub(crate) news: Mutex<mpsc::UnboundedReceiver<&'static str>>,
    pub(crate) flushes: Arc<AtomicUsize>,
    pub(crate) serving: JoinHandle<Ended>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with_idle_timeout(LONG)
    }

    pub(crate) fn with_idle_timeout(idle_timeout: Duration) -> Self {
        let mut builder = Graph::builder(SDL).unwrap();
        builder.install::<Echo>().install::<Hang>().install::<Talk>().install::<Meet>();
        builder.install::<Ask>();
        let graph = builder.build(Arc::new(NoMemo), [0; 32]).unwrap();
        let (sender, news) = mpsc::unbounded_channel();
        let mut extensions = Extensions::new();
        extensions.insert(Arc::new(Probe { news: sender, meeting: Barrier::new(MEETING) }));
        let flushes = Arc::new(AtomicUsize::new(0));
        let counter = flushes.clone();
        let flush = Arc::new(move || {
            counter.fetch_add(1, Ordering::SeqCst);
            Ok(())
        });
        let door = Door::new(Backend { graph, extensions, flush }, idle_timeout);
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("socket")).unwrap();
        let serving = tokio::spawn({
            let door = door.clone();
            async move { door.serve(listener).await }
        });
        Self { dir, door, news: Mutex::new(news), flushes, serving }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("socket")
    }

    /// Dials and greets with a line.
    pub(crate) async fn greet(&self, line: &str) -> (BufReader<UnixStream>, Greeting) {
        let (stream, answer) = self.try_greet(line).await.unwrap();
        (stream, serde_json::from_str(&answer).unwrap())
    }

    async fn try_greet(&self, line: &str) -> io::Result<(BufReader<UnixStream>, String)> {
        let mut stream = BufReader::new(UnixStream::connect(self.socket()).await?);
        stream.write_all(line.as_bytes()).await?;
        stream.write_all(b"\n").await?;
        let mut answer = String::new();
        stream.read_line(&mut answer).await?;
        Ok((stream, answer))
    }

    pub(crate) async fn session(&self) -> Client {
        self.session_in_time().await.expect("the engine is there")
    }

    /// A session, unless the engine has ended before.
    pub(crate) async fn session_in_time(&self) -> Option<Client> {
        let line = hello(Purpose::Query(ClientSettings::default()));
        let (stream, answer) = self.try_greet(&line).await.ok().filter(|it| !it.1.is_empty())?;
        let Greeting::Welcome(welcome) = serde_json::from_str(&answer).unwrap() else {
            panic!("the session was refused")
        };
        let socket = stream.get_ref().as_fd().try_clone_to_owned().unwrap();
        let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (sender, driver) = handshake.await.unwrap();
        let driver = tokio::spawn(async move {
            let _ = driver.await;
        });
        Some(Client { name: welcome.session, sender, driver, socket })
    }

    /// What a field says next.
    pub(crate) async fn news(&self) -> &'static str {
        let next =
            |context: &mut std::task::Context<'_>| self.news.lock().unwrap().poll_recv(context);
        std::future::poll_fn(next).await.unwrap()
    }
}

/// The line of a proper hello.
pub(crate) fn hello(purpose: Purpose) -> String {
    let hello = Hello { wire: WIRE_VERSION, version: VERSION.into(), purpose };
    serde_json::to_string(&hello).unwrap()
}

/// One session.
pub(crate) struct Client {
    pub(crate) name: String,
    pub(crate) sender: SendRequest<Full<Bytes>>,
    pub(crate) driver: JoinHandle<()>,
    socket: OwnedFd,
}

impl Client {
    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        let mut sender = self.sender.clone();
        sender.ready().await.unwrap();
        sender.send_request(request).await.unwrap()
    }

    pub(crate) async fn ask(&self, method: &str, path: &str, body: &str) -> (StatusCode, String) {
        let body = Full::new(Bytes::from(body.to_owned()));
        let request = Request::builder().method(method).uri(path).body(body).unwrap();
        let response = self.send(request).await;
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    /// Serves secrets on a stream within this connection: every one is `answer`.
    pub(crate) async fn serve_within(&self, answer: &'static str) -> JoinHandle<()> {
        let request = Request::connect(ATTACH_AUTHORITY).body(Full::default()).unwrap();
        let response = self.send(request).await;
        assert_eq!(response.status(), StatusCode::OK);
        let stream = hyper::upgrade::on(response).await.unwrap();
        let service = service_fn(move |request: Request<Incoming>| async move {
            assert_eq!(request.uri().path(), SECRET_PATH);
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(answer))))
        });
        let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        tokio::spawn(async move {
            let _ = builder.serve_connection(stream, service).await;
        })
    }

    /// Runs a document.
    pub(crate) async fn query(&self, document: &str) -> Value {
        let body = serde_json::json!({ "query": document }).to_string();
        let (status, text) = self.ask("POST", QUERY_PATH, &body).await;
        assert_eq!(status, StatusCode::OK, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    /// Hangs up, whatever is on its way.
    pub(crate) async fn hang_up(self) {
        rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both).unwrap();
        self.driver.await.unwrap();
    }
}
