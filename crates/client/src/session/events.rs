//! [`Events`]: what happens in a session, read in the background.
//!
//! The channel is bounded: a client that draws slowly slows this reader, the engine's buffer fills,
//! and the engine drops log text and says so. Nobody's memory grows.

use super::requests::{Requests, empty};
use crate::task::Task;
use futures::Stream;
use http::Request;
use http_body_util::BodyExt;
use protocol::Event;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// Events that may wait for whoever draws them.
const BUFFERED: usize = 1024;

/// The events of a session, in order.
#[derive(Debug)]
pub struct Events {
    receiver: mpsc::Receiver<Event>,
    _reader: Option<Task>,
}

impl Events {
    pub(super) fn read(requests: Requests, path: &'static str) -> Self {
        let (sender, receiver) = mpsc::channel(BUFFERED);
        let reader = Task::spawn(async move {
            if let Err(error) = read(&requests, path, &sender).await {
                tracing::debug!(%error, "the stream of events broke");
            }
        });
        Self { receiver, _reader: Some(reader) }
    }

    pub(super) fn none() -> Self {
        Self { receiver: mpsc::channel(1).1, _reader: None }
    }

    /// The next event; none after the last.
    pub async fn next(&mut self) -> Option<Event> {
        self.receiver.recv().await
    }
}

impl Stream for Events {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        self.receiver.poll_recv(context)
    }
}

async fn read(
    requests: &Requests,
    path: &str,
    sender: &mpsc::Sender<Event>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let response = requests.send(Request::get(path).body(empty())?).await?;
    let mut body = response.into_body();
    let mut pending: Vec<u8> = vec![];
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        pending.extend_from_slice(&data);
        let Some(end) = pending.iter().rposition(|byte| *byte == b'\n') else { continue };
        for line in pending[..end].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            // An event of a newer engine that we do not know is not ours to show.
            let Ok(event) = serde_json::from_slice(line) else { continue };
            if sender.send(event).await.is_err() {
                return Ok(());
            }
        }
        pending.drain(..=end);
    }
    Ok(())
}
