//! Writing to the host what the engine sends, by the rules of `landing`.
//!
//! The frames are taken on a thread of their own. When they stop before their end, because the
//! session is over or because the engine has failed, what is complete stays and nothing else is left.

mod receive;
mod target;

pub(super) use target::Target;

use super::HostPaths;
use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use protocol::Error;
use protocol::attach::{WRITE_HEADER, WriteReply, WriteRequest};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Pieces of a request that may wait to be written.
const WAITING_PIECES: usize = 4;

/// Takes the frames of a tree or of a file, and says where it is now.
pub(super) async fn write(
    host: &Arc<HostPaths>,
    request: Request<Incoming>,
) -> Result<WriteReply, Error> {
    let header = request.headers().get(WRITE_HEADER).map(|value| value.as_bytes());
    let asked: WriteRequest = serde_json::from_slice(header.unwrap_or_default())
        .map_err(|error| Error::internal(format!("a write without a readable head: {error}")))?;
    let (sender, pieces) = mpsc::channel(WAITING_PIECES);
    let host = host.clone();
    let writing = tokio::task::spawn_blocking(move || receive::receive(&host, &asked, pieces));
    // Ends early when the writer has failed; its answer says why.
    let fed = feed(request.into_body(), sender).await;
    let written = writing.await.map_err(|error| Error::internal(error.to_string()))?;
    fed.and(written)
}

async fn feed(mut body: Incoming, sender: mpsc::Sender<Bytes>) -> Result<(), Error> {
    while let Some(frame) = body.frame().await {
        let broken = |error| Error::internal(format!("a write cannot be received: {error}"));
        let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
        if sender.send(data).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}
