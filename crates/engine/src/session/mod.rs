//! [`Session`]: one client, from its greeting to the end of its connection.

mod body;
mod events;
mod host;
mod http;
mod nested;
mod redacted;

pub(crate) use body::{Body, Receiving};

use crate::door::Door;
use api::{RunningServices, Services};
use events::EventBuffer;
use graph::EventSink;
use host::AttachedHost;
use nested::Nester;
use protocol::session::ClientSettings;
use redact::Known;
use redacted::Redacted;
use std::sync::Arc;
use tokio::sync::watch;

/// One client.
pub(crate) struct Session {
    name: String,
    settings: Arc<ClientSettings>,
    door: Arc<Door>,
    graph: Arc<graph::Session>,
    events: Arc<EventBuffer>,
    host: Arc<AttachedHost>,
    running: Arc<RunningServices>,
    stage: watch::Sender<Stage>,
}

/// How far a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
enum Stage {
    /// It takes requests.
    Open,
    /// The client said goodbye; what it made is safe.
    Closed,
    /// Its connection is gone: nobody waits for anything.
    Ended,
}

impl Session {
    pub(crate) fn new(door: Arc<Door>, name: String, settings: ClientSettings) -> Arc<Self> {
        let settings = Arc::new(settings);
        let events = Arc::new(EventBuffer::default());
        let host = Arc::new(AttachedHost::default());
        let backend = door.backend();
        let mut extensions = backend.extensions.clone();
        extensions.insert(Arc::new(api::host::Host::new(host.clone())));
        extensions.insert(settings.clone());
        let party = extensions.get::<Services>().and_then(|services| services.sandbox.party());
        let running = Arc::new(RunningServices::new(party));
        extensions.insert(running.clone());
        extensions.insert(Arc::new(door.connected()));
        extensions.insert(Arc::new(api::Downloads::default()));
        // Secrets of a session are the engine's while it is open.
        let above = extensions.get::<Known>().cloned().unwrap_or_default();
        let known = Arc::new(Known::within(above));
        extensions.insert(known.clone());
        let sink: Arc<dyn EventSink> = Arc::new(Redacted { events: events.clone(), known });
        let nester = Nester { door: door.clone(), sink: sink.clone(), depth: 0 };
        extensions.insert(Arc::new(api::nest::Nest::new(Arc::new(nester))));
        let graph = backend.graph.session(name.clone(), extensions, sink);
        let stage = watch::Sender::new(Stage::Open);
        Arc::new(Self { name, settings, door, graph, events, host, running, stage })
    }

    /// The secret name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Enough of the name to tell sessions apart in a log, and too little to enter one.
    pub(crate) fn short_name(&self) -> &str {
        &self.name[..8.min(self.name.len())]
    }

    pub(crate) fn labels(&self) -> &[(String, String)] {
        &self.settings.labels
    }

    /// Whether the client says that it is on another machine.
    pub(crate) fn is_remote(&self) -> bool {
        self.settings.remote
    }

    /// The client's files.
    pub(crate) fn host(&self) -> &AttachedHost {
        &self.host
    }

    /// Returns when the client has said goodbye.
    pub(crate) async fn closed(&self) {
        self.reaches(Stage::Closed).await;
    }

    /// The connection is gone: cancels everything that runs for the session.
    pub(crate) fn end(&self) {
        self.stage.send_replace(Stage::Ended);
        self.events.finish();
        self.host.end();
        self.running.end();
    }

    async fn ended(&self) {
        self.reaches(Stage::Ended).await;
    }

    async fn reaches(&self, stage: Stage) {
        // The sender lives in `self`, so waiting cannot fail.
        let _ = self.stage.subscribe().wait_for(|now| *now >= stage).await;
    }

    fn is_open(&self) -> bool {
        *self.stage.borrow() == Stage::Open
    }

    fn close(&self) {
        self.stage.send_if_modified(|stage| {
            let open = *stage == Stage::Open;
            if open {
                *stage = Stage::Closed;
            }
            open
        });
        self.events.finish();
    }
}
