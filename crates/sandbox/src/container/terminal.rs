//! The terminal of a container whose command runs on one.
//!
//! It is made in the file system of terminals that the container has for itself, before anything of the
//! image or of the user is mounted, so that nobody can put something else in its place.

use crate::TerminalSize;
use crate::wire::{Failure, Run, Status};
use crate::zygote::tell;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Uid;
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, unlockpt};
use rustix::termios::tcsetwinsize;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Both ends of a terminal.
pub(super) struct Ends {
    /// The engine's.
    controller: OwnedFd,
    /// The command's.
    terminal: OwnedFd,
}

impl Ends {
    /// Makes the terminal that a run asks for, if it asks for one; `dev` is the container's `/dev`.
    pub(super) fn make(dev: BorrowedFd<'_>, run: &Run) -> Result<Option<Ends>, Failure> {
        let Some((columns, rows)) = run.terminal else { return Ok(None) };
        let size = TerminalSize { columns, rows };
        let ends = open(dev, size, run.uid).map_err(Failure::setup("make a terminal"))?;
        Ok(Some(ends))
    }

    /// Makes it the controlling terminal of this process, and its three streams, and gives the
    /// engine its end.
    pub(super) fn take(&self, status: &OwnedFd) -> Result<(), Failure> {
        let failed = Failure::setup("take the terminal");
        match rustix::process::setsid() {
            // Process 1 leads a session already.
            Ok(_) | Err(Errno::PERM) => {}
            Err(error) => return Err(failed(error)),
        }
        rustix::process::ioctl_tiocsctty(&self.terminal).map_err(&failed)?;
        rustix::stdio::dup2_stdin(&self.terminal).map_err(&failed)?;
        rustix::stdio::dup2_stdout(&self.terminal).map_err(&failed)?;
        rustix::stdio::dup2_stderr(&self.terminal).map_err(&failed)?;
        tell(status.as_fd(), &Status::Terminal, &[self.controller.as_fd()]);
        Ok(())
    }
}

fn open(dev: BorrowedFd<'_>, size: TerminalSize, user: u32) -> Result<Ends, Errno> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let controller = rustix::fs::openat(dev, "pts/ptmx", flags, Mode::empty())?;
    unlockpt(&controller)?;
    tcsetwinsize(&controller, size.window())?;
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let terminal = ioctl_tiocgptpeer(&controller, flags)?;
    // Programs open it again by its name.
    rustix::fs::fchown(&terminal, Some(Uid::from_raw(user)), None)?;
    Ok(Ends { controller, terminal })
}
