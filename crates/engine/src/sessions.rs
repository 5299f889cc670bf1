//! The sessions that are open now.
//!
//! A session is open from its greeting to the end of its first connection. Its name is the only thing
//! that lets a second connection in, so it cannot be guessed.

use crate::session::Session;
use protocol::Error;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// All open sessions by name.
pub(crate) struct Sessions {
    open: Mutex<HashMap<String, Arc<Session>>>,
    count: watch::Sender<usize>,
}

/// An open session; it ends, and everything that runs for it is cancelled, when this is dropped.
pub(crate) struct OpenSession {
    session: Arc<Session>,
    sessions: Arc<Sessions>,
}

impl Sessions {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { open: Mutex::default(), count: watch::Sender::new(0) })
    }

    /// A fresh name: 256 random bits as 64 hex digits.
    pub(crate) fn name() -> Result<String, Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)
            .map_err(|error| Error::environment(format!("no random bytes: {error}")))?;
        Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Adds a session.
    pub(crate) fn add(self: &Arc<Self>, session: Arc<Session>) -> OpenSession {
        self.lock().insert(session.name().to_owned(), session.clone());
        self.count.send_modify(|count| *count += 1);
        OpenSession { session, sessions: self.clone() }
    }

    /// The session of this name.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<Session>> {
        self.lock().get(name).cloned()
    }

    /// How many there are, now and whenever that changes.
    pub(crate) fn count(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenSession {
    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        self.session.end();
        self.sessions.lock().remove(self.session.name());
        self.sessions.count.send_modify(|count| *count -= 1);
    }
}
