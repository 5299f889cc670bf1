//! Terminals that commands run on: what an engine gives for one, and its end of it.
//!
//! The terminal is made in the container, in the container's own file system of terminals, by `container`;
//! the engine gets its controlling end. A command that ends takes its terminal with it; a terminal
//! whose user is gone is closed, which the kernel tells the command by SIGHUP.

use crate::sys::watched;
use rustix::buffer::spare_capacity;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::termios::{Winsize, tcsetwinsize};
use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;

/// Most bytes that are taken from a terminal at once.
const PIECE: usize = 16 * 1024;
/// Most bytes that are taken after the last process is gone: more than a terminal holds.
const REST: usize = 1024 * 1024;

/// A terminal for a command.
pub struct Terminal {
    /// How large it is at first.
    pub size: TerminalSize,
    /// What its user does. When the other side is dropped, the user is gone.
    pub input: mpsc::Receiver<TerminalInput>,
    /// Gets what is to be shown. It may be slow: the command waits then.
    pub output: mpsc::Sender<Vec<u8>>,
}

/// How large a terminal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    /// Columns.
    pub columns: u16,
    /// Rows.
    pub rows: u16,
}

/// What a user does at a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TerminalInput {
    /// Presses keys.
    Keys(Vec<u8>),
    /// Makes it larger or smaller.
    Size(TerminalSize),
}

impl TerminalSize {
    /// As the kernel wants it.
    pub(crate) fn window(self) -> Winsize {
        Winsize { ws_row: self.rows, ws_col: self.columns, ws_xpixel: 0, ws_ypixel: 0 }
    }
}

/// The engine's end of a terminal.
pub(crate) struct Console {
    controller: AsyncFd<OwnedFd>,
    input: mpsc::Receiver<TerminalInput>,
    output: mpsc::Sender<Vec<u8>>,
    /// Keys that the terminal has not taken yet.
    typed: Vec<u8>,
    /// Whether nobody in the container has it open any more.
    closed: bool,
}

impl Console {
    /// Takes over the controlling end that a container made.
    pub(crate) fn new(controller: OwnedFd, terminal: Terminal) -> io::Result<Console> {
        rustix::fs::fcntl_setfl(&controller, OFlags::NONBLOCK)?;
        let controller = watched(controller, Interest::READABLE | Interest::WRITABLE)?;
        let Terminal { input, output, .. } = terminal;
        Ok(Console { controller, input, output, typed: Vec::new(), closed: false })
    }

    /// Passes on what there is, for as long as there is a user. Nothing is lost when the future is
    /// dropped.
    pub(crate) async fn attend(&mut self) {
        while self.step().await {}
    }

    /// One piece, either way; false when the user is gone.
    async fn step(&mut self) -> bool {
        let Console { controller, input, output, typed, closed } = self;
        tokio::select! {
            shown = show(controller, output), if !*closed => match shown {
                Shown::Piece => {}
                Shown::Closed => *closed = true,
                Shown::Nobody => return false,
            },
            taken = take(controller, typed), if !typed.is_empty() => {
                typed.drain(..taken);
            }
            done = input.recv(), if typed.is_empty() => match done {
                Some(TerminalInput::Keys(keys)) => *typed = keys,
                // A terminal that is gone has no size, and soon no user.
                Some(TerminalInput::Size(size)) => drop(tcsetwinsize(&*controller, size.window())),
                None => return false,
            },
        }
        true
    }

    /// Passes on what is left when the last process is gone.
    pub(crate) async fn drain(self) {
        let mut passed = 0;
        let mut piece = Vec::with_capacity(PIECE);
        while passed < REST {
            match rustix::io::read(self.controller.get_ref(), spare_capacity(&mut piece)) {
                Ok(1..) => {}
                Err(Errno::INTR) => continue,
                Ok(_) | Err(_) => return,
            }
            passed += piece.len();
            let full = std::mem::replace(&mut piece, Vec::with_capacity(PIECE));
            if self.output.send(full).await.is_err() {
                return;
            }
        }
    }
}

/// What became of a piece of output.
enum Shown {
    Piece,
    /// There is no more: nobody writes to the terminal.
    Closed,
    /// Nobody looks.
    Nobody,
}

/// Reads only what somebody is ready to show: the rest stays in the terminal, and who writes waits.
async fn show(controller: &AsyncFd<OwnedFd>, output: &mpsc::Sender<Vec<u8>>) -> Shown {
    let Ok(permit) = output.reserve().await else { return Shown::Nobody };
    let mut piece = Vec::with_capacity(PIECE);
    let read = |controller: &OwnedFd| Ok(rustix::io::read(controller, spare_capacity(&mut piece))?);
    match controller.async_io(Interest::READABLE, read).await {
        Ok(1..) => {
            permit.send(piece);
            Shown::Piece
        }
        Ok(_) | Err(_) => Shown::Closed,
    }
}

/// Writes keys, and gives how many were taken. A terminal that takes none any more takes all.
async fn take(controller: &AsyncFd<OwnedFd>, typed: &[u8]) -> usize {
    let write = |controller: &OwnedFd| Ok(rustix::io::write(controller, typed)?);
    controller.async_io(Interest::WRITABLE, write).await.unwrap_or(typed.len())
}

/// Attends to a terminal, if there is one.
pub(crate) async fn attend(console: &mut Option<Console>) {
    match console {
        Some(console) => console.attend().await,
        None => pending().await,
    }
}
