//! One worker for each piece of work, whichever session asked for it.
//!
//! Who waits looks into the memo again when its turn comes, and mostly finds the work done.

use protocol::Digest;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

#[derive(Default)]
pub(super) struct Locks(Mutex<HashMap<Digest, Arc<AsyncMutex<()>>>>);

impl Locks {
    /// Waits until nobody else works on this. Dropping the guard lets the next one go on.
    pub(super) async fn hold(&self, key: Digest) -> OwnedMutexGuard<()> {
        let lock = {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Only the map knows a lock that nobody holds or waits for.
            all.retain(|_, lock| Arc::strong_count(lock) > 1);
            all.entry(key).or_default().clone()
        };
        lock.lock_owned().await
    }
}
