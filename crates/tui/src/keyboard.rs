//! [`Keyboard`]: the keys of the terminal that this program runs on.
//!
//! Keys come one by one and are not echoed while this is open; Ctrl-C and Ctrl-Z stay signals, and
//! output is untouched. Whatever ends this, the terminal is as it was. The terminal is opened anew,
//! because a flag set on standard input would be set for everybody who shares it.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};

/// The keys of the terminal.
#[derive(Debug)]
pub struct Keyboard {
    terminal: OwnedFd,
    /// How the terminal was, while it is ours.
    before: Option<Termios>,
}

impl Keyboard {
    /// Opens the keyboard, where there is a terminal and we may read from it now.
    pub fn open() -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let terminal = rustix::fs::open("/dev/tty", flags, Mode::empty()).ok()?;
        let mut keyboard = Self { terminal, before: None };
        keyboard.take().then_some(keyboard)
    }

    /// Takes the terminal again after [`Keyboard::release`]; false while it is somebody else's.
    pub fn take(&mut self) -> bool {
        if self.before.is_some() {
            return true;
        }
        if !in_foreground(&self.terminal) {
            return false;
        }
        let Ok(before) = tcgetattr(&self.terminal) else { return false };
        let mut modes = before.clone();
        modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        if tcsetattr(&self.terminal, OptionalActions::Now, &modes).is_err() {
            return false;
        }
        self.before = Some(before);
        true
    }

    /// Leaves the terminal as it was.
    pub fn release(&mut self) {
        if let Some(before) = self.before.take() {
            // A terminal that is gone needs no care.
            let _ = tcsetattr(&self.terminal, OptionalActions::Now, &before);
        }
    }

    /// Reads what was typed, without waiting; nothing where nothing was, none when there is no
    /// terminal any more.
    pub fn read<'b>(&self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        // Reading while in the background would stop the program.
        if self.before.is_none() || !in_foreground(&self.terminal) {
            return Some(&[]);
        }
        match rustix::io::read(&self.terminal, &mut *buffer) {
            Ok(0) => None,
            Ok(count) => Some(&buffer[..count]),
            Err(Errno::AGAIN | Errno::INTR) => Some(&[]),
            Err(_) => None,
        }
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.release();
    }
}

/// Whether standard error is no terminal, or one that we may draw on: a program in the background
/// leaves the screen to whoever is in front.
pub fn may_draw() -> bool {
    let stderr = rustix::stdio::stderr();
    tcgetpgrp(stderr).is_err() || in_foreground(stderr)
}

fn in_foreground(terminal: impl AsFd) -> bool {
    tcgetpgrp(terminal).is_ok_and(|group| group == rustix::process::getpgrp())
}
