//! Sessions inside containers: what answers a command that was started with nesting.
//!
//! Such a session shares with the one that started the command what sessions of one caller share: results,
//! services, cache volumes. What is the caller's own stays there: his files, secrets, sockets, logins and terminal
//! are not reached from inside. The host of the session is the container ([`Files`]). What it does is
//! told under the span of the command, and what is secret in it is secret there too.

mod files;

use super::body::Body;
use super::http::{json_answer, read_query, refusal, wrong_method};
use super::redacted::Redacted;
use crate::door::Door;
use crate::sessions::Sessions;
use api::host::Host;
use api::nest::{Inside, Nest, Nesting};
use files::Files;
use futures::future::BoxFuture;
use graph::{Context, EventSink};
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use link::Token;
use protocol::session::{ClientSettings, QUERY_PATH, SCHEMA_PATH};
use protocol::{Error, SpanId};
use redact::Known;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// How many sessions may be inside each other. A command that runs itself would never end.
const DEEPEST: usize = 8;
/// How long to wait when no connection can be taken, e.g. because no descriptor is free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Opens the sessions inside the containers of one session.
pub(super) struct Nester {
    pub(super) door: Arc<Door>,
    /// Where the outer session's events go.
    pub(super) sink: Arc<dyn EventSink>,
    /// How many sessions the outer one is inside of.
    pub(super) depth: usize,
}

impl Nesting for Nester {
    fn admit(&self) -> Result<String, Error> {
        if self.depth >= DEEPEST {
            let message = format!("no more than {DEEPEST} sessions can be inside each other");
            let hint = "a command that starts itself in the session it was given never ends";
            return Err(Error::user(message).with_hint(hint));
        }
        let token = Token::random().map_err(|error| Error::environment(error.to_string()))?;
        Ok(token.text().to_owned())
    }

    fn serve(&self, inside: Inside, cx: &Context) -> BoxFuture<'static, ()> {
        match self.open(inside, cx) {
            Ok((listener, session)) => Box::pin(accept(listener, Arc::new(session))),
            Err(error) => {
                // The command finds nobody at its port and fails with that; this is why.
                tracing::error!("no session can be opened in a container: {}", error.message);
                Box::pin(std::future::ready(()))
            }
        }
    }
}

impl Nester {
    fn open(&self, inside: Inside, cx: &Context) -> Result<(TcpListener, Nested), Error> {
        let Inside { opened, token, workdir, home, hidden } = inside;
        let broken = |error: io::Error| Error::environment(error.to_string());
        let listener = TcpListener::from_std(opened.listener.into()).map_err(broken)?;
        let name = Sessions::name()?;
        let outer = cx.extensions();
        let known = Arc::new(Known::within(outer.get::<Known>().cloned().unwrap_or_default()));
        let sink: Arc<dyn EventSink> =
            Arc::new(Redacted { events: self.sink.clone(), known: known.clone() });
        let above = cx.get::<ClientSettings>()?;
        let settings = ClientSettings {
            workdir: workdir.clone(),
            home: home.clone(),
            labels: vec![],
            compat: above.compat.clone(),
            interactive: vec![],
            lock: above.lock,
            remote: false,
        };
        let root = (opened.root, cx.get::<Host>()?.clone());
        let files = Files::new(root, (workdir, home), hidden).map_err(broken)?;
        let inner = Nester { door: self.door.clone(), sink: sink.clone(), depth: self.depth + 1 };
        let mut extensions = outer.clone();
        extensions.insert(Arc::new(Host::new(Arc::new(files))));
        extensions.insert(Arc::new(settings));
        extensions.insert(known);
        extensions.insert(Arc::new(Nest::new(Arc::new(inner))));
        let graph = self.door.backend().graph.session(name, extensions, sink);
        let session =
            Nested { door: self.door.clone(), graph, token: token.into(), span: cx.span().id() };
        Ok((listener, session))
    }
}

/// One session inside a container.
struct Nested {
    door: Arc<Door>,
    graph: Arc<graph::Session>,
    token: Token,
    /// The span of the command.
    span: SpanId,
}

impl Nested {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        if !self.token.admits(request.headers().get(AUTHORIZATION)) {
            return unauthorized();
        }
        let allowed = match request.uri().path() {
            QUERY_PATH => Method::POST,
            SCHEMA_PATH => Method::GET,
            path => return refusal(StatusCode::NOT_FOUND, &format!("there is no `{path}` here")),
        };
        match request.uri().path() {
            _ if *request.method() != allowed => wrong_method(&allowed),
            SCHEMA_PATH => json_answer(self.door.schema()),
            _ => self.query(request).await,
        }
    }

    async fn query(&self, request: Request<Incoming>) -> Response<Body> {
        match read_query(self.door.receiving(), request).await {
            Ok(mut query) => {
                query.parent_span = Some(self.span);
                json_answer(self.graph.execute(query).await)
            }
            Err(refused) => refused,
        }
    }
}

fn unauthorized() -> Response<Body> {
    let mut response = refusal(StatusCode::UNAUTHORIZED, "the token of the session is wrong");
    let challenge = HeaderValue::from_static("Basic realm=\"ci-tool session\"");
    response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    response
}

/// Takes connections. When this is dropped they are, and with them all that runs for them.
async fn accept(listener: TcpListener, session: Arc<Nested>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(attend(stream, session.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "a session in a container cannot take a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn attend(stream: TcpStream, session: Arc<Nested>) {
    // Small answers must not wait for more bytes.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "no delay cannot be switched off");
    }
    let service = service_fn(move |request| {
        let session = session.clone();
        async move { Ok::<_, Infallible>(session.answer(request).await) }
    });
    if let Err(error) = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await
    {
        tracing::debug!(%error, "a connection of a session in a container broke");
    }
}
