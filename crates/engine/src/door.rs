//! [`Door`]: takes connections, greets them, and gives each to whom it belongs.
//!
//! Only the user who runs the engine, and root, come in: the socket is private, and the kernel is
//! asked who is at the other end. To an engine in a user namespace its own user is root, and the
//! machine's root is nobody it knows. From other machines come in who show a certificate
//! ([`crate::remote`]). The door stands open until it is told to close, until a client asks
//! the engine to end, or until nobody has been there for the idle time.

use crate::backend::Backend;
use crate::greeting::{self, Connection};
use crate::remote::{Knock, Remote};
use crate::session::{Body, Receiving, Session};
use crate::sessions::Sessions;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use link::Stream;
use protocol::session::{ClientSettings, EngineStatus, Purpose};
use protocol::{Error, VERSION};
use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, BufReader};
use tokio::net::UnixListener;
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// How long to wait when no connection can be taken, e.g. because no descriptor is free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Streams that one client may have open or give up at a time. Clients are the engine's own user, so
/// this guards against defects, not against attacks.
const MANY_STREAMS: u32 = 1 << 20;

/// Why a door closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Nobody had been there for the idle time.
    Idle,
    /// A client asked for it.
    Asked,
}

/// The engine's door.
pub struct Door {
    backend: Backend,
    sessions: Arc<Sessions>,
    schema: bytes::Bytes,
    receiving: Receiving,
    idle_timeout: Duration,
    began: Instant,
    asked_to_end: Notify,
    /// Connections that wait for the end of the process.
    farewells: Mutex<Vec<Connection>>,
    /// What the next user is to be told.
    notices: Mutex<Vec<String>>,
}

/// Where connections come from: the socket, and other machines where the settings say so.
pub struct Listeners {
    socket: UnixListener,
    remote: Option<Remote>,
}

impl Listeners {
    /// Both ways in.
    pub(crate) fn new(socket: UnixListener, remote: Option<Remote>) -> Self {
        Self { socket, remote }
    }

    /// The next connection.
    async fn accept(&self) -> io::Result<Arrival> {
        let remote = async {
            match &self.remote {
                Some(remote) => remote.accept().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            accepted = self.socket.accept() => Ok(Arrival::Local(accepted?.0.into())),
            knock = remote => Ok(Arrival::Remote(knock?)),
        }
    }
}

impl From<UnixListener> for Listeners {
    fn from(socket: UnixListener) -> Self {
        Self { socket, remote: None }
    }
}

/// Somebody who has come.
enum Arrival {
    Local(Stream),
    Remote(Knock),
}

impl Door {
    /// A door to this engine.
    pub fn new(backend: Backend, idle_timeout: Duration) -> Arc<Self> {
        let schema = serde_json::to_vec(backend.graph.schema());
        let schema = schema.expect("plain data has a JSON form").into();
        Arc::new(Self {
            backend,
            sessions: Sessions::new(),
            schema,
            receiving: Receiving::default(),
            idle_timeout,
            began: Instant::now(),
            asked_to_end: Notify::new(),
            farewells: Mutex::default(),
            notices: Mutex::default(),
        })
    }

    /// Leaves words for the first client that comes.
    pub fn announce(&self, notices: Vec<String>) {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).extend(notices);
    }

    /// Takes connections until the engine is to end. When this returns or is dropped, every session
    /// is over and what ran for it is cancelled.
    pub async fn serve(self: &Arc<Self>, listeners: impl Into<Listeners>) -> Ended {
        let listeners = listeners.into();
        let mut connections = JoinSet::new();
        let mut idle = pin!(self.idle());
        loop {
            tokio::select! {
                // Nobody starts an engine on another machine when it is needed.
                () = &mut idle, if listeners.remote.is_none() => return Ended::Idle,
                () = self.asked_to_end.notified() => return Ended::Asked,
                Some(_) = connections.join_next() => {}
                accepted = listeners.accept() => match accepted {
                    Ok(arrival) => {
                        connections.spawn(self.clone().connection(arrival));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "cannot take a connection");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
    }

    /// Leaves the connections of those who wait for our end to the kernel, which closes them when the
    /// process is gone and not before.
    pub(crate) fn hold_farewells(&self) {
        let mut farewells = self.farewells.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::forget(std::mem::take(&mut *farewells));
    }

    /// Who is connected, for who asks later.
    pub(crate) fn connected(&self) -> api::Connected {
        let sessions = Arc::downgrade(&self.sessions);
        api::Connected::new(move || sessions.upgrade().map_or_else(Vec::new, |s| s.short_names()))
    }

    /// What the engine says about itself.
    pub(crate) fn status(&self) -> EngineStatus {
        EngineStatus {
            version: VERSION.into(),
            pid: std::process::id(),
            sessions: *self.sessions.count().borrow(),
            uptime_seconds: self.began.elapsed().as_secs(),
        }
    }

    /// The schema in JSON, made once.
    pub(crate) fn schema(&self) -> bytes::Bytes {
        self.schema.clone()
    }

    /// Counts the bodies of requests that are on their way in.
    pub(crate) fn receiving(&self) -> &Receiving {
        &self.receiving
    }

    pub(crate) fn backend(&self) -> &Backend {
        &self.backend
    }

    /// Returns when there has been no session for the idle time.
    async fn idle(&self) {
        let mut count = self.sessions.count();
        loop {
            // The sender lives in `self`, so waiting cannot fail.
            let _ = count.wait_for(|count| *count == 0).await;
            tokio::select! {
                () = tokio::time::sleep(self.idle_timeout) => {
                    if self.sessions.close_if_empty() {
                        return;
                    }
                }
                _ = count.changed() => {}
            }
        }
    }

    async fn connection(self: Arc<Self>, arrival: Arrival) {
        let stream = match arrival {
            Arrival::Local(stream) => Ok(stream),
            Arrival::Remote(knock) => knock.let_in().await,
        };
        let served = match stream {
            Ok(stream) => self.greet(stream).await,
            Err(error) => return tracing::info!(%error, "a client was not let in"),
        };
        if let Err(error) = served {
            tracing::debug!(%error, "a connection broke");
        }
    }

    async fn greet(self: &Arc<Self>, stream: Stream) -> io::Result<()> {
        let uid = stream.as_unix().map(|socket| socket.peer_cred()).transpose()?;
        let uid = uid.map(|peer| peer.uid());
        let mut connection = BufReader::new(stream);
        if let Some(uid) = uid
            && uid != 0
            && uid != rustix::process::geteuid().as_raw()
        {
            let reason = Error::user(format!("this engine is not for user {uid}"));
            return greeting::refuse(&mut connection, reason).await;
        }
        match greeting::read(&mut connection).await? {
            Err(reason) => greeting::refuse(&mut connection, reason).await,
            Ok(Purpose::Query(settings)) => self.query(connection, settings).await,
            Ok(Purpose::Attach { session }) => self.attach(connection, &session).await,
            Ok(Purpose::HandOver { session, token }) => {
                self.hand_over(connection, &session, &token).await
            }
            Ok(Purpose::Stop { when_idle: true, .. }) => self.stop_when_idle(connection).await,
            Ok(Purpose::Stop { force, .. }) => self.stop(connection, force).await,
        }
    }

    /// A session, from its greeting to the end of its connection.
    async fn query(
        self: &Arc<Self>,
        mut connection: Connection,
        settings: ClientSettings,
    ) -> io::Result<()> {
        let opened = Sessions::name().map(|name| Session::new(self.clone(), name, settings));
        let session = match opened {
            Ok(session) => session,
            Err(reason) => return greeting::refuse(&mut connection, reason).await,
        };
        // Who finds nobody here any more starts the next engine.
        let Some(open) = self.sessions.add(session) else { return Ok(()) };
        let session = open.session().clone();
        let notices =
            std::mem::take(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner));
        greeting::welcome_with(&mut connection, session.name(), notices).await?;
        tracing::info!(session = session.short_name(), labels = ?session.labels(), "session began");
        let answering = session.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let session = answering.clone();
            async move { Ok::<Response<Body>, Infallible>(session.answer(request).await) }
        });
        let remote = session.is_remote() || connection.get_ref().is_remote();
        let mut served = pin!(
            http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .keep_alive_interval(remote.then_some(link::KEEP_ALIVE_INTERVAL))
                .keep_alive_timeout(link::KEEP_ALIVE_TIMEOUT)
                .initial_stream_window_size(link::stream_window(remote))
                .initial_connection_window_size(link::connection_window(remote))
                .max_concurrent_streams(MANY_STREAMS)
                .max_pending_accept_reset_streams(MANY_STREAMS as usize)
                .serve_connection(TokioIo::new(connection), service)
        );
        let ended = tokio::select! {
            ended = &mut served => ended,
            () = session.closed() => {
                served.as_mut().graceful_shutdown();
                served.await
            }
        };
        tracing::info!(session = session.short_name(), "session ended");
        ended.map_err(io::Error::other)
    }

    /// A session's second connection, on which we ask.
    async fn attach(&self, mut connection: Connection, name: &str) -> io::Result<()> {
        let Some(session) = self.sessions.find(name) else {
            let reason = Error::user("there is no such session");
            return greeting::refuse(&mut connection, reason).await;
        };
        greeting::welcome(&mut connection, name).await?;
        session.host().serve(connection).await
    }

    /// A connection that brings one open directory of a session's client.
    async fn hand_over(
        &self,
        mut connection: Connection,
        name: &str,
        token: &str,
    ) -> io::Result<()> {
        let Some(session) = self.sessions.find(name) else {
            let reason = Error::user("there is no such session");
            return greeting::refuse(&mut connection, reason).await;
        };
        greeting::welcome(&mut connection, name).await?;
        session.host().receive(connection, token).await
    }

    async fn stop(&self, mut connection: Connection, force: bool) -> io::Result<()> {
        if !force && !self.sessions.close_if_empty() {
            let open = *self.sessions.count().borrow();
            let what = if open == 1 { "session is" } else { "sessions are" };
            let reason = Error::user(format!("{open} {what} open on this engine"))
                .with_hint("wait for the work to end, or stop it with force");
            return greeting::refuse(&mut connection, reason).await;
        }
        greeting::welcome(&mut connection, "").await?;
        self.farewell(connection);
        Ok(())
    }

    /// Ends the engine once no session is open, if whoever asked still waits for it then. Sessions
    /// that come meanwhile are let in: who waits has a limit, and who is refused had none.
    async fn stop_when_idle(&self, mut connection: Connection) -> io::Result<()> {
        greeting::welcome(&mut connection, "").await?;
        let mut count = self.sessions.count();
        loop {
            let mut end = [0];
            tokio::select! {
                // The sender lives in `self`, so waiting cannot fail.
                _ = count.wait_for(|count| *count == 0) => {}
                _ = connection.read(&mut end) => return Ok(()),
            }
            if self.sessions.close_if_empty() {
                self.farewell(connection);
                return Ok(());
            }
        }
    }

    /// Ends the engine and keeps the connection of whoever asked until it has ended.
    fn farewell(&self, connection: Connection) {
        self.farewells.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        self.asked_to_end.notify_one();
    }
}
