//! Takes over the controlling end of a terminal that the program makes, over a socket of the bundle.

use crate::TerminalSize;
use crate::packet;
use crate::wire::{Failure, Status};
use crate::zygote::tell;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::termios::tcsetwinsize;
use std::os::fd::{AsFd, OwnedFd};

/// Most bytes of the name that a terminal comes with.
const NAME: usize = 4096;

/// A socket that a terminal is to come over.
pub(super) struct Console {
    socket: OwnedFd,
    path: String,
    size: TerminalSize,
}

impl Console {
    /// Makes the socket in this directory, if there is to be a terminal. The path is relative, because
    /// one of a socket may not be long.
    pub(super) fn listen(
        path: String,
        terminal: Option<(u16, u16)>,
    ) -> Result<Option<Console>, Failure> {
        let Some((columns, rows)) = terminal else { return Ok(None) };
        let socket = listen(&path).map_err(Failure::setup("listen for a terminal"))?;
        Ok(Some(Console { socket, path, size: TerminalSize { columns, rows } }))
    }

    /// How the program is told of it.
    pub(super) fn flag(&self) -> String {
        format!("--console-socket={}", self.path)
    }

    /// Gives the engine the terminal that the program has sent.
    pub(super) fn hand_on(self, status: &OwnedFd) -> Result<(), Failure> {
        let controller = self.take().map_err(Failure::setup("get the terminal"))?;
        tcsetwinsize(&controller, self.size.window())
            .map_err(Failure::setup("make the terminal as large as it is"))?;
        tell(status.as_fd(), &Status::Terminal, &[controller.as_fd()]);
        Ok(())
    }

    fn take(&self) -> Result<OwnedFd, Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let stream = rustix::net::accept_with(&self.socket, flags)?;
        let sent = packet::receive(&stream, &mut [0; NAME])?;
        sent.descriptors.into_iter().next().ok_or(Errno::BADMSG)
    }
}

fn listen(path: &str) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&socket, 1)?;
    Ok(socket)
}
