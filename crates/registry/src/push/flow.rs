//! [`Flow`]: bytes of a [`Source`](crate::Source) on their way out.

use crate::source::Reader;
use crate::{Progress, Settings};
use bytes::{Bytes, BytesMut};
use futures::Stream;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;

/// Bytes that are read at a time.
const PART: usize = 256 << 10;

/// Bytes as they go out: told to who wants to know, and when the last ones went.
pub(super) struct Flow {
    total: u64,
    /// How much longer the answer may take once everything was sent.
    extra: Duration,
    progress: Progress,
    state: Mutex<State>,
}

struct State {
    done: u64,
    moved: Instant,
    failure: Option<io::Error>,
}

impl Flow {
    pub(super) fn new(done: u64, total: u64, settings: &Settings, progress: Progress) -> Self {
        let state = State { done, moved: Instant::now(), failure: None };
        let extra = settings.finish_timeout.saturating_sub(settings.stall_timeout);
        Self { total, extra, progress, state: Mutex::new(state) }
    }

    /// How long nothing has moved that should have. When everything was handed over it may still be
    /// on its way, and the registry has to keep it.
    pub(super) fn idle(&self) -> Duration {
        let state = self.state();
        let extra = if state.done == self.total { self.extra } else { Duration::ZERO };
        state.moved.elapsed().saturating_sub(extra)
    }

    /// Why the source could not be read, if that is why the exchange failed.
    pub(super) fn failure(&self) -> Option<io::Error> {
        self.state().failure.take()
    }

    fn add(&self, bytes: u64) {
        let mut state = self.state();
        state.done += bytes;
        state.moved = Instant::now();
        let done = state.done;
        drop(state);
        (self.progress)(done, Some(self.total));
    }

    fn fail(&self, error: io::Error) {
        self.state().failure = Some(error);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bytes of a reader, exactly as many as were promised.
pub(super) fn parts(
    reader: Reader,
    rest: u64,
    flow: Arc<Flow>,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    futures::stream::unfold((reader, rest), move |(mut reader, rest)| {
        let flow = flow.clone();
        async move {
            if rest == 0 {
                return None;
            }
            let mut part = BytesMut::with_capacity(PART.min(rest as usize));
            let mut limited = (&mut reader).take(rest.min(PART as u64));
            let count = match limited.read_buf(&mut part).await {
                Ok(0) => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
                other => other,
            };
            match count {
                Ok(count) => {
                    flow.add(count as u64);
                    Some((Ok(part.freeze()), (reader, rest - count as u64)))
                }
                Err(error) => {
                    let copy = io::Error::new(error.kind(), error.to_string());
                    flow.fail(error);
                    Some((Err(copy), (reader, 0)))
                }
            }
        }
    })
}
