//! Ports of this machine that lead to services in containers.
//!
//! The engine asks for a port, hears of every connection to it and asks for each: see `protocol::attach`.
//! A port is open until the engine closes it or listens no more. It is one of the loopback: whoever wants
//! others to reach it puts something in front of it.

mod packets;

pub(crate) use packets::over_packets;

use crate::session::Body;
use crate::sockets::{Reading, Writing, relay};
use bytes::Bytes;
use futures::stream;
use http::Response;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use protocol::Error;
use protocol::attach::{ListenEvent, ListenRequest};
use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};

/// Connections that may wait to be told of.
const WAITING: usize = 64;
/// How long to wait when no connection can be taken, e.g. because no descriptor is free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Ports that are open, and connections that the engine has heard of and not asked for yet. Clones are the
/// same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ports(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    count: u64,
    waiting: HashMap<u64, (Reading, Writing)>,
    open: HashMap<Key, Listening>,
}

/// Number of a port, and whether it is for packets.
type Key = (u16, bool);

/// An open port.
struct Listening {
    /// Dropping it closes the port.
    until: oneshot::Sender<()>,
    /// Has ended once the port is closed.
    task: JoinHandle<()>,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} open, {} waiting", self.open.len(), self.waiting.len())
    }
}

/// What comes in at one port.
struct Door {
    ports: Ports,
    key: Key,
    events: mpsc::Sender<ListenEvent>,
    /// Those that it told of; the ones that nobody asked for go with it.
    told: Vec<u64>,
}

impl Ports {
    /// Opens a port and answers with what happens there.
    pub(crate) async fn listen(&self, request: ListenRequest) -> Result<Response<Body>, Error> {
        let (events, mut happened) = mpsc::channel(WAITING);
        let refused = |error: io::Error| refused(request.port, &error);
        let door = |port| {
            let key = (port, request.udp);
            Door { ports: self.clone(), key, events: events.clone(), told: vec![] }
        };
        let port = match request.udp {
            true => {
                let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, request.port)).await;
                let socket = socket.map_err(refused)?;
                let port = socket.local_addr().map_err(refused)?.port();
                self.keep_open(door(port), |door, until| receive(socket, door, until));
                port
            }
            false => {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, request.port)).await;
                let listener = listener.map_err(refused)?;
                let port = listener.local_addr().map_err(refused)?.port();
                // Browsers try this address first, and fall back where it is not there.
                let other = TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await.ok();
                self.keep_open(door(port), |door, until| take(listener, other, door, until));
                port
            }
        };
        // The first room in the channel is ours.
        let _ = events.send(ListenEvent::Open(port)).await;
        drop(events);
        let lines = stream::poll_fn(move |context| {
            let event = happened.poll_recv(context);
            event.map(|event| event.map(|event| Ok(Frame::data(Bytes::from(event.to_line())))))
        });
        Ok(Response::new(StreamBody::new(lines).boxed_unsync()))
    }

    /// Closes a port, and waits until it is closed.
    pub(crate) async fn close(&self, port: ListenRequest) {
        let listening = self.lock().open.remove(&(port.port, port.udp));
        if let Some(Listening { until, task }) = listening {
            drop(until);
            let _ = task.await;
        }
    }

    /// Runs what listens on a port until that is closed.
    fn keep_open<F: Future<Output = ()> + Send + 'static>(
        &self,
        door: Door,
        listen: impl FnOnce(Door, oneshot::Receiver<()>) -> F,
    ) {
        let ((until, closed), key) = (oneshot::channel(), door.key);
        // It takes itself out of the table, and cannot before it is in.
        let mut table = self.lock();
        let task = tokio::spawn(listen(door, closed));
        table.open.insert(key, Listening { until, task });
    }

    /// Hands a connection over that the engine was told of.
    pub(crate) fn accept(
        &self,
        number: u64,
        from_engine: Incoming,
    ) -> Result<Response<Body>, Error> {
        let gone = || Error::user("the connection has gone");
        let (reading, writing) = self.lock().waiting.remove(&number).ok_or_else(gone)?;
        Ok(relay(reading, writing, from_engine))
    }

    /// Every change is one insert or one remove: a panic elsewhere leaves the table whole.
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Door {
    /// Tells the engine of a connection; false when nobody listens any more.
    async fn tell(&mut self, reading: Reading, writing: Writing) -> bool {
        let number = {
            let mut table = self.ports.lock();
            table.count += 1;
            let number = table.count;
            table.waiting.insert(number, (reading, writing));
            self.told.retain(|told| table.waiting.contains_key(told));
            number
        };
        self.told.push(number);
        self.events.send(ListenEvent::Connection(number)).await.is_ok()
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let mut table = self.ports.lock();
        // The port itself is still open here, so this entry is its own and no later one's.
        table.open.remove(&self.key);
        for number in &self.told {
            table.waiting.remove(number);
        }
    }
}

/// Takes connections until the port is to be closed.
async fn take(
    listener: TcpListener,
    other: Option<TcpListener>,
    mut door: Door,
    until: oneshot::Receiver<()>,
) {
    tokio::select! {
        () = accept(&listener, other.as_ref(), &mut door) => {}
        _ = until => {}
    }
    drop(door);
}

/// Takes packets until the port is to be closed, which is when nobody sends from it any more either.
async fn receive(socket: UdpSocket, mut door: Door, until: oneshot::Receiver<()>) {
    let (socket, mut passing) = (Arc::new(socket), JoinSet::new());
    tokio::select! {
        () = packets::receive(&socket, &mut door, &mut passing) => {}
        _ = until => {}
    }
    passing.shutdown().await;
    drop(door);
}

async fn accept(listener: &TcpListener, other: Option<&TcpListener>, door: &mut Door) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            accepted = accept_other(other) => accepted,
            () = door.events.closed() => return,
        };
        match accepted {
            Ok((stream, _)) => {
                // Questions and answers are short; waiting for more would slow them down.
                let _ = stream.set_nodelay(true);
                let (reading, writing) = stream.into_split();
                if !door.tell(Box::new(reading), Box::new(writing)).await {
                    return;
                }
            }
            Err(error) => {
                tracing::debug!(%error, "cannot take a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn accept_other(other: Option<&TcpListener>) -> io::Result<(TcpStream, SocketAddr)> {
    match other {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}

fn refused(port: u16, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            Error::user(format!("port {port} of your machine is in use by another program"))
                .with_hint("choose another port, or let one be chosen with `random`")
        }
        io::ErrorKind::PermissionDenied => {
            Error::user(format!("port {port} of your machine is not yours to listen on"))
                .with_hint("choose a port above 1023")
        }
        _ => Error::environment(format!("cannot listen on port {port}: {error}")),
    }
}
