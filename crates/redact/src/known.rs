//! [`Known`]: the secrets that are known to somebody, while text is shown.

use crate::Redactor;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A set of secrets that grows. One that lies in another adds to that too, for as long as it lives: a
/// session's secrets are the engine's while the session is open.
#[derive(Default)]
pub struct Known {
    secrets: Mutex<Secrets>,
    above: Option<Arc<Known>>,
}

#[derive(Default)]
struct Secrets {
    /// How often each was added.
    counts: HashMap<Arc<[u8]>, usize>,
    /// Finds all of them; made when it is first needed after a change.
    redactor: Option<Redactor>,
}

impl Known {
    /// A set that lies in another.
    pub fn within(above: Arc<Known>) -> Self {
        Self { secrets: Mutex::default(), above: Some(above) }
    }

    /// Adds a secret.
    pub fn add(&self, secret: &[u8]) {
        if crate::is_too_short(secret) {
            return;
        }
        let mut secrets = self.lock();
        if secrets.counts.contains_key(secret) && self.above.is_some() {
            return;
        }
        secrets.change(secret.into(), 1);
        drop(secrets);
        if let Some(above) = &self.above {
            above.add(secret);
        }
    }

    /// Finds all secrets of the set in what people look at.
    pub fn redactor(&self) -> Redactor {
        let mut secrets = self.lock();
        let Secrets { counts, redactor } = &mut *secrets;
        redactor.get_or_insert_with(|| Redactor::shown(counts.keys().map(|key| &**key))).clone()
    }

    fn remove(&self, secret: &Arc<[u8]>) {
        self.lock().change(secret.clone(), -1);
    }

    /// Every change leaves the set whole.
    fn lock(&self) -> MutexGuard<'_, Secrets> {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Secrets {
    fn change(&mut self, secret: Arc<[u8]>, by: isize) {
        let before = self.counts.get(&secret).copied().unwrap_or(0);
        let after = before.saturating_add_signed(by);
        if (before == 0) != (after == 0) {
            self.redactor = None;
        }
        match after {
            0 => self.counts.remove(&secret),
            count => self.counts.insert(secret, count),
        };
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        let Some(above) = self.above.take() else { return };
        for secret in self.lock().counts.keys() {
            above.remove(secret);
        }
    }
}
