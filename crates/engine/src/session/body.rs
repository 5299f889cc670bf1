//! Bodies: what is sent, and what is received without ever holding too much.

use bytes::{Bytes, BytesMut};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as _, Incoming};
use protocol::session::MAX_BODY_BYTES;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Body of an answer.
pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Most bytes of bodies that are being received or read at a time, all sessions together.
const MAX_RECEIVING: usize = 8 * MAX_BODY_BYTES;

/// Bytes of bodies that are being received now, all sessions together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Receiving(Arc<AtomicUsize>);

/// A body of these bytes.
pub(super) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed_unsync()
}

/// Why a body is not taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It is larger than [`MAX_BODY_BYTES`].
    TooLarge,
    /// Too many others are on their way.
    Busy,
    /// It broke off.
    Broken,
}

/// A complete body, counted until it is dropped.
pub(super) struct Received {
    bytes: BytesMut,
    receiving: Receiving,
}

impl Received {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn add(&mut self, piece: &[u8]) -> Result<(), Refused> {
        if self.bytes.len() + piece.len() > MAX_BODY_BYTES {
            return Err(Refused::TooLarge);
        }
        let before = self.receiving.0.fetch_add(piece.len(), Ordering::Relaxed);
        self.bytes.extend_from_slice(piece);
        if before + piece.len() > MAX_RECEIVING { Err(Refused::Busy) } else { Ok(()) }
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        self.receiving.0.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

impl Receiving {
    /// Takes a body in. One that says it is too large is refused before a byte of it is read.
    pub(super) async fn receive(&self, mut body: Incoming) -> Result<Received, Refused> {
        if body.size_hint().lower() > MAX_BODY_BYTES as u64 {
            return Err(Refused::TooLarge);
        }
        let mut received = self.begin();
        // Growing in steps would hold twice as much for a moment.
        received.bytes.reserve(body.size_hint().exact().unwrap_or_default() as usize);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Refused::Broken)?;
            if let Some(piece) = frame.data_ref() {
                received.add(piece)?;
            }
        }
        Ok(received)
    }

    fn begin(&self) -> Received {
        Received { bytes: BytesMut::new(), receiving: self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_until_they_are_dropped() {
        let receiving = Receiving::default();
        let counted = || receiving.0.load(Ordering::Relaxed);
        let mut received = receiving.begin();
        received.add(&[0; 1000]).unwrap();
        assert_eq!(counted(), 1000);
        let largest = vec![0; MAX_BODY_BYTES];
        assert_eq!(received.add(&largest), Err(Refused::TooLarge));
        drop(received);
        let mut all = vec![];
        let refused = loop {
            let mut received = receiving.begin();
            let added = received.add(&largest);
            all.push(received);
            if let Err(refused) = added {
                break refused;
            }
        };
        assert_eq!((refused, all.len()), (Refused::Busy, MAX_RECEIVING / MAX_BODY_BYTES + 1));
        drop(all);
        assert_eq!(counted(), 0);
    }
}
