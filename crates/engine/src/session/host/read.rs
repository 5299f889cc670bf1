//! Trees and files of the client, as frames.

use super::{AttachedHost, garbled, post, unreachable_client};
use api::host::TreePart;
use http_body_util::BodyExt;
use protocol::Error;
use protocol::attach::{FrameDecoder, FrameKind, READ_PATH, ReadRequest};
use tokio::sync::mpsc;

impl AttachedHost {
    pub(super) async fn read_tree(
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
}

fn part(kind: FrameKind, payload: &[u8]) -> Result<TreePart, Error> {
    Ok(match kind {
        FrameKind::Entry => TreePart::Entry(serde_json::from_slice(payload).map_err(garbled)?),
        FrameKind::Again => TreePart::Again(serde_json::from_slice(payload).map_err(garbled)?),
        FrameKind::Data => TreePart::Data(payload.to_vec()),
        FrameKind::EndOfFile => TreePart::EndOfFile,
        FrameKind::End => TreePart::End,
        FrameKind::Hole | FrameKind::Remove => {
            return Err(garbled("a frame of a write came in a read"));
        }
        FrameKind::Failed => return Err(serde_json::from_slice(payload).map_err(garbled)?),
    })
}
