//! [`Endpoint`]: the loopback port on which other programs query a session.
//!
//! Published client libraries speak GraphQL over HTTP/1.1 with a token as the basic-auth user. The
//! endpoint checks the token, the path and the size, and passes everything else through to the
//! engine: bodies stream in both directions, so its memory does not depend on their size. What a
//! program sends that is not JSON or not GraphQL is the engine's to answer. When a program hangs up,
//! its request is dropped, which the engine sees and cancels the work.

mod counted;
mod forward;

use crate::Error;
use crate::session::{Requests, Session};
use crate::task::Task;
use forward::Forward;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use link::Token;
use std::convert::Infallible;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;

/// Connections that may wait to be taken. Beyond the usual hundred, a burst of clients would find
/// theirs reset.
const BACKLOG: u32 = 4096;
/// How long to wait when no connection can be taken, e.g. because no descriptor is free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The session's door for other programs. It closes, and drops what runs behind it, when dropped.
#[derive(Debug)]
pub struct Endpoint {
    port: u16,
    token: String,
    _accepting: Task,
}

impl Endpoint {
    /// Opens the door on a free loopback port. It answers when this returns.
    pub async fn start(session: &Session) -> Result<Self, Error> {
        let state = |source| Error::State { path: "127.0.0.1".into(), source };
        let listener = listen().map_err(state)?;
        let port = listener.local_addr().map_err(state)?.port();
        let token = Token::random().map_err(state)?;
        let text = token.text().to_owned();
        let accepting = Task::spawn(accept(listener, session.requests(), token));
        Ok(Self { port, token: text, _accepting: accepting })
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The token: 64 hex digits, fresh for every endpoint.
    pub fn token(&self) -> &str {
        &self.token
    }
}

fn listen() -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    socket.listen(BACKLOG)
}

async fn accept(listener: TcpListener, requests: Requests, token: Token) {
    let forward = Arc::new(Forward::new(requests, token));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve(stream, forward.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "the session endpoint cannot take a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: TcpStream, forward: Arc<Forward>) {
    // Small answers must not wait for more bytes.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "no delay cannot be switched off");
    }
    let service = service_fn(move |request| {
        let forward = forward.clone();
        async move { Ok::<_, Infallible>(forward.answer(request).await) }
    });
    if let Err(error) = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await
    {
        tracing::debug!(%error, "a connection of the session endpoint broke");
    }
}
