//! Connections to sockets of the client's machine, one request each.

use super::AttachedHost;
use api::host::Channel;
use futures::{StreamExt as _, stream};
use http::{Request, request};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use protocol::Error;
use protocol::attach::{SOCKET_HEADER, SOCKET_PATH, SocketAddress};
use tokio::sync::mpsc;

/// Pieces that may wait to be sent.
const WAITING_PIECES: usize = 4;

impl AttachedHost {
    /// Connects to a socket. The answer begins when there is a connection, and then both bodies run.
    pub(super) async fn open_socket(&self, address: SocketAddress) -> Result<Channel, Error> {
        let head = Request::post(SOCKET_PATH).header(SOCKET_HEADER, address.to_header());
        self.open_channel(head).await
    }

    /// Sends a request whose body, and that of its answer, are the two sides of a connection.
    pub(super) async fn open_channel(&self, head: request::Builder) -> Result<Channel, Error> {
        let (outgoing, mut pieces) = mpsc::channel(WAITING_PIECES);
        let frames = stream::poll_fn(move |context| {
            pieces.poll_recv(context).map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
        });
        let request = head
            .body(StreamBody::new(frames).boxed_unsync())
            .map_err(|error| Error::user(format!("a connection without a sound head: {error}")))?;
        let body = self.ask(request).await?.into_body();
        let incoming = stream::unfold(body, |mut body| async move {
            // A connection that broke has ended, for who is at the other end.
            while let Some(Ok(frame)) = body.frame().await {
                if let Ok(bytes) = frame.into_data()
                    && !bytes.is_empty()
                {
                    return Some((bytes, body));
                }
            }
            None
        });
        Ok(Channel { incoming: incoming.boxed(), outgoing })
    }
}
