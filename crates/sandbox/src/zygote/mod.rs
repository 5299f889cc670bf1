//! The process that clones containers, seen from the engine.
//!
//! `serve` is its main loop, `world` what it prepares once so that containers need not, `borrowed` what
//! it takes from the host where it may not make it, `nest` the next container, made as far as it can be
//! before it is known what it will run.

mod borrowed;
mod line;
mod nest;
mod serve;
mod world;

pub(crate) use borrowed::{FOLDER as DEVICE_FOLDER, clone_tree};
pub(crate) use line::Line;
pub(crate) use nest::speed_up;
pub(crate) use serve::tell;
pub use serve::zygote_main;
pub(crate) use world::{Area, HOSTNAME, World, attach, become_root, new_mount};

use crate::sys::{self, Clone3, Pace, Strings};
use crate::{Error, packet};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, OpenTreeFlags, open_tree};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// What zygote and process 1 of every container are called.
pub(crate) const NAME: &str = "ci-tool.init";
/// The descriptor at which a zygote finds its socket.
const SOCKET: i32 = 3;
/// How long a killed zygote may take to be gone.
const END_LIMIT: Duration = Duration::from_secs(10);

/// A running zygote. When this is dropped, the zygote and everything it started are killed.
#[derive(Debug)]
pub struct Zygote {
    socket: OwnedFd,
    pidfd: OwnedFd,
    pid: i32,
}

impl Zygote {
    /// Starts `program`, which is our own binary, with arguments that make it call [`zygote_main`].
    ///
    /// Call this before any thread exists, from a thread that lives as long as the process: the
    /// kernel ends the zygote when the thread that started it ends.
    pub fn start(program: &Path, args: &[&str]) -> Result<Zygote, Error> {
        // As process 1 of a pid namespace it takes every container with it, whatever they did.
        let flags = libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWUTS;
        let (socket, pidfd, pid) = start_role(NAME, program, args, flags as u64)?;
        Ok(Zygote { socket, pidfd, pid })
    }

    /// The socket on which requests are sent.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The process id, for control groups.
    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Waits for one packet from the zygote.
    pub(crate) fn receive(&self, buffer: &mut [u8], limit: Duration) -> Result<usize, Error> {
        wait_readable(self.socket.as_fd(), limit)?;
        let packet = packet::receive(&self.socket, buffer).map_err(failed("hear the zygote"))?;
        if packet.length == 0 {
            return Err(Error::Zygote("ended when it was started".into()));
        }
        Ok(packet.length)
    }

    /// Has what was made ahead run as others do. It is not gone before they are, and on a busy machine they
    /// would take long to die.
    fn hurry(&self) {
        let path = format!("/proc/{0}/task/{0}/children", self.pid);
        let children = std::fs::read_to_string(path).unwrap_or_default();
        for pid in children.split_ascii_whitespace().filter_map(|word| word.parse().ok()) {
            // Who may not do that has made none of them slower.
            let _ = sys::set_pace(pid, Pace::Usual);
        }
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        self.hurry();
        // It may have ended by itself; then there is nothing to kill and only a status to collect.
        if pidfd_send_signal(&self.pidfd, Signal::KILL).is_ok()
            && wait_readable(self.pidfd.as_fd(), END_LIMIT).is_err()
        {
            tracing::error!("the zygote did not end within {END_LIMIT:?}");
            return;
        }
        let buried = waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED);
        if let Err(error) = buried {
            tracing::warn!("cannot collect the zygote's exit status: {error}");
        }
    }
}

/// Starts our own binary in another role, in new namespaces: a socket to it, a descriptor of it and its
/// process id.
pub(crate) fn start_role(
    name: &str,
    program: &Path,
    args: &[&str],
    flags: u64,
) -> Result<(OwnedFd, OwnedFd, i32), Error> {
    let (ours, theirs) = packet::pair().map_err(failed("make a socket for the zygote"))?;
    let binary = read_only_binary(program)?;
    let words = std::iter::once(name).chain(args.iter().copied());
    let arguments = words.map(CString::new).collect::<Result<Vec<_>, _>>();
    let arguments = arguments.map_err(|_| Error::Zygote("has a zero in its arguments".into()))?;
    let (arguments, environment) = (Strings::new(arguments), Strings::new(Vec::new()));
    match sys::clone_process(flags, None).map_err(failed("start the zygote"))? {
        Clone3::Child => {
            become_role(&theirs, &binary, &arguments, &environment);
            sys::exit_now(127)
        }
        Clone3::Parent { pid, pidfd } => Ok((ours, pidfd, pid)),
    }
}

/// The socket of a role that [`start_role`] started.
pub(crate) fn role_socket() -> Result<OwnedFd, Errno> {
    sys::take_descriptor(SOCKET)
}

/// Our binary through a read-only mount. A container can run it, by way of `/proc/self/exe` as the
/// interpreter of a script, and could otherwise open it for writing from there.
fn read_only_binary(program: &Path) -> Result<OwnedFd, Error> {
    let path = CString::new(program.as_os_str().as_bytes())
        .map_err(|_| Error::Zygote("has a zero in its path".into()))?;
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let binary = open_tree(CWD, &path, flags).map_err(failed("open our own binary"))?;
    sys::set_mount_attributes(binary.as_fd(), u64::from(MountAttrFlags::MOUNT_ATTR_RDONLY.bits()))
        .map_err(failed("protect our own binary"))?;
    Ok(binary)
}

/// In the new process: nothing stays open but the standard streams and the socket.
fn become_role(socket: &OwnedFd, binary: &OwnedFd, arguments: &Strings, environment: &Strings) {
    // The binary's descriptor may be the very number that the socket belongs at.
    let Ok(binary) = rustix::io::fcntl_dupfd_cloexec(binary, SOCKET + 1) else { return };
    let Ok(socket) = rustix::io::fcntl_dupfd_cloexec(socket, SOCKET + 1) else { return };
    if sys::place_descriptor(socket.as_fd(), SOCKET).is_err() {
        return;
    }
    sys::close_on_exec_from(SOCKET as u32 + 1);
    sys::execute_descriptor(binary.as_fd(), arguments, environment);
}

/// Waits until there is something to read, or the other side is gone.
pub(crate) fn wait_readable(descriptor: BorrowedFd<'_>, limit: Duration) -> Result<(), Error> {
    let mut polled = [PollFd::new(&descriptor, PollFlags::IN)];
    let limit = Timespec { tv_sec: limit.as_secs() as _, tv_nsec: 0 };
    loop {
        match poll(&mut polled, Some(&limit)) {
            Ok(0) => return Err(Error::Zygote("does not answer".into())),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(failed("wait for the zygote")(error)),
        }
    }
}

fn failed(action: &'static str) -> impl Fn(Errno) -> Error {
    move |errno| Error::Host { action, source: io::Error::from(errno) }
}

/// The pid type wants a proof that it is not zero.
pub(crate) fn process(pid: i32) -> Option<Pid> {
    Pid::from_raw(pid)
}
