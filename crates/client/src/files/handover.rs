//! Handing an open directory to the engine, so that it reads or writes it by itself.
//!
//! Only to an engine that has no more rights than we have: one of the same user, and when that is
//! root, only if we may pass over permissions as it can. So nothing is read or written that we could
//! not have read or written. An engine in a user namespace is one of our user; what it may beyond that
//! (files of the user that nobody may read, files of the user's further ids) the user may permit itself.
//! In all other cases we do the reading and writing ourselves, on the
//! stream.

use super::write::Target;
use super::{HostPaths, gitignore, named, text};
use crate::connect::dial;
use protocol::Error;
use protocol::attach::{OpenFor, OpenReply, OpenRequest, Writing};
use protocol::session::Purpose;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{getegid, geteuid};
use rustix::thread::{CapabilitySet, capabilities};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use tokio::io::Interest;

/// A directory that is open and what is known of it.
struct Opened {
    directory: OwnedFd,
    reply: OpenReply,
}

/// Opens the directory, and sends it to the engine if the engine may have it.
pub(super) async fn open(host: &Arc<HostPaths>, request: OpenRequest) -> Result<OpenReply, Error> {
    let OpenRequest { path: typed, purpose, token } = request;
    let opener = host.clone();
    let opening = tokio::task::spawn_blocking(move || match purpose {
        OpenFor::Write(what) => open_target(&opener, &typed, &what),
        OpenFor::Read { gitignore } => open_path(&typed, &opener.resolve(&typed)?, gitignore),
    });
    let mut opened = opening.await.map_err(|error| Error::internal(error.to_string()))??;
    match send(host, &opened.directory, token).await {
        Ok(handed) => opened.reply.handed = handed,
        // The stream is open, so the files can still be had.
        Err(error) => tracing::debug!(%error, "cannot hand a directory over"),
    }
    if opened.reply.made && !opened.reply.handed {
        // It is made again when the stream is written, which then knows that it is new.
        let _ = tokio::fs::remove_dir(&opened.reply.path).await;
    }
    Ok(opened.reply)
}

fn open_target(host: &HostPaths, typed: &str, what: &Writing) -> Result<Opened, Error> {
    let Target { directory, path, made } = Target::open(host, typed, what)?;
    let reply = OpenReply { handed: false, path, made, owner: owner(), ignores: None };
    Ok(Opened { directory, reply })
}

fn open_path(typed: &str, path: &Path, gitignore: bool) -> Result<Opened, Error> {
    let failed = |error: io::Error| named(typed, &error);
    let path = path.canonicalize().map_err(failed)?;
    if !path.metadata().map_err(failed)?.is_dir() {
        return Err(Error::user(format!("path {typed} is a file, not a directory")));
    }
    let ignores = match gitignore {
        true => gitignore::files_above(typed, &path)?,
        false => None,
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory =
        openat(CWD, &path, flags, Mode::empty()).map_err(|errno| failed(errno.into()))?;
    let path = text(&path)?;
    let reply = OpenReply { handed: false, path, made: false, owner: owner(), ignores };
    Ok(Opened { directory, reply })
}

/// User and group that we run as.
fn owner() -> (u32, u32) {
    (geteuid().as_raw(), getegid().as_raw())
}

/// Sends an open directory to the engine. Says whether it did.
async fn send(host: &HostPaths, directory: &OwnedFd, token: String) -> Result<bool, crate::Error> {
    let purpose = Purpose::HandOver { session: host.engine.session.clone(), token };
    if !host.engine.route.is_local() || !have_all_rights_of_our_user() {
        return Ok(false);
    }
    let (connection, _) = dial(&host.engine.route, purpose).await?;
    let lost = |error: io::Error| crate::Error::Lost(error.to_string());
    let Some(stream) = connection.into_inner().into_unix() else { return Ok(false) };
    if stream.peer_cred().map_err(lost)?.uid() != geteuid().as_raw() {
        return Ok(false);
    }
    let sending = stream
        .async_io(Interest::WRITABLE, || Ok(send_descriptor(stream.as_fd(), directory.as_fd())?));
    sending.await.map_err(lost)?;
    Ok(true)
}

/// Whether we can do what any process of our user can. Root without its powers cannot.
fn have_all_rights_of_our_user() -> bool {
    let needed = CapabilitySet::DAC_OVERRIDE | CapabilitySet::FOWNER | CapabilitySet::CHOWN;
    !geteuid().is_root() || capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}

fn send_descriptor(socket: BorrowedFd<'_>, descriptor: BorrowedFd<'_>) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor];
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(socket, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}
