//! [`AttachedHost`]: the files of a session's client, asked for on the connection it serves.

mod handover;
mod image;
mod port;
mod read;
mod socket;
mod terminal;
mod write;

use super::body::{Body, full};
use crate::greeting::Connection;
use api::host::{Channel, Handed, HostFiles, HostPort, ImagePieces, TreePart, UserTerminal};
use bytes::Bytes;
use futures::future::BoxFuture;
use handover::Handovers;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use protocol::Error;
use protocol::attach::{
    CLOSE_PATH, CONNECTION_WINDOW, FIND_UP_PATH, FindUpReply, FindUpRequest, GIT_CREDENTIAL_PATH,
    GitCredential, GitCredentialReply, GitCredentialRequest, LOCK_FIND_PATH, LOCK_RECORD_PATH,
    LOGIN_PATH, ListenRequest, LockRecord, LockReply, LockRequest, Login, LoginReply, LoginRequest,
    OpenFor, ReadRequest, SECRET_PATH, SecretRequest, SocketAddress, WriteRequest,
};
use serde::de::DeserializeOwned;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// How long a client may take to open the way to its files, which it does as soon as it is welcome.
const ATTACH_TIME: Duration = Duration::from_secs(60);

/// The client's files.
pub(crate) struct AttachedHost {
    link: watch::Sender<Link>,
    /// Whether the client can hand open directories over.
    hands_over: AtomicBool,
    handovers: Handovers,
}

/// How the client is reached.
#[derive(Clone)]
enum Link {
    /// It has not dialled yet.
    Expected,
    /// Here.
    Attached(SendRequest<Body>),
    /// No more.
    Gone,
}

impl Default for AttachedHost {
    fn default() -> Self {
        Self {
            link: watch::Sender::new(Link::Expected),
            hands_over: AtomicBool::new(false),
            handovers: Handovers::default(),
        }
    }
}

impl AttachedHost {
    /// Makes this connection the way to the client, until it ends.
    pub(crate) async fn serve(&self, connection: Connection) -> io::Result<()> {
        let remote = connection.get_ref().is_remote();
        let keep_alive = connection.get_ref().keep_alive_interval();
        let shaken = Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(keep_alive)
            .keep_alive_timeout(link::KEEP_ALIVE_TIMEOUT)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(link::stream_window(remote))
            .initial_connection_window_size(CONNECTION_WINDOW)
            .handshake(TokioIo::new(connection))
            .await;
        // Nobody waits for a client that has come and is of no use.
        let (sender, driver) = shaken.inspect_err(|_| self.end()).map_err(io::Error::other)?;
        // One on another machine is not even asked to: on a slow link every question counts.
        self.hands_over.store(!remote, Ordering::Relaxed);
        // One that was here before is replaced: its requests fail and are not sent again.
        self.link.send_replace(Link::Attached(sender));
        let driven = driver.await;
        self.end();
        driven.map_err(io::Error::other)
    }

    /// The client is gone.
    pub(crate) fn end(&self) {
        self.link.send_replace(Link::Gone);
    }

    /// The way to the client, which may be about to open.
    async fn link(&self) -> Result<SendRequest<Body>, Error> {
        let mut link = self.link.subscribe();
        let settled = link.wait_for(|link| !matches!(link, Link::Expected));
        let settled = tokio::time::timeout(ATTACH_TIME, settled).await;
        let late = |_| unreachable_client("it did not open the way to them");
        match settled.map_err(late)?.map(|link| link.clone()) {
            Ok(Link::Attached(sender)) => Ok(sender),
            _ => Err(unreachable_client("its connection is closed")),
        }
    }

    async fn ask(&self, request: Request<Body>) -> Result<Response<Incoming>, Error> {
        let mut sender = self.link().await?;
        let broke = |error: hyper::Error| unreachable_client(&error.to_string());
        sender.ready().await.map_err(broke)?;
        let response = sender.send_request(request).await.map_err(broke)?;
        if response.status() == StatusCode::OK {
            return Ok(response);
        }
        let body = collect(response).await?;
        Err(serde_json::from_slice(&body).unwrap_or_else(|_| {
            unreachable_client(&format!("it answered: {}", String::from_utf8_lossy(&body)))
        }))
    }
}

impl HostFiles for AttachedHost {
    fn read(
        &self,
        request: ReadRequest,
        parts: mpsc::Sender<TreePart>,
    ) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.read_tree(request, parts))
    }

    fn write(
        &self,
        request: WriteRequest,
        pieces: mpsc::Receiver<Vec<u8>>,
    ) -> BoxFuture<'_, Result<String, Error>> {
        Box::pin(self.write_frames(request, pieces))
    }

    fn open(&self, path: String, purpose: OpenFor) -> BoxFuture<'_, Result<Option<Handed>, Error>> {
        Box::pin(self.open_directory(path, purpose))
    }

    fn login(&self, registry: String) -> BoxFuture<'_, Result<Option<Login>, Error>> {
        Box::pin(async move {
            let answer = self.ask(post(LOGIN_PATH, &LoginRequest { registry })).await?;
            Ok(json::<LoginReply>(answer).await?.login)
        })
    }

    fn git_credential(
        &self,
        request: GitCredentialRequest,
    ) -> BoxFuture<'_, Result<Option<GitCredential>, Error>> {
        Box::pin(async move {
            let answer = self.ask(post(GIT_CREDENTIAL_PATH, &request)).await?;
            Ok(json::<GitCredentialReply>(answer).await?.credential)
        })
    }

    fn secret(&self, uri: String) -> BoxFuture<'_, Result<Vec<u8>, Error>> {
        Box::pin(async move {
            let answer = self.ask(post(SECRET_PATH, &SecretRequest { uri })).await?;
            Ok(collect(answer).await?.into())
        })
    }

    fn connect(&self, address: SocketAddress) -> BoxFuture<'_, Result<Channel, Error>> {
        Box::pin(self.open_socket(address))
    }

    fn listen(&self, request: ListenRequest) -> BoxFuture<'_, Result<HostPort, Error>> {
        Box::pin(self.open_port(request))
    }

    fn close(&self, port: ListenRequest) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move { json(self.ask(post(CLOSE_PATH, &port)).await?).await })
    }

    fn accept(&self, connection: u64) -> BoxFuture<'_, Result<Channel, Error>> {
        Box::pin(self.take_connection(connection))
    }

    fn terminal(&self) -> BoxFuture<'_, Result<UserTerminal, Error>> {
        Box::pin(self.borrow_terminal())
    }

    fn locked(&self, request: LockRequest) -> BoxFuture<'_, Result<LockReply, Error>> {
        Box::pin(async move { json(self.ask(post(LOCK_FIND_PATH, &request)).await?).await })
    }

    fn lock(&self, record: LockRecord) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move { json(self.ask(post(LOCK_RECORD_PATH, &record)).await?).await })
    }

    fn load_image(
        &self,
        name: String,
        pieces: mpsc::Receiver<Bytes>,
    ) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.give_image(name, pieces))
    }

    fn save_image(&self, name: String) -> BoxFuture<'_, Result<ImagePieces, Error>> {
        Box::pin(self.take_image(name))
    }

    fn find_up(&self, name: String) -> BoxFuture<'_, Result<Option<String>, Error>> {
        Box::pin(async move {
            let answer = self.ask(post(FIND_UP_PATH, &FindUpRequest { name })).await?;
            Ok(json::<FindUpReply>(answer).await?.path)
        })
    }
}

fn post(path: &str, head: &impl serde::Serialize) -> Request<Body> {
    let head = serde_json::to_vec(head).expect("plain data has a JSON form");
    Request::post(path).body(full(head)).expect("a fixed head is valid")
}

async fn json<T: DeserializeOwned>(response: Response<Incoming>) -> Result<T, Error> {
    serde_json::from_slice(&collect(response).await?).map_err(garbled)
}

async fn collect(response: Response<Incoming>) -> Result<Bytes, Error> {
    let whole = response.into_body().collect().await;
    Ok(whole.map_err(|error| unreachable_client(&error.to_string()))?.to_bytes())
}

fn unreachable_client(reason: &str) -> Error {
    Error::environment(format!("the files of the client cannot be reached: {reason}"))
}

fn garbled(error: impl std::fmt::Display) -> Error {
    Error::internal(format!("the client answered in an unknown form: {error}"))
}

#[cfg(test)]
mod tests;
