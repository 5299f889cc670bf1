//! [`Stream`]: bytes to and from the other side, over whatever there is.

use crate::{KEEP_ALIVE_INTERVAL, Program};
use std::fmt::Debug;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsStream;

/// Bytes to and from the other side.
#[derive(Debug)]
pub enum Stream {
    /// A socket of this machine.
    Unix(UnixStream),
    /// TCP in clear text, which never leaves this machine.
    Tcp(TcpStream),
    /// TCP with TLS.
    Tls(Box<TlsStream<TcpStream>>),
    /// The streams of a program.
    Program(Box<Program>),
    /// A stream within a connection to another machine.
    Within(Box<dyn Duplex>),
}

/// Both directions in one.
pub trait Duplex: AsyncRead + AsyncWrite + Debug + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Debug + Send + Unpin> Duplex for T {}

impl Stream {
    /// The socket of this machine, if it is one.
    pub fn as_unix(&self) -> Option<&UnixStream> {
        match self {
            Self::Unix(stream) => Some(stream),
            _ => None,
        }
    }

    /// The socket of this machine, if it is one.
    pub fn into_unix(self) -> Option<UnixStream> {
        match self {
            Self::Unix(stream) => Some(stream),
            _ => None,
        }
    }

    /// Whether the other side may be slow to answer and may vanish without a word.
    pub fn is_remote(&self) -> bool {
        !matches!(self, Self::Unix(_))
    }

    /// How often the other side is to be asked whether it is there. Not on a stream within a connection that has
    /// such questions itself: there they would wait behind what is on its way.
    pub fn keep_alive_interval(&self) -> Option<Duration> {
        let asks = self.is_remote() && !matches!(self, Self::Within(_));
        asks.then_some(KEEP_ALIVE_INTERVAL)
    }
}

impl From<UnixStream> for Stream {
    fn from(stream: UnixStream) -> Self {
        Self::Unix(stream)
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Program(program) => Pin::new(program).poll_read(context, buffer),
            Self::Within(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Program(program) => Pin::new(program).poll_write(context, bytes),
            Self::Within(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_flush(context),
            Self::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
            Self::Program(program) => Pin::new(program).poll_flush(context),
            Self::Within(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Program(program) => Pin::new(program).poll_shutdown(context),
            Self::Within(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(context, buffers),
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(context, buffers),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(context, buffers),
            Self::Program(program) => Pin::new(program).poll_write_vectored(context, buffers),
            Self::Within(stream) => Pin::new(stream).poll_write_vectored(context, buffers),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Unix(stream) => stream.is_write_vectored(),
            Self::Tcp(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
            Self::Program(program) => program.is_write_vectored(),
            Self::Within(stream) => stream.is_write_vectored(),
        }
    }
}
