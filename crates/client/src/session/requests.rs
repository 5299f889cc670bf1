//! [`Requests`]: one way to send a request, whether the session is ours or was joined.

use crate::Error;
use crate::connect::Connection;
use crate::task::{Spawned, Spawner};
use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST};
use http::{HeaderValue, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::rt::Executor;
use hyper_util::rt::{TokioIo, TokioTimer};
use link::authorization;
use std::sync::Arc;
use tokio::net::TcpStream;

/// Body of a request: anything that gives bytes.
pub(crate) type Body = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// Requests that may be given up at once before their late answers are taken for a fault.
const MANY_RESETS: usize = 1 << 14;

/// A body with no bytes.
pub(crate) fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// A body of these bytes.
pub(crate) fn full(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

/// The connection to the engine is of no more use.
pub(super) fn lost(error: &hyper::Error) -> Error {
    if error.is_timeout() {
        return Error::Lost("it does not answer any more".to_owned());
    }
    // The innermost cause is the one that a user can do something about.
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    Error::Lost(cause.to_string())
}

/// Sends requests of one session; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Requests(Route);

#[derive(Clone, Debug)]
enum Route {
    Engine(http2::SendRequest<Body>),
    Joined(Arc<Joined>),
}

/// The endpoint of a session that somebody else opened.
#[derive(Debug)]
struct Joined {
    port: u16,
    authorization: HeaderValue,
}

impl Requests {
    /// Speaks HTTP/2 over a greeted connection, which lives as long as what it spawned.
    pub(crate) async fn over(connection: Connection) -> Result<(Self, Spawned), Error> {
        let spawner = Spawner::default();
        let remote = connection.get_ref().is_remote();
        let keep_alive = connection.get_ref().keep_alive_interval();
        let (sender, driver) = http2::Builder::new(spawner.clone())
            .timer(TokioTimer::new())
            .keep_alive_interval(keep_alive)
            .keep_alive_timeout(link::KEEP_ALIVE_TIMEOUT)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(link::stream_window(remote))
            .initial_connection_window_size(link::connection_window(remote))
            .max_concurrent_reset_streams(MANY_RESETS)
            .handshake(TokioIo::new(connection))
            .await
            .map_err(|error| lost(&error))?;
        spawner.execute(async move {
            if let Err(error) = driver.await {
                tracing::debug!(%error, "the connection to the engine broke");
            }
        });
        Ok((Self(Route::Engine(sender)), spawner.owner()))
    }

    /// Speaks HTTP/1.1 with the endpoint of another's session.
    pub(crate) fn joined(port: u16, token: &str) -> Self {
        let authorization = authorization(token);
        Self(Route::Joined(Arc::new(Joined { port, authorization })))
    }

    /// Sends a request. Dropping the future or the answer's body tells the other side that nobody
    /// waits any more.
    pub(crate) async fn send(&self, request: Request<Body>) -> Result<Response<Incoming>, Error> {
        let lost = |error: hyper::Error| lost(&error);
        match &self.0 {
            Route::Engine(sender) => {
                let mut sender = sender.clone();
                sender.ready().await.map_err(lost)?;
                sender.send_request(request).await.map_err(lost)
            }
            Route::Joined(joined) => joined.send(request).await,
        }
    }
}

impl Joined {
    async fn send(&self, mut request: Request<Body>) -> Result<Response<Incoming>, Error> {
        let lost = |error: &dyn std::error::Error| Error::Lost(error.to_string());
        let stream =
            TcpStream::connect(("127.0.0.1", self.port)).await.map_err(|error| lost(&error))?;
        let (mut sender, driver) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| lost(&error))?;
        // Ends by itself: with the sender, and with the body of the one answer.
        tokio::spawn(driver);
        request.headers_mut().insert(AUTHORIZATION, self.authorization.clone());
        request.headers_mut().insert(HOST, HeaderValue::from_static("127.0.0.1"));
        let response = sender.send_request(request).await.map_err(|error| lost(&error))?;
        if response.status() == http::StatusCode::UNAUTHORIZED {
            return Err(Error::Join("its endpoint refuses the token".into()));
        }
        Ok(response)
    }
}
