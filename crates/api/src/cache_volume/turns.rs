//! Whose turn it is to use a cache volume.
//!
//! A volume has numbered copies, of which all but the first are for those who want one alone. Each
//! is guarded by a lock that readers share (SHARED) or one holds (LOCKED, PRIVATE). The locks are
//! fair: who waits longest is next. A turn ends when it is dropped, after the last process.

use super::CacheSharingMode;
use graph::Span;
use protocol::SpanKind;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// Locks that nobody holds are forgotten beyond this many.
const MANY: usize = 1024;

type Lock = Arc<RwLock<()>>;

/// The locks of all volumes.
#[derive(Default)]
pub struct Turns(Mutex<HashMap<(String, u32), Lock>>);

/// The right to use one copy of a volume.
pub(crate) struct Turn {
    /// Which copy.
    pub(crate) number: u32,
    _held: Held,
}

/// What keeps others away.
enum Held {
    Shared { _guard: OwnedRwLockReadGuard<()> },
    Alone { _guard: OwnedRwLockWriteGuard<()> },
}

impl Turns {
    /// Waits for a turn; the span says so if it takes time.
    pub(crate) async fn take(&self, key: &str, sharing: CacheSharingMode, span: &Span) -> Turn {
        if sharing == CacheSharingMode::Private {
            return self.free_copy(key);
        }
        let lock = self.lock(key, 0);
        let alone = sharing == CacheSharingMode::Locked;
        let at_once = if alone {
            lock.clone().try_write_owned().ok().map(|guard| Held::Alone { _guard: guard })
        } else {
            lock.clone().try_read_owned().ok().map(|guard| Held::Shared { _guard: guard })
        };
        if let Some(held) = at_once {
            return Turn { number: 0, _held: held };
        }
        let shown = key.replace('\0', "/");
        let waiting = span.child(format!("wait for cache volume {shown}"), SpanKind::Work);
        let held = if alone {
            Held::Alone { _guard: lock.write_owned().await }
        } else {
            Held::Shared { _guard: lock.read_owned().await }
        };
        waiting.done();
        Turn { number: 0, _held: held }
    }

    /// The first copy that nobody uses.
    fn free_copy(&self, key: &str) -> Turn {
        let mut number = 0;
        loop {
            if let Ok(guard) = self.lock(key, number).try_write_owned() {
                return Turn { number, _held: Held::Alone { _guard: guard } };
            }
            number += 1;
        }
    }

    fn lock(&self, key: &str, number: u32) -> Lock {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if locks.len() > MANY {
            locks.retain(|_, lock| Arc::strong_count(lock) > 1);
        }
        locks.entry((key.to_owned(), number)).or_default().clone()
    }
}
