//! Packets with descriptors over a unix socket that keeps packet boundaries.
//!
//! Both directions of the talk between engine and zygote are made of these; what the bytes mean is
//! told in `wire`.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Most descriptors that the kernel carries in one packet.
pub(crate) const MAX_DESCRIPTORS: usize = 253;

/// A pair of connected packet sockets.
pub(crate) fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
}

/// Sends one packet, or fails with `EAGAIN` rather than wait for room.
pub(crate) fn send(
    socket: impl AsFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    let mut small = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut large = Vec::new();
    let space: &mut [MaybeUninit<u8>] = if descriptors.len() <= 8 {
        &mut small
    } else {
        large.resize(rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS)), MaybeUninit::uninit());
        &mut large
    };
    let mut control = SendAncillaryBuffer::new(space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::TOOMANYREFS);
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags).map(|_| ())
}

/// One received packet; no bytes mean that the other side is gone.
pub(crate) struct Packet {
    /// How many bytes of the buffer were filled.
    pub(crate) length: usize,
    /// What came along, in the order it was sent.
    pub(crate) descriptors: Vec<OwnedFd>,
}

/// Receives one packet, or fails with `EAGAIN` if there is none.
pub(crate) fn receive(socket: impl AsFd, buffer: &mut [u8]) -> Result<Packet, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = recvmsg(socket, &mut [IoSliceMut::new(buffer)], &mut control, flags)?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        return Err(Errno::MSGSIZE);
    }
    Ok(Packet { length: received.bytes, descriptors })
}

/// Whether there is a packet, or nobody who could send one.
pub(crate) fn is_waiting(socket: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}

/// Waits for one packet.
pub(crate) fn wait(socket: &OwnedFd, buffer: &mut [u8]) -> Result<Packet, Errno> {
    loop {
        match receive(socket, buffer) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            received => return received,
        }
        match poll(&mut [PollFd::new(socket, PollFlags::IN)], None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}
