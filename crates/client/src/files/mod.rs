//! What the client serves to the engine: the files of its host, and the way to its secrets, sockets
//! and terminal.
//!
//! The engine asks on the session's second connection, in the words of `protocol::attach`. Paths are
//! as the user typed them and are resolved here, against the client's working directory and home:
//! the engine may be on another machine. Whatever fails is answered with a [`protocol::Error`] that
//! names the path; nothing is left out silently.

mod find_up;
mod gitignore;
mod handover;
mod login;
mod read;
mod walk;
mod write;

pub use login::Logins;

use crate::connect::Connection;
use crate::git;
use crate::images;
use crate::lock;
use crate::ports::Ports;
use crate::route::Route;
use crate::secrets::{self, EnvVariables, Keeper};
use crate::session::{Body, full};
use crate::sockets;
use crate::terminal::{self, Terminals};
use bytes::Bytes;
use futures::stream;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use protocol::attach::{
    ACCEPT_PATH, CLOSE_PATH, CONNECTION_HEADER, CONNECTION_WINDOW, FIND_UP_PATH, FindUpRequest,
    GIT_CREDENTIAL_PATH, IMAGE_HEADER, IMAGE_LOAD_PATH, IMAGE_SAVE_PATH, LISTEN_PATH,
    LOCK_FIND_PATH, LOCK_RECORD_PATH, LOGIN_PATH, OPEN_PATH, READ_PATH, ReadRequest, SECRET_PATH,
    SOCKET_HEADER, SOCKET_PATH, TERMINAL_PATH, WRITE_PATH,
};
use protocol::session::ClientSettings;
use protocol::{Error, ErrorKind};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Longest accepted head of a request.
const MAX_REQUEST_BYTES: usize = 4 << 20;
/// Longest accepted header, which is where the head of a write is: a path, every character escaped.
const MAX_HEADER_BYTES: u32 = 64 << 10;
/// Longest path and longest name the system takes.
const MAX_PATH_BYTES: usize = 4095;
const MAX_NAME_BYTES: usize = 255;
/// Requests that may be on their way at once: every connection of a container to a socket is one.
const MAX_REQUESTS: u32 = 1 << 16;
/// Chunks of an answer that may wait to be sent.
const WAITING_CHUNKS: usize = 4;

/// How the engine that is served can be reached again, to hand a directory over.
#[derive(Clone, Debug)]
pub(crate) struct Engine {
    pub(crate) route: Route,
    /// Secret name of the session.
    pub(crate) session: String,
    /// Logins of this machine, which the engine may ask for.
    pub(crate) logins: Logins,
    /// Variables that may hold secrets.
    pub(crate) variables: EnvVariables,
    /// The way to the user's terminal.
    pub(crate) terminals: Terminals,
}

/// Serves the host's files on a greeted connection until the engine closes it.
pub(crate) async fn serve(connection: Connection, settings: &ClientSettings, engine: Engine) {
    let host = Arc::new(HostPaths::new(settings, engine));
    let service = service_fn(move |request| {
        let host = host.clone();
        async move { Ok::<_, Infallible>(answer(&host, request).await) }
    });
    let remote = connection.get_ref().is_remote();
    let keep_alive = connection.get_ref().keep_alive_interval();
    let served = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(keep_alive)
        .keep_alive_timeout(link::KEEP_ALIVE_TIMEOUT)
        .initial_stream_window_size(link::stream_window(remote))
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(MAX_HEADER_BYTES)
        .max_concurrent_streams(MAX_REQUESTS)
        .serve_connection(TokioIo::new(connection), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "the connection that serves files broke");
    }
}

async fn answer(host: &Arc<HostPaths>, request: Request<Incoming>) -> Response<Body> {
    let answered = match request.uri().path() {
        READ_PATH => read_files(host, request).await,
        WRITE_PATH => write::write(host, request).await.and_then(|reply| json(&reply)),
        OPEN_PATH => open(host, request).await,
        FIND_UP_PATH => find_up(host, request).await,
        LOGIN_PATH => find_login(host, request).await,
        LOCK_FIND_PATH => find_in_lock(host, request).await,
        LOCK_RECORD_PATH => record_in_lock(host, request).await,
        SECRET_PATH => read_secret(host, request).await,
        GIT_CREDENTIAL_PATH => git_credential(host, request).await,
        SOCKET_PATH => connect(host, request).await,
        IMAGE_LOAD_PATH => load_image(host, request).await,
        IMAGE_SAVE_PATH => save_image(host, request).await,
        LISTEN_PATH => listen(host, request).await,
        CLOSE_PATH => close(host, request).await,
        ACCEPT_PATH => accept(host, request),
        TERMINAL_PATH => terminal::lend(&host.engine.terminals, request.into_body()).await,
        path => Err(Error::internal(format!("this client does not serve `{path}`"))),
    };
    answered.unwrap_or_else(|error| failure(&error))
}

async fn read_files(host: &HostPaths, request: Request<Incoming>) -> Result<Response<Body>, Error> {
    let request: ReadRequest = head(request).await?;
    let root = host.resolve(&request.path)?;
    let (sender, mut chunks) = mpsc::channel::<Bytes>(WAITING_CHUNKS);
    // Ends when everything is sent or when nobody takes the chunks any more.
    tokio::task::spawn_blocking(move || read::send(&request, &root, sender));
    let frames = stream::poll_fn(move |context| {
        chunks.poll_recv(context).map(|chunk| chunk.map(|bytes| Ok(Frame::data(bytes))))
    });
    Ok(Response::new(StreamBody::new(frames).boxed_unsync()))
}

async fn open(host: &Arc<HostPaths>, request: Request<Incoming>) -> Result<Response<Body>, Error> {
    handover::open(host, head(request).await?).await.and_then(|reply| json(&reply))
}

async fn find_up(
    host: &Arc<HostPaths>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Error> {
    let request: FindUpRequest = head(request).await?;
    let host = host.clone();
    let found = tokio::task::spawn_blocking(move || find_up::find(&host.workdir, &request.name));
    let reply = found.await.map_err(|error| Error::internal(error.to_string()))??;
    json(&reply)
}

async fn find_login(host: &HostPaths, request: Request<Incoming>) -> Result<Response<Body>, Error> {
    json(&login::find(&host.engine.logins, head(request).await?).await?)
}

async fn find_in_lock(
    host: &Arc<HostPaths>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Error> {
    let (request, host) = (head(request).await?, host.clone());
    let found = tokio::task::spawn_blocking(move || lock::find(&host.workdir, &request)).await;
    json(&found.map_err(|error| Error::internal(error.to_string()))??)
}

async fn record_in_lock(
    host: &Arc<HostPaths>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Error> {
    let (request, host) = (head(request).await?, host.clone());
    let kept = tokio::task::spawn_blocking(move || lock::record(&host.workdir, request)).await;
    json(&kept.map_err(|error| Error::internal(error.to_string()))??)
}

async fn read_secret(
    host: &HostPaths,
    request: Request<Incoming>,
) -> Result<Response<Body>, Error> {
    let resolve = |typed: &str| host.resolve(typed);
    let keeper =
        Keeper { variables: &host.engine.variables, workdir: &host.workdir, resolve: &resolve };
    let secret = secrets::read(keeper, head(request).await?).await?;
    Ok(Response::new(full(secret.into())))
}

async fn git_credential(
    host: &HostPaths,
    request: Request<Incoming>,
) -> Result<Response<Body>, Error> {
    json(&git::credential(head(request).await?, &host.workdir, &host.home).await?)
}

async fn connect(host: &HostPaths, request: Request<Incoming>) -> Result<Response<Body>, Error> {
    let header = request.headers().get(SOCKET_HEADER).map(|value| value.as_bytes());
    let address = serde_json::from_slice(header.unwrap_or_default())
        .map_err(|error| Error::internal(format!("a socket without a readable head: {error}")))?;
    sockets::connect(&address, |typed| host.resolve(typed), request.into_body()).await
}

async fn load_image(host: &HostPaths, request: Request<Incoming>) -> Result<Response<Body>, Error> {
    let header = request.headers().get(IMAGE_HEADER).map(|value| value.as_bytes());
    let named = serde_json::from_slice(header.unwrap_or_default())
        .map_err(|error| Error::internal(format!("an image without a readable head: {error}")))?;
    images::load(&host.engine.logins.search_path, named, request.into_body()).await?;
    json(&())
}

async fn save_image(host: &HostPaths, request: Request<Incoming>) -> Result<Response<Body>, Error> {
    images::save(&host.engine.logins.search_path, head(request).await?).await
}

async fn listen(host: &HostPaths, request: Request<Incoming>) -> Result<Response<Body>, Error> {
    host.ports.listen(head(request).await?).await
}

async fn close(host: &HostPaths, request: Request<Incoming>) -> Result<Response<Body>, Error> {
    host.ports.close(head(request).await?).await;
    json(&())
}

fn accept(host: &HostPaths, request: Request<Incoming>) -> Result<Response<Body>, Error> {
    let header = request.headers().get(CONNECTION_HEADER).and_then(|value| value.to_str().ok());
    let number = header.and_then(|text| text.parse().ok());
    let number = number.ok_or_else(|| Error::internal("a connection without a number"))?;
    host.ports.accept(number, request.into_body())
}

async fn head<T: DeserializeOwned>(request: Request<Incoming>) -> Result<T, Error> {
    let body = Limited::new(request.into_body(), MAX_REQUEST_BYTES).collect().await;
    let body = body.map_err(|error| Error::internal(error.to_string()))?.to_bytes();
    serde_json::from_slice(&body).map_err(|error| Error::internal(error.to_string()))
}

fn json(reply: &impl Serialize) -> Result<Response<Body>, Error> {
    let body = serde_json::to_vec(reply).map_err(|error| Error::internal(error.to_string()))?;
    Ok(Response::new(full(body.into())))
}

fn failure(error: &Error) -> Response<Body> {
    let status = match error.kind {
        ErrorKind::User => StatusCode::BAD_REQUEST,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let body = serde_json::to_vec(error).expect("plain data has a JSON form");
    let mut response = Response::new(full(body.into()));
    *response.status_mut() = status;
    response
}

/// Where relative paths and `~` lead, and whom they are served to.
#[derive(Debug)]
struct HostPaths {
    workdir: PathBuf,
    home: PathBuf,
    engine: Engine,
    /// Ports that it listens on for the engine.
    ports: Ports,
}

impl HostPaths {
    fn new(settings: &ClientSettings, engine: Engine) -> Self {
        let (workdir, home) = (PathBuf::from(&settings.workdir), PathBuf::from(&settings.home));
        Self { workdir, home, engine, ports: Ports::default() }
    }

    /// The absolute path that a user meant.
    fn resolve(&self, typed: &str) -> Result<PathBuf, Error> {
        if typed.len() > MAX_PATH_BYTES {
            let length = typed.len();
            return Err(Error::user(format!(
                "a path of {length} bytes is too long for the system"
            )));
        }
        let below_home = typed.strip_prefix("~/").or((typed == "~").then_some(""));
        let Some(rest) = below_home else { return Ok(self.workdir.join(typed)) };
        if self.home.as_os_str().is_empty() {
            return Err(Error::user(format!("`{typed}` needs a home folder and HOME is not set")));
        }
        Ok(self.home.join(rest))
    }
}

/// An error of the file system in the words users know, naming the path as they typed it.
fn named(path: &str, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => Error::user(format!("{path}: no such file or directory")),
        io::ErrorKind::NotADirectory => Error::user(format!("{path}: not a directory")),
        _ => Error::environment(format!("{path}: {error}")),
    }
}

/// The beginning of a text that somebody else chose the length of.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 80;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// A path of the host as text.
fn text(path: &Path) -> Result<String, Error> {
    let refused = || Error::user(format!("the name of `{}` is not UTF-8", path.display()));
    path.to_str().map(str::to_owned).ok_or_else(refused)
}

#[cfg(test)]
mod tests;
