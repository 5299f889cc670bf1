//! The sessions that are open now.
//!
//! A session is open from its greeting to the end of its first connection. Its name is the only thing
//! that lets a second connection in, so it cannot be guessed. An engine that ends because it is idle
//! closes the list first, so that no session begins that would be cut off at once.

use crate::session::Session;
use protocol::Error;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// All open sessions by name.
pub(crate) struct Sessions {
    list: Mutex<List>,
    count: watch::Sender<usize>,
}

#[derive(Default)]
struct List {
    open: HashMap<String, Arc<Session>>,
    /// Whether no more may be added.
    closed: bool,
}

/// An open session; it ends, and everything that runs for it is cancelled, when this is dropped.
pub(crate) struct OpenSession {
    session: Arc<Session>,
    sessions: Arc<Sessions>,
}

impl Sessions {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { list: Mutex::default(), count: watch::Sender::new(0) })
    }

    /// A fresh name: 256 random bits as 64 hex digits.
    pub(crate) fn name() -> Result<String, Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)
            .map_err(|error| Error::environment(format!("no random bytes: {error}")))?;
        Ok(hex::encode(bytes))
    }

    /// Adds a session; none when the engine is about to end.
    pub(crate) fn add(self: &Arc<Self>, session: Arc<Session>) -> Option<OpenSession> {
        let mut list = self.lock();
        if list.closed {
            return None;
        }
        list.open.insert(session.name().to_owned(), session.clone());
        self.count.send_replace(list.open.len());
        drop(list);
        Some(OpenSession { session, sessions: self.clone() })
    }

    /// Lets no more sessions in, if none is open. Says whether that is so now.
    pub(crate) fn close_if_empty(&self) -> bool {
        let mut list = self.lock();
        list.closed |= list.open.is_empty();
        list.closed
    }

    /// The session of this name.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<Session>> {
        self.lock().open.get(name).cloned()
    }

    /// Short names of all.
    pub(crate) fn short_names(&self) -> Vec<String> {
        self.lock().open.values().map(|session| session.short_name().to_owned()).collect()
    }

    /// How many there are, now and whenever that changes.
    pub(crate) fn count(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
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
        let mut list = self.sessions.lock();
        list.open.remove(self.session.name());
        self.sessions.count.send_replace(list.open.len());
    }
}
