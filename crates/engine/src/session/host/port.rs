//! Ports of the client's machine that lead to services, one request each, and one for each connection.

use super::{AttachedHost, garbled};
use api::host::{Channel, HostPort};
use futures::{StreamExt as _, stream};
use http::Request;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use protocol::Error;
use protocol::attach::{
    ACCEPT_PATH, CONNECTION_HEADER, LISTEN_PATH, ListenDecoder, ListenEvent, ListenRequest,
};

impl AttachedHost {
    /// Opens a port. The answer begins when it is open, and goes on for as long as it is read.
    pub(super) async fn open_port(&self, request: ListenRequest) -> Result<HostPort, Error> {
        let body = self.ask(super::post(LISTEN_PATH, &request)).await?.into_body();
        let mut events = Events { body, decoder: ListenDecoder::default() };
        let Some(ListenEvent::Open(port)) = events.next().await else {
            return Err(garbled("a port without a number"));
        };
        let connections = stream::unfold(events, |mut events| async move {
            while let Some(event) = events.next().await {
                if let ListenEvent::Connection(number) = event {
                    return Some((number, events));
                }
            }
            None
        });
        Ok(HostPort { port, connections: connections.boxed() })
    }

    /// Takes a connection to a port.
    pub(super) async fn take_connection(&self, number: u64) -> Result<Channel, Error> {
        let head = Request::post(ACCEPT_PATH).header(CONNECTION_HEADER, number.to_string());
        self.open_channel(head).await
    }
}

/// What happens on a port.
struct Events {
    body: Incoming,
    decoder: ListenDecoder,
}

impl Events {
    /// The next; none when the port is closed, or the client speaks what no port does.
    async fn next(&mut self) -> Option<ListenEvent> {
        loop {
            if let Some(event) = self.decoder.next_event().ok()? {
                return Some(event);
            }
            let frame = self.body.frame().await?.ok()?;
            if let Ok(bytes) = frame.into_data() {
                self.decoder.push(&bytes);
            }
        }
    }
}
