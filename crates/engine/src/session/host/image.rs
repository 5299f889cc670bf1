//! Images to and from the container program of the client's machine.

use super::{AttachedHost, post, unreachable_client};
use api::host::ImagePieces;
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::Request;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use protocol::Error;
use protocol::attach::{IMAGE_HEADER, IMAGE_LOAD_PATH, IMAGE_SAVE_PATH, ImageRequest};
use tokio::sync::mpsc;

/// Longest name of an image that a header has room for.
const MAX_NAME_BYTES: usize = 4095;

impl AttachedHost {
    /// Sends an archive until there are no more pieces.
    pub(super) async fn give_image(
        &self,
        name: String,
        mut pieces: mpsc::Receiver<Bytes>,
    ) -> Result<(), Error> {
        if name.len() > MAX_NAME_BYTES {
            return Err(Error::user(format!("a name of {} bytes is too long", name.len())));
        }
        let frames = stream::poll_fn(move |context| {
            pieces.poll_recv(context).map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
        });
        let request = Request::post(IMAGE_LOAD_PATH)
            .header(IMAGE_HEADER, ImageRequest { name }.to_header())
            .body(StreamBody::new(frames).boxed_unsync())
            .map_err(|error| Error::internal(format!("an image cannot be sent: {error}")))?;
        self.ask(request).await.map(drop)
    }

    /// Asks for an archive. The answer begins when there is one.
    pub(super) async fn take_image(&self, name: String) -> Result<ImagePieces, Error> {
        let answer = self.ask(post(IMAGE_SAVE_PATH, &ImageRequest { name })).await?;
        let pieces = stream::unfold(Some(answer.into_body()), |body| async move {
            let mut body = body?;
            loop {
                match body.frame().await? {
                    Ok(frame) => {
                        if let Ok(bytes) = frame.into_data() {
                            return Some((Ok(bytes), Some(body)));
                        }
                    }
                    Err(error) => return Some((Err(unreachable_client(&error.to_string())), None)),
                }
            }
        });
        Ok(pieces.boxed())
    }
}
