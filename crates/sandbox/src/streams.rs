//! The engine's ends of a command's standard streams.

use crate::sys::watched;
use rustix::buffer::spare_capacity;
use rustix::fs::{Gid, OFlags, Uid};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use std::os::fd::OwnedFd;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Most bytes that are read at once, as much as a pipe holds by default.
const CHUNK: usize = 64 * 1024;

/// Our end of an output stream.
pub(crate) struct Incoming {
    pipe: AsyncFd<OwnedFd>,
    buffer: Vec<u8>,
    open: bool,
}

impl Incoming {
    /// A pipe: our end, and the end to write to, which is made to belong to the user who will write, because
    /// programs open `/dev/stdout`.
    pub(crate) fn pipe(uid: u32, gid: u32) -> io::Result<(Incoming, OwnedFd)> {
        let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::fs::fcntl_setfl(&ours, OFlags::NONBLOCK)?;
        if uid != 0 || gid != 0 {
            rustix::fs::fchown(&theirs, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
        }
        let pipe = watched(ours, Interest::READABLE)?;
        Ok((Incoming { pipe, buffer: Vec::with_capacity(CHUNK), open: true }, theirs))
    }

    /// Whether more may come.
    pub(crate) fn open(&self) -> bool {
        self.open
    }

    /// Waits for some bytes; none mean the end. They are then in [`Incoming::bytes`]. Nothing is lost when the
    /// future is dropped.
    pub(crate) async fn fill(&mut self) -> io::Result<()> {
        let Incoming { pipe, buffer, open } = self;
        buffer.clear();
        let read = |pipe: &OwnedFd| Ok(rustix::io::read(pipe, spare_capacity(buffer))?);
        let length = pipe.async_io(Interest::READABLE, read).await;
        *open = matches!(length, Ok(1..));
        length.map(|_| ())
    }

    /// Reads what is there without waiting; false when there is nothing.
    pub(crate) fn fill_now(&mut self) -> bool {
        if !self.open {
            return false;
        }
        self.buffer.clear();
        match rustix::io::read(self.pipe.get_ref(), spare_capacity(&mut self.buffer)) {
            Ok(0) => self.open = false,
            Ok(_) => return true,
            Err(Errno::INTR) => return self.fill_now(),
            Err(_) => {}
        }
        false
    }

    /// What was read last.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer
    }
}

/// Our end of the standard input.
pub(crate) struct Outgoing {
    pipe: AsyncFd<OwnedFd>,
    bytes: Vec<u8>,
    written: usize,
}

impl Outgoing {
    /// A pipe: our end with all that is to be written, and the end to read from.
    pub(crate) fn pipe(bytes: Vec<u8>, uid: u32, gid: u32) -> io::Result<(Outgoing, OwnedFd)> {
        let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::fs::fcntl_setfl(&ours, OFlags::NONBLOCK)?;
        if uid != 0 || gid != 0 {
            rustix::fs::fchown(&theirs, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
        }
        let pipe = watched(ours, Interest::WRITABLE)?;
        Ok((Outgoing { pipe, bytes, written: 0 }, theirs))
    }

    /// Writes some more; true when there is nothing left to do, because all was written or because nobody
    /// reads any more, which is the command's own business.
    pub(crate) async fn advance(&mut self) -> bool {
        let rest = &self.bytes[self.written..];
        if rest.is_empty() {
            return true;
        }
        let write = |pipe: &OwnedFd| Ok(rustix::io::write(pipe, rest)?);
        match self.pipe.async_io(Interest::WRITABLE, write).await {
            Ok(length) => {
                self.written += length;
                self.written == self.bytes.len()
            }
            Err(_) => true,
        }
    }
}
