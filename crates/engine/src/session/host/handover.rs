//! Open directories that the client hands over, each on a connection of its own.
//!
//! A descriptor cannot travel beside HTTP/2, so the client dials once more and shows the token that
//! the engine's request had. Where no descriptor comes with the byte, as through a forwarded socket,
//! the directory is read or written on the stream.

use super::{ATTACH_TIME, AttachedHost, json, post, unreachable_client};
use crate::greeting::Connection;
use crate::sessions::Sessions;
use api::host::Handed;
use protocol::Error;
use protocol::attach::{OPEN_PATH, OpenFor, OpenReply, OpenRequest};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::collections::HashMap;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::io::Interest;
use tokio::sync::oneshot;

/// Who waits for a directory, by token.
#[derive(Default)]
pub(super) struct Handovers(Mutex<HashMap<String, oneshot::Sender<Option<OwnedFd>>>>);

impl Handovers {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<Option<OwnedFd>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in [`Handovers`], given up when dropped.
struct Waiting<'a> {
    handovers: &'a Handovers,
    token: String,
    directory: oneshot::Receiver<Option<OwnedFd>>,
}

impl<'a> Waiting<'a> {
    fn new(handovers: &'a Handovers) -> Result<Self, Error> {
        let token = Sessions::name()?;
        let (sender, directory) = oneshot::channel();
        handovers.lock().insert(token.clone(), sender);
        Ok(Self { handovers, token, directory })
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.handovers.lock().remove(&self.token);
    }
}

impl AttachedHost {
    /// A directory of the client; none when it is to be read or written on the stream.
    pub(super) async fn open_directory(
        &self,
        path: String,
        purpose: OpenFor,
    ) -> Result<Option<Handed>, Error> {
        // The client says whether it can when it comes.
        self.link().await?;
        if !self.hands_over.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let mut waiting = Waiting::new(&self.handovers)?;
        let request = OpenRequest { path, purpose, token: waiting.token.clone() };
        let reply: OpenReply = json(self.ask(post(OPEN_PATH, &request)).await?).await?;
        if !reply.handed {
            return Ok(None);
        }
        let late = |_| unreachable_client("a directory that it handed over did not arrive");
        let arrived = tokio::time::timeout(ATTACH_TIME, &mut waiting.directory).await;
        let arrived = arrived.map_err(late)?.unwrap_or_default();
        Ok(arrived.map(|directory| Handed {
            directory,
            path: reply.path,
            made: reply.made,
            // The client's numbers are the host's, and ours may be those of a user namespace.
            owner: sandbox::rootless::inside_ids(reply.owner),
            ignores: reply.ignores,
            hidden: vec![],
        }))
    }

    /// Takes a directory from a connection that showed `token`.
    pub(crate) async fn receive(&self, connection: Connection, token: &str) -> io::Result<()> {
        let waiting = self.handovers.lock().remove(token);
        let Some(waiting) = waiting else { return Err(io::ErrorKind::NotFound.into()) };
        let Some(stream) = connection.into_inner().into_unix() else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let receiving = stream.async_io(Interest::READABLE, || Ok(take(stream.as_fd())?));
        let received = tokio::time::timeout(ATTACH_TIME, receiving).await;
        // Whoever asked may have gone meanwhile.
        let _ = waiting.send(received.map_or(None, |received| received.unwrap_or(None)));
        Ok(())
    }
}

/// One byte and the descriptor that came with it, if one did.
fn take(socket: BorrowedFd<'_>) -> Result<Option<OwnedFd>, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Ok(descriptors.next())
}
