//! Lends the user's terminal to commands in containers.
//!
//! The engine asks for it on the session's second connection. Who has the terminal, a command line with
//! a live display, takes [`Loan`]s off [`Loans`], one after the other: it shows what comes and sends
//! what the user does. This crate only passes bytes and knows no terminal itself.

use crate::session::Body;
use bytes::Bytes;
use futures::stream;
use http::Response;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use protocol::Error;
use protocol::attach::TerminalInput;
use tokio::sync::{mpsc, oneshot};

/// Loans that may wait for the terminal.
const WAITING_LOANS: usize = 16;
/// Pieces that may wait to be shown, and to be sent.
const WAITING_PIECES: usize = 16;

/// The way to the terminal. Without one every request for it is refused.
#[derive(Clone, Debug, Default)]
pub struct Terminals(Option<mpsc::Sender<Loan>>);

/// The requests for the terminal, one after the other.
#[derive(Debug)]
pub struct Loans(mpsc::Receiver<Loan>);

/// One request for the terminal.
#[derive(Debug)]
pub struct Loan {
    output: mpsc::Receiver<Bytes>,
    input: mpsc::Sender<TerminalInput>,
    answer: oneshot::Sender<Result<(), Error>>,
}

/// A terminal that is lent. Dropping it says that it is back as it was.
#[derive(Debug)]
pub struct Lent {
    /// What is to be shown, until the loan ends.
    pub output: mpsc::Receiver<Bytes>,
    /// Takes what the user does, the size of the terminal first.
    pub input: mpsc::Sender<TerminalInput>,
}

/// A way to a terminal and its other end. Once the other end is dropped, there is no terminal.
pub fn terminals() -> (Terminals, Loans) {
    let (sender, receiver) = mpsc::channel(WAITING_LOANS);
    (Terminals(Some(sender)), Loans(receiver))
}

impl Loans {
    /// The next request that somebody still waits for; none when there will be no more.
    pub async fn next(&mut self) -> Option<Loan> {
        loop {
            let loan = self.0.recv().await?;
            if !loan.answer.is_closed() {
                return Some(loan);
            }
        }
    }
}

impl Loan {
    /// Lends the terminal; none when nobody waits for it any more.
    pub fn accept(self) -> Option<Lent> {
        let Self { output, input, answer } = self;
        answer.send(Ok(())).ok()?;
        Some(Lent { output, input })
    }

    /// Does not lend the terminal, and says why.
    pub fn refuse(self, reason: Error) {
        // Nobody may wait for it any more.
        let _ = self.answer.send(Err(reason));
    }
}

/// Asks for the terminal and answers with what its user does. What the engine sends is shown meanwhile.
pub(crate) async fn lend(
    terminals: &Terminals,
    from_engine: Incoming,
) -> Result<Response<Body>, Error> {
    let (shown, output) = mpsc::channel(WAITING_PIECES);
    let (input, mut done) = mpsc::channel::<TerminalInput>(WAITING_PIECES);
    let (answer, answered) = oneshot::channel();
    let terminal = terminals.0.as_ref().ok_or_else(no_terminal)?;
    terminal.send(Loan { output, input, answer }).await.map_err(|_| no_terminal())?;
    answered.await.map_err(|_| no_terminal())??;
    // It ends with the request, which ends with the connection to the engine at the latest.
    tokio::spawn(show(from_engine, shown));
    let frames = stream::poll_fn(move |context| {
        let input = done.poll_recv(context);
        input.map(|input| input.map(|input| Ok(Frame::data(Bytes::from(input.encode())))))
    });
    Ok(Response::new(StreamBody::new(frames).boxed_unsync()))
}

async fn show(mut from_engine: Incoming, shown: mpsc::Sender<Bytes>) {
    while let Some(Ok(frame)) = from_engine.frame().await {
        let Ok(bytes) = frame.into_data() else { continue };
        if shown.send(bytes).await.is_err() {
            return;
        }
    }
}

fn no_terminal() -> Error {
    Error::user("there is no terminal to open: the client shows no live display")
        .with_hint("run the command on a terminal, without --silent and with --progress=tty")
}
