//! [`AttachedHost`]: the files of a session's client, asked for on the connection it serves.

use super::body::{Body, full};
use crate::greeting::Connection;
use api::host::{HostFiles, TreePart};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use protocol::Error;
use protocol::attach::{
    FIND_UP_PATH, FindUpReply, FindUpRequest, FrameDecoder, FrameKind, READ_PATH, ReadRequest,
    WRITE_HEADER, WRITE_PATH, WriteReply, WriteRequest, frame,
};
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, Read};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// How long a client may take to dial its second connection.
const ATTACH_TIME: Duration = Duration::from_secs(10);
/// How much may be on its way on one stream and on a whole connection.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;
/// Longest path that a client can write to.
const MAX_PATH_BYTES: usize = 4095;
/// Bytes of a file that are sent at a time, and how many such pieces may wait.
const PIECE: usize = 256 << 10;
const WAITING_PIECES: usize = 4;

/// The client's files.
pub(crate) struct AttachedHost(watch::Sender<Link>);

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
        Self(watch::Sender::new(Link::Expected))
    }
}

impl AttachedHost {
    /// Makes this connection the way to the client, until it ends.
    pub(crate) async fn serve(&self, connection: Connection) -> io::Result<()> {
        let (sender, driver) = Builder::new(TokioExecutor::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .handshake(TokioIo::new(connection))
            .await
            .map_err(io::Error::other)?;
        // One that was here before is replaced: its requests fail and are not sent again.
        self.0.send_replace(Link::Attached(sender));
        let driven = driver.await;
        self.end();
        driven.map_err(io::Error::other)
    }

    /// The client is gone.
    pub(crate) fn end(&self) {
        self.0.send_replace(Link::Gone);
    }

    /// The way to the client, which may be about to open.
    async fn link(&self) -> Result<SendRequest<Body>, Error> {
        let mut link = self.0.subscribe();
        let settled = link.wait_for(|link| !matches!(link, Link::Expected));
        let settled = tokio::time::timeout(ATTACH_TIME, settled).await;
        let late = |_| unreachable_client("it did not open its second connection");
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

    async fn read_tree(
        &self,
        request: ReadRequest,
        parts: mpsc::Sender<TreePart>,
    ) -> Result<(), Error> {
        let mut body = self.ask(post(READ_PATH, &request)).await?.into_body();
        let mut decoder = FrameDecoder::default();
        while let Some(piece) = body.frame().await {
            let piece = piece.map_err(|error| unreachable_client(&error.to_string()))?;
            let Some(bytes) = piece.data_ref() else { continue };
            decoder.push(bytes);
            while let Some((kind, payload)) = decoder.next_frame().map_err(garbled)? {
                let part = part(kind, payload)?;
                let last = matches!(part, TreePart::End);
                // Whoever took the parts has given up, for a reason of its own.
                if parts.send(part).await.is_err() || last {
                    return Ok(());
                }
            }
        }
        Err(unreachable_client("it stopped in the middle of a read"))
    }

    async fn write_file(&self, request: WriteRequest, source: File) -> Result<String, Error> {
        // The head travels in a header, which has no room for what no system takes anyway.
        if request.path.len() > MAX_PATH_BYTES {
            let length = request.path.len();
            return Err(Error::user(format!("a path of {length} bytes is too long")));
        }
        let (sender, mut pieces) = mpsc::channel(WAITING_PIECES);
        let reading = tokio::task::spawn_blocking(move || send_file(source, &sender));
        let frames = stream::poll_fn(move |context| {
            pieces.poll_recv(context).map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
        });
        let http = Request::post(WRITE_PATH)
            .header(WRITE_HEADER, request.to_header())
            .body(StreamBody::new(frames).boxed_unsync())
            .map_err(|error| Error::user(format!("`{}`: {error}", request.path)))?;
        let answer = self.ask(http).await;
        let read = reading.await.map_err(|error| Error::internal(error.to_string()))?;
        // What cannot be read here makes the client fail as well.
        read.map_err(|error| Error::environment(format!("the file cannot be read: {error}")))?;
        let reply: WriteReply = json(answer?).await?;
        Ok(reply.path)
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

    fn write(&self, request: WriteRequest, source: File) -> BoxFuture<'_, Result<String, Error>> {
        Box::pin(self.write_file(request, source))
    }

    fn find_up(&self, name: String) -> BoxFuture<'_, Result<Option<String>, Error>> {
        Box::pin(async move {
            let answer = self.ask(post(FIND_UP_PATH, &FindUpRequest { name })).await?;
            Ok(json::<FindUpReply>(answer).await?.path)
        })
    }
}

fn part(kind: FrameKind, payload: &[u8]) -> Result<TreePart, Error> {
    Ok(match kind {
        FrameKind::Entry => TreePart::Entry(serde_json::from_slice(payload).map_err(garbled)?),
        FrameKind::Data => TreePart::Data(payload.to_vec()),
        FrameKind::EndOfFile => TreePart::EndOfFile,
        FrameKind::End => TreePart::End,
        FrameKind::Failed => return Err(serde_json::from_slice(payload).map_err(garbled)?),
    })
}

/// Sends the frames of a file. A file that cannot be read to its end gets no last frame, so that the
/// client throws away what it has.
fn send_file(mut source: File, sender: &mpsc::Sender<Bytes>) -> io::Result<()> {
    let mut buffer = vec![0; PIECE];
    loop {
        let count = match source.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let kind = if count == 0 { FrameKind::EndOfFile } else { FrameKind::Data };
        // The client has gone or has refused; its answer says which.
        if sender.blocking_send(frame(kind, &buffer[..count]).into()).is_err() || count == 0 {
            return Ok(());
        }
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
