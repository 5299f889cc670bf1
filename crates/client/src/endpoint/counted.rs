//! [`Counted`]: a request body on its way to the engine, cut off when it grows too long.
//!
//! What is left of a refused body is read and thrown away: a sender that does not look for an answer
//! before it has sent everything would find a broken connection in its place.

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use protocol::session::MAX_BODY_BYTES;
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// How much of a refused body is thrown away, and for how long.
const DRAIN_BYTES: usize = 1 << 30;
const DRAIN_TIME: Duration = Duration::from_secs(10);

/// A body of at most [`MAX_BODY_BYTES`].
pub(super) struct Counted {
    /// None after the end.
    body: Option<Incoming>,
    left: usize,
    /// Tells whoever waits for the answer why there will be none.
    too_long: Arc<AtomicBool>,
    /// Given back when the body is sent or dropped.
    _permit: Option<OwnedSemaphorePermit>,
}

impl Counted {
    pub(super) fn new(
        body: Incoming,
        too_long: Arc<AtomicBool>,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Self {
        Self { body: Some(body), left: MAX_BODY_BYTES, too_long, _permit: permit }
    }
}

impl Body for Counted {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = match Pin::new(body).poll_frame(context) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Some(Ok(frame))) => frame,
            Poll::Ready(end) => {
                self.body = None;
                return Poll::Ready(end.map(|result| result.map_err(Into::into)));
            }
        };
        let length = frame.data_ref().map_or(0, Bytes::len);
        if length <= self.left {
            self.left -= length;
            return Poll::Ready(Some(Ok(frame)));
        }
        self.too_long.store(true, Ordering::Relaxed);
        self.body.take().into_iter().for_each(drain);
        Poll::Ready(Some(Err("the body is too long".into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(Body::size_hint).unwrap_or_default()
    }
}

/// Reads a body away in the background.
pub(super) fn drain(body: Incoming) {
    tokio::spawn(tokio::time::timeout(DRAIN_TIME, async move {
        let mut body = Limited::new(body, DRAIN_BYTES);
        while let Some(Ok(_)) = body.frame().await {}
    }));
}
