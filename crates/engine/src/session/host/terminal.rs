//! The terminal of the client's user, one request a loan.

use super::{AttachedHost, garbled};
use api::host::UserTerminal;
use futures::{StreamExt as _, stream};
use http::Request;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use protocol::Error;
use protocol::attach::{TERMINAL_PATH, TerminalDecoder, TerminalInput};
use tokio::sync::mpsc;

/// Pieces that may wait to be sent.
const WAITING_PIECES: usize = 4;

impl AttachedHost {
    /// Borrows the terminal. The answer begins when it is free, with its size.
    pub(super) async fn borrow_terminal(&self) -> Result<UserTerminal, Error> {
        let (output, mut pieces) = mpsc::channel(WAITING_PIECES);
        let frames = stream::poll_fn(move |context| {
            pieces.poll_recv(context).map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
        });
        let request = Request::post(TERMINAL_PATH)
            .body(StreamBody::new(frames).boxed_unsync())
            .expect("a fixed head is valid");
        let body = self.ask(request).await?.into_body();
        let mut user = User { body, decoder: TerminalDecoder::default() };
        let Some(TerminalInput::Size { columns, rows }) = user.next().await else {
            return Err(garbled("a terminal without a size"));
        };
        let input = stream::unfold(user, |mut user| async move {
            let done = user.next().await?;
            Some((done, user))
        });
        Ok(UserTerminal { size: (columns, rows), input: input.boxed(), output })
    }
}

/// Who sits at the terminal.
struct User {
    body: Incoming,
    decoder: TerminalDecoder,
}

impl User {
    /// What the user does next; none when he is gone, or speaks what no terminal does.
    async fn next(&mut self) -> Option<TerminalInput> {
        loop {
            if let Some(input) = self.decoder.next_input().ok()? {
                return Some(input);
            }
            let frame = self.body.frame().await?.ok()?;
            if let Ok(bytes) = frame.into_data() {
                self.decoder.push(&bytes);
            }
        }
    }
}
