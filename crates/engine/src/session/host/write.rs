//! Trees and files on their way to the client.

use super::{AttachedHost, json};
use futures::stream;
use http::Request;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use protocol::Error;
use protocol::attach::{WRITE_HEADER, WRITE_PATH, WriteReply, WriteRequest};
use tokio::sync::mpsc;

/// Longest path that a client can write to.
const MAX_PATH_BYTES: usize = 4095;

impl AttachedHost {
    /// Sends pieces of frames until there are no more, and gives the path that the client wrote to.
    /// Pieces that end without a last frame make the client throw away what is not complete.
    pub(super) async fn write_frames(
        &self,
        request: WriteRequest,
        mut pieces: mpsc::Receiver<Vec<u8>>,
    ) -> Result<String, Error> {
        // The head travels in a header, which has no room for what no system takes anyway.
        if request.path.len() > MAX_PATH_BYTES {
            let length = request.path.len();
            return Err(Error::user(format!("a path of {length} bytes is too long")));
        }
        let frames = stream::poll_fn(move |context| {
            pieces.poll_recv(context).map(|piece| piece.map(|bytes| Ok(Frame::data(bytes.into()))))
        });
        let http = Request::post(WRITE_PATH)
            .header(WRITE_HEADER, request.to_header())
            .body(StreamBody::new(frames).boxed_unsync())
            .map_err(|error| Error::user(format!("`{}`: {error}", request.path)))?;
        let reply: WriteReply = json(self.ask(http).await?).await?;
        Ok(reply.path)
    }
}
