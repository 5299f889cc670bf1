//! Lends the terminal that the user sits at to a command in a container.
//!
//! While it is lent, keys go to the command as they are pressed, Ctrl-C and Ctrl-Z too, and what the
//! command prints goes to the screen as it is. However the loan ends, the terminal is as it was before.

use crate::interrupt::Interrupt;
use client::{Lent, Loan};
use protocol::Error;
use protocol::attach::TerminalInput;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr};
use std::collections::VecDeque;
use std::io;
use std::thread::JoinHandle;
use tokio::io::AsyncWriteExt as _;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// Runs of keys that may wait to be sent.
const WAITING: usize = 16;
/// Where the size of the terminal is not known.
const FALLBACK: TerminalInput = TerminalInput::Size { columns: 80, rows: 24 };
/// Undoes what a program that ended early may have left: colours, a hidden cursor, modes of the keyboard.
const RESET: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1l\x1b>\x1b[?2004l";
const OTHER_SCREEN: &[u8] = b"\x1b[?1049h";
const MAIN_SCREEN: &[u8] = b"\x1b[?1049l";

/// Lends the terminal until the loan ends, or somebody ends this program.
pub(crate) async fn lend(loan: Loan) {
    let (raw, mut desk) = match Raw::take().and_then(|raw| Desk::set(&raw).map(|desk| (raw, desk)))
    {
        Ok(taken) => taken,
        Err(reason) => return loan.refuse(reason),
    };
    let Some(lent) = loan.accept() else { return };
    let mut screen = desk.attend(lent).await;
    screen.leave().await;
    // The keys first: nothing may read them when the terminal is no longer ours.
    drop(desk);
    drop(raw);
}

/// The terminal with every key its own, and how it was before.
struct Raw {
    terminal: OwnedFd,
    before: Termios,
}

impl Raw {
    fn take() -> Result<Self, Error> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let terminal = rustix::fs::open("/dev/tty", flags, Mode::empty());
        let terminal = terminal.map_err(|_| refused("this program has no terminal"))?;
        if tcgetpgrp(&terminal) != Ok(rustix::process::getpgrp()) {
            return Err(refused("this program is in the background of its terminal"));
        }
        let unusable = |error: Errno| refused(&io::Error::from(error).to_string());
        let before = tcgetattr(&terminal).map_err(unusable)?;
        let mut modes = before.clone();
        modes.make_raw();
        tcsetattr(&terminal, OptionalActions::Now, &modes).map_err(unusable)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // A terminal that is gone needs no care.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}

fn refused(reason: &str) -> Error {
    Error::user(format!("no terminal can be opened: {reason}"))
}

/// All that a loan reacts to.
struct Desk {
    terminal: OwnedFd,
    keys: Keys,
    resized: Signal,
    interrupt: Interrupt,
    screen: Option<Screen>,
}

impl Desk {
    fn set(raw: &Raw) -> Result<Self, Error> {
        let unusable = |error: io::Error| refused(&error.to_string());
        let copy = || raw.terminal.try_clone().map_err(unusable);
        let interrupt = Interrupt::new().map_err(|error| refused(&error.to_string()))?;
        Ok(Self {
            terminal: copy()?,
            keys: Keys::read(copy()?).map_err(unusable)?,
            resized: signal(SignalKind::window_change()).map_err(unusable)?,
            interrupt,
            screen: Some(Screen::new(copy()?)),
        })
    }

    /// Passes everything on until the loan ends; gives the screen back.
    async fn attend(&mut self, mut lent: Lent) -> Screen {
        let mut screen = self.screen.take().expect("a desk attends to one loan");
        let mut waiting = VecDeque::from([self.size()]);
        loop {
            tokio::select! {
                piece = lent.output.recv() => match piece {
                    Some(bytes) if screen.show(&bytes).await.is_ok() => {}
                    _ => return screen,
                },
                keys = self.keys.typed.recv(), if waiting.len() < WAITING => match keys {
                    Some(keys) => waiting.push_back(TerminalInput::Keys(keys)),
                    None => return screen,
                },
                permit = lent.input.reserve(), if !waiting.is_empty() => {
                    match (permit, waiting.pop_front()) {
                        (Ok(permit), Some(input)) => permit.send(input),
                        _ => return screen,
                    }
                }
                _ = self.resized.recv() => waiting.push_back(self.size()),
                () = self.interrupt.pressed() => return screen,
            }
        }
    }

    fn size(&self) -> TerminalInput {
        match tcgetwinsize(&self.terminal) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                TerminalInput::Size { columns: size.ws_col, rows: size.ws_row }
            }
            _ => FALLBACK,
        }
    }
}

/// The screen of a terminal that is lent.
struct Screen {
    file: tokio::fs::File,
    /// Whether the last thing written ended a line.
    at_start: bool,
    /// Whether a program shows a screen of its own.
    other: bool,
}

impl Screen {
    fn new(terminal: OwnedFd) -> Self {
        let file = tokio::fs::File::from_std(terminal.into());
        Self { file, at_start: true, other: false }
    }

    async fn show(&mut self, bytes: &[u8]) -> io::Result<()> {
        let last = |wanted: &[u8]| bytes.windows(wanted.len()).rposition(|found| found == wanted);
        match (last(OTHER_SCREEN), last(MAIN_SCREEN)) {
            (None, None) => {}
            (entered, left) => self.other = entered > left,
        }
        self.at_start = bytes.last().map_or(self.at_start, |byte| *byte == b'\n');
        self.file.write_all(bytes).await?;
        self.file.flush().await
    }

    /// Leaves a clean line to whoever writes next.
    async fn leave(&mut self) {
        let mut bytes = if self.other { MAIN_SCREEN.to_vec() } else { vec![] };
        bytes.extend_from_slice(RESET);
        if !self.at_start {
            bytes.extend_from_slice(b"\r\n");
        }
        // A terminal that is gone needs no care.
        let _ = self.show(&bytes).await;
    }
}

/// The keys of a terminal, read by a thread of its own: nothing else can be waited for that every
/// system's terminals allow.
struct Keys {
    typed: mpsc::Receiver<Vec<u8>>,
    /// The thread ends when this is closed.
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Keys {
    fn read(terminal: OwnedFd) -> io::Result<Self> {
        let (stopped, stop) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let (sender, typed) = mpsc::channel(1);
        let thread = std::thread::Builder::new().name("keys".to_owned());
        let thread = thread.spawn(move || read_keys(&terminal, &stopped, &sender))?;
        Ok(Self { typed, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.typed.close();
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It waits for nothing but what was just closed.
            let _ = thread.join();
        }
    }
}

fn read_keys(terminal: &OwnedFd, stopped: &OwnedFd, sender: &mpsc::Sender<Vec<u8>>) {
    let mut buffer = [0; 4096];
    loop {
        let mut ready = [PollFd::new(terminal, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
        match poll(&mut ready, None) {
            Ok(_) if !ready[1].revents().is_empty() => return,
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return,
        }
        match rustix::io::read(terminal, &mut buffer) {
            Ok(count @ 1..) if sender.blocking_send(buffer[..count].to_vec()).is_ok() => {}
            Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(_) | Err(_) => return,
        }
    }
}
