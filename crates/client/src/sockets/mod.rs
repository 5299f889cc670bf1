//! Connections to sockets of this machine, for containers that were given them.
//!
//! The engine asks for a connection on the session's second connection, and the bytes travel there both
//! ways. So a socket works wherever the engine is, and only while its session does.

use crate::ports::over_packets;
use crate::session::Body;
use bytes::Bytes;
use futures::stream;
use http::Response;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use protocol::Error;
use protocol::attach::SocketAddress;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket, UnixStream, lookup_host};

/// Most bytes that are taken from a socket at once.
const PIECE: usize = 64 << 10;

pub(crate) type Reading = Box<dyn AsyncRead + Send + Unpin>;
pub(crate) type Writing = Box<dyn AsyncWrite + Send + Unpin>;

/// Connects to a socket and answers with what is read from it. What the engine sends is written to it
/// meanwhile, to the end of either side.
pub(crate) async fn connect(
    address: &SocketAddress,
    resolve: impl Fn(&str) -> Result<PathBuf, Error>,
    from_engine: Incoming,
) -> Result<Response<Body>, Error> {
    let (reading, writing) = open(address, resolve).await?;
    Ok(relay(reading, writing, from_engine))
}

/// Answers with what is read from one side of a connection, and writes what the engine sends to the other.
pub(crate) fn relay(reading: Reading, writing: Writing, from_engine: Incoming) -> Response<Body> {
    // It ends with the request, which ends with the connection to the engine at the latest.
    tokio::spawn(write(from_engine, writing));
    let pieces = stream::unfold(reading, |mut reading| async move {
        let mut piece = Vec::with_capacity(PIECE);
        match reading.read_buf(&mut piece).await {
            // The engine ends its side in the same way for an end and for an error.
            Ok(0) | Err(_) => None,
            Ok(_) => Some((Ok(Frame::data(Bytes::from(piece))), reading)),
        }
    });
    Response::new(StreamBody::new(pieces).boxed_unsync())
}

async fn open(
    address: &SocketAddress,
    resolve: impl Fn(&str) -> Result<PathBuf, Error>,
) -> Result<(Reading, Writing), Error> {
    match address {
        SocketAddress::Unix(typed) => {
            let stream = UnixStream::connect(resolve(typed)?).await;
            let (reading, writing) = stream.map_err(refused(typed))?.into_split();
            Ok((Box::new(reading), Box::new(writing)))
        }
        SocketAddress::Tcp(host, port) => {
            let stream = TcpStream::connect((host.as_str(), *port)).await;
            let stream = stream.map_err(refused(&format!("tcp://{host}:{port}")))?;
            // Questions and answers are short; waiting for more would slow every one of them down.
            let _ = stream.set_nodelay(true);
            let (reading, writing) = stream.into_split();
            Ok((Box::new(reading), Box::new(writing)))
        }
        SocketAddress::Udp(host, port) => {
            let name = format!("udp://{host}:{port}");
            let (any, target) =
                match lookup_host((host.as_str(), *port)).await.map(|mut it| it.next()) {
                    Ok(Some(target @ SocketAddr::V4(_))) => ("0.0.0.0:0", target),
                    Ok(Some(target)) => ("[::]:0", target),
                    Ok(None) => return Err(Error::user(format!("socket {name}: no such host"))),
                    Err(error) => return Err(refused(&name)(error)),
                };
            let socket = UdpSocket::bind(any).await.map_err(refused(&name))?;
            socket.connect(target).await.map_err(refused(&name))?;
            Ok(over_packets(socket))
        }
    }
}

/// Writes what comes, and tells the socket when no more will.
async fn write(mut from_engine: Incoming, mut writing: Writing) {
    while let Some(frame) = from_engine.frame().await {
        let Ok(Ok(bytes)) = frame.map(Frame::into_data) else { break };
        if writing.write_all(&bytes).await.is_err() {
            return;
        }
    }
    // Whoever has closed its end needs no word about it.
    let _ = writing.shutdown().await;
}

fn refused(address: &str) -> impl Fn(io::Error) -> Error {
    move |error| match error.kind() {
        io::ErrorKind::NotFound => Error::user(format!("socket {address}: no such file")),
        io::ErrorKind::ConnectionRefused => {
            Error::user(format!("socket {address}: nobody listens there"))
        }
        _ => Error::environment(format!("socket {address}: {error}")),
    }
}
