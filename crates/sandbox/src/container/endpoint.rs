//! Opens the port on the loopback that the engine answers.

use crate::wire::{Failure, Run, Status};
use crate::zygote::tell;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, OwnedFd};

/// Connections that may wait to be taken. Beyond the usual hundred, a burst of clients would find theirs
/// reset.
const BACKLOG: i32 = 4096;

/// Opens the port if the run asks for one, tells its number to the command and gives the rest to the
/// engine. The root must be the command's.
pub(super) fn open(run: &mut Run, status: &OwnedFd) -> Result<(), Failure> {
    let Some(listener) = reserve(run)? else { return Ok(()) };
    offer(&listener, "/", status)
}

/// Opens the port if the run asks for one, and tells its number to the command.
pub(super) fn reserve(run: &mut Run) -> Result<Option<OwnedFd>, Failure> {
    if run.endpoint.is_empty() {
        return Ok(None);
    }
    let (listener, port) = listen().map_err(Failure::setup("open a port for the session"))?;
    let variables = run.endpoint.iter().map(|name| format!("{name}={port}"));
    run.env.extend(variables);
    Ok(Some(listener))
}

/// Gives the engine a port, and the root of the command, which is at `root`.
pub(super) fn offer(listener: &OwnedFd, root: &str, status: &OwnedFd) -> Result<(), Failure> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root =
        rustix::fs::open(root, flags, Mode::empty()).map_err(Failure::setup("open the root"))?;
    tell(status.as_fd(), &Status::Endpoint, &[listener.as_fd(), root.as_fd()]);
    Ok(())
}

fn listen() -> Result<(OwnedFd, u16), Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(
        AddressFamily::INET,
        SocketType::STREAM,
        flags,
        Some(ipproto::TCP),
    )?;
    rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
    rustix::net::listen(&socket, BACKLOG)?;
    let address = SocketAddrV4::try_from(rustix::net::getsockname(&socket)?)?;
    Ok((socket, address.port()))
}
