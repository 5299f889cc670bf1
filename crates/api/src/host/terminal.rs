//! [`UserTerminal`]: the terminal of a session's user, and running a command on it.

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use protocol::attach::TerminalInput;
use sandbox::{Exit, Sandbox, Spec, Terminal, TerminalSize};
use tokio::sync::mpsc;

/// Pieces that may wait for the terminal, and for the command.
const WAITING_PIECES: usize = 4;

/// The terminal of the user, for as long as this lives.
pub struct UserTerminal {
    /// Columns and rows.
    pub size: (u16, u16),
    /// What the user does; it ends when the terminal is the client's again, or gone.
    pub input: BoxStream<'static, TerminalInput>,
    /// Takes what is to be shown; dropping it gives the terminal back.
    pub output: mpsc::Sender<Bytes>,
}

impl UserTerminal {
    /// Shows a line.
    pub(crate) async fn say(&mut self, line: &str) {
        // A user who is gone is found out soon.
        let _ = self.output.send(Bytes::from(format!("{line}\r\n"))).await;
    }

    /// Runs a command on the terminal, which is the client's again when this returns.
    pub(crate) async fn run(self, mut spec: Spec, on: &Sandbox) -> Result<Exit, sandbox::Error> {
        let Self { size: (columns, rows), mut input, output } = self;
        let (keys, taken) = mpsc::channel(WAITING_PIECES);
        let (shown, mut pieces) = mpsc::channel(WAITING_PIECES);
        let size = TerminalSize { columns, rows };
        spec.terminal = Some(Terminal { size, input: taken, output: shown });
        let down = async move {
            while let Some(piece) = pieces.recv().await {
                if output.send(Bytes::from(piece)).await.is_err() {
                    break;
                }
            }
        };
        let up = async move {
            while let Some(done) = input.next().await {
                // What is typed after the command has ended is for nobody, and the client ends it.
                let _ = keys.send(translate(done)).await;
            }
        };
        let (exit, (), ()) = futures::join!(on.run(spec, Box::new(|_, _| ())), down, up);
        exit
    }
}

fn translate(input: TerminalInput) -> sandbox::TerminalInput {
    match input {
        TerminalInput::Keys(keys) => sandbox::TerminalInput::Keys(keys),
        TerminalInput::Size { columns, rows } => {
            sandbox::TerminalInput::Size(TerminalSize { columns, rows })
        }
    }
}
