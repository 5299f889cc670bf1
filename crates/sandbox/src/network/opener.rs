//! [`Opener`]: opens sockets in the engine's network namespace, for whoever works outside of it.
//!
//! A socket belongs to the namespace of the thread that opened it, wherever it is used later. So one thread
//! lives in there and does nothing else.

use crate::sys;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, mpsc};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};
use tokio::sync::oneshot;

type Job = Box<dyn FnOnce() + Send>;

/// Connects to a port of the loopback of a container, from within it. A thread goes in, opens the socket and
/// ends.
pub(crate) async fn connect_within(process: Arc<OwnedFd>, port: u16) -> io::Result<TcpStream> {
    let (sender, opened) = oneshot::channel();
    let open = move || {
        let socket = sys::enter_network(process.as_fd()).map_err(io::Error::from);
        // Who asked may have gone meanwhile.
        let _ = sender.send(socket.and_then(|()| stream_socket()));
    };
    std::thread::Builder::new().name("socket".to_owned()).spawn(open)?;
    let socket = std::net::TcpStream::from(opened.await.map_err(|_| gone())??);
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
    TcpSocket::from_std_stream(socket).connect(address.into()).await
}

fn stream_socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?)
}

/// The thread ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Opener(mpsc::Sender<Job>);

impl Opener {
    /// Starts the thread.
    pub(crate) fn start(namespace: OwnedFd) -> io::Result<Opener> {
        let (sender, jobs) = mpsc::channel::<Job>();
        let (told, tell) = mpsc::channel();
        let live = move || {
            let entered = sys::enter_network(namespace.as_fd());
            let inside = entered.is_ok();
            // Who started us waits for this word.
            let _ = told.send(entered);
            while inside && let Ok(job) = jobs.recv() {
                job();
            }
        };
        std::thread::Builder::new().name("sockets".to_owned()).spawn(live)?;
        tell.recv().map_err(|_| gone())??;
        Ok(Opener(sender))
    }

    async fn open<T: Send + 'static>(
        &self,
        open: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let (sender, opened) = oneshot::channel();
        // Who asked may have gone meanwhile.
        let job = Box::new(move || drop(sender.send(open())));
        self.0.send(job).map_err(|_| gone())?;
        opened.await.map_err(|_| gone())?
    }

    /// Connects to something in the engine's network.
    pub(crate) async fn connect(&self, address: SocketAddrV4) -> io::Result<TcpStream> {
        let socket = std::net::TcpStream::from(self.open(stream_socket).await?);
        TcpSocket::from_std_stream(socket).connect(address.into()).await
    }

    /// Sends packets to something in the engine's network.
    pub(crate) async fn connect_udp(&self, address: SocketAddrV4) -> io::Result<UdpSocket> {
        let socket = self.bind(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)).await?;
        socket.connect(address).await?;
        Ok(socket)
    }

    /// Takes connections at an address of ours.
    pub(crate) async fn listen(&self, address: SocketAddrV4) -> io::Result<TcpListener> {
        let make = move || {
            let listener = std::net::TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        TcpListener::from_std(self.open(make).await?)
    }

    /// Takes packets at an address of ours.
    pub(crate) async fn bind(&self, address: SocketAddrV4) -> io::Result<UdpSocket> {
        let make = move || {
            let socket = std::net::UdpSocket::bind(address)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        UdpSocket::from_std(self.open(make).await?)
    }
}

fn gone() -> io::Error {
    io::Error::other("the thread in the engine's network is gone")
}
