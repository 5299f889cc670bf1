//! The guard: a small process that stays behind to clean up when the engine is gone, however it went.
//!
//! It undoes the one thing in the host's network that does not go with a process (`forwarding`), and it
//! is the parent of `pasta`, which ends with it: the guard is process 1 of a pid namespace. Like the
//! zygote it is started before there is a thread and is our own binary in another role.
//!
//! Engine to guard, one packet each: an [`Order`]. Back comes one [`Answer`] each, and unasked for
//! [`Answer::Ended`] when `pasta` does.

use super::forwarding::Need;
use crate::sys::{self, Clone3, Strings};
use crate::zygote::{self, attach, new_mount, process, wait_readable};
use crate::{Error, packet};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, MemfdFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    MountAttrFlags, MountPropagationFlags, OpenTreeFlags, mount_change, open_tree,
};
use rustix::net::{Shutdown, shutdown};
use rustix::process::{WaitId, WaitIdOptions, waitid};
use rustix::thread::UnshareFlags;
use serde::{Deserialize, Serialize};
use std::ffi::CString;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

/// How long the guard may take to do as it is told.
const ANSWER_LIMIT: Duration = Duration::from_secs(15);
/// How long it may take to end.
const END_LIMIT: Duration = Duration::from_secs(10);
/// How the guard is called in a list of processes.
const NAME: &str = "ci-tool.guard";
/// How much of what `pasta` says is passed on.
const TOLD: usize = 2000;

/// Where a program finds the network namespace that it is to serve. Only the program sees it there: some
/// refuse what lies in `/proc`, and there is no place of the host's that is ours to put it.
pub(crate) const NAMESPACE: &str = "/mnt/network";

/// What the guard is to do.
#[derive(Serialize, Deserialize)]
enum Order {
    /// Have the host pass packets on, until the end.
    Forward,
    /// Start a program with these arguments, the program's path first. It ends with the guard. The
    /// network namespace that comes along is at [`NAMESPACE`] for it.
    Run(Vec<String>),
}

/// What the guard says.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Answer {
    Done,
    Failed(String),
    /// The program ended; what it said last.
    Ended(String),
}

/// There is no guard any more.
#[derive(Debug)]
pub(crate) struct Gone;

/// A running guard. When this is dropped, it cleans up and ends.
#[derive(Debug)]
pub struct Guard {
    socket: Option<OwnedFd>,
    pidfd: OwnedFd,
}

impl Guard {
    /// Starts `program`, which is our own binary, with arguments that make it call [`guard_main`]. Call
    /// this before any thread exists.
    pub fn start(program: &Path, args: &[&str]) -> Result<Guard, Error> {
        let flags = libc::CLONE_NEWPID as u64;
        let (socket, pidfd, _) = zygote::start_role(NAME, program, args, flags)?;
        Ok(Guard { socket: Some(socket), pidfd })
    }

    /// Has the host pass packets on until the engine is gone.
    pub(crate) fn forward(&self) -> Result<(), Error> {
        self.order(&Order::Forward, &[])
    }

    /// Starts a program that ends with the engine and finds a network namespace at [`NAMESPACE`].
    pub(crate) fn run(
        &self,
        arguments: Vec<String>,
        namespace: BorrowedFd<'_>,
    ) -> Result<(), Error> {
        self.order(&Order::Run(arguments), &[namespace])
    }

    /// A second descriptor of the socket, to watch it.
    pub(crate) fn watchable(&self) -> Option<OwnedFd> {
        self.socket.as_ref()?.try_clone().ok()
    }

    /// What the program said when it ended, if it has ended.
    pub(crate) fn ended(&self) -> Result<Option<String>, Gone> {
        let mut buffer = [0; 4096];
        let socket = self.socket.as_ref().ok_or(Gone)?;
        let packet = match packet::receive(socket, &mut buffer) {
            Ok(packet) if packet.length > 0 => packet,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            _ => return Err(Gone),
        };
        match postcard::from_bytes(&buffer[..packet.length]) {
            Ok(Answer::Ended(text)) => Ok(Some(text)),
            Ok(Answer::Done | Answer::Failed(_)) | Err(_) => Ok(None),
        }
    }

    fn order(&self, order: &Order, descriptors: &[BorrowedFd<'_>]) -> Result<(), Error> {
        let socket = self.socket.as_ref().ok_or_else(|| Error::network("the guard is gone"))?;
        let failed = |action| move |errno: Errno| Error::Host { action, source: errno.into() };
        let bytes = postcard::to_stdvec(order)
            .map_err(|error| Error::network(format!("cannot tell the guard: {error}")))?;
        packet::send(socket, &bytes, descriptors).map_err(failed("cannot tell the guard"))?;
        wait_readable(socket.as_fd(), ANSWER_LIMIT)?;
        let mut buffer = [0; 4096];
        let packet =
            packet::receive(socket, &mut buffer).map_err(failed("cannot hear the guard"))?;
        match postcard::from_bytes(&buffer[..packet.length]) {
            Ok(Answer::Done) => Ok(()),
            Ok(Answer::Failed(text) | Answer::Ended(text)) => Err(Error::network(text)),
            Err(error) => Err(Error::network(format!("the guard is gone: {error}"))),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // It ends when it has nobody to listen to, and nothing must be left when we go. Closing alone is not
        // enough: who watches it has the socket too, and may be the one who waits here.
        if let Some(socket) = self.socket.take() {
            let _ = shutdown(&socket, Shutdown::Both);
        }
        if wait_readable(self.pidfd.as_fd(), END_LIMIT).is_err() {
            tracing::error!("the network's guard did not end within {END_LIMIT:?}");
            return;
        }
        let buried = waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED);
        if let Err(error) = buried {
            tracing::warn!("cannot collect the exit status of the network's guard: {error}");
        }
    }
}

/// The whole life of a guard. The role that [`Guard::start`] starts our binary in must do nothing but
/// call this and exit with what it returns.
pub fn guard_main() -> i32 {
    let Ok(socket) = zygote::role_socket() else { return 2 };
    // A terminal's signals are for the engine; this one has to outlive it.
    sys::block_all();
    let mut guard = Serving { socket, need: None, program: None };
    guard.serve();
    // The program dies with us, whose namespace it is in.
    match guard.need.map(Need::end) {
        Some(Err(_)) => 1,
        _ => 0,
    }
}

/// The guard's own side.
struct Serving {
    socket: OwnedFd,
    need: Option<Need>,
    program: Option<Program>,
}

/// A program that runs.
struct Program {
    pidfd: OwnedFd,
    pid: i32,
    said: File,
}

impl Serving {
    /// Does as it is told until nobody tells it anything any more.
    fn serve(&mut self) {
        loop {
            let mut polled = vec![PollFd::new(&self.socket, PollFlags::IN)];
            if let Some(program) = &self.program {
                polled.push(PollFd::new(&program.pidfd, PollFlags::IN));
            }
            match poll(&mut polled, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            let ended = polled.get(1).is_some_and(|program| !program.revents().is_empty());
            let spoken = !polled[0].revents().is_empty();
            if ended && let Some(program) = self.program.take() {
                self.tell(&Answer::Ended(program.last_words()));
            }
            if spoken && !self.obey() {
                return;
            }
        }
    }

    /// Handles one order; false when there will be no more.
    fn obey(&mut self) -> bool {
        let mut buffer = [0; 4096];
        let packet = match packet::receive(&self.socket, &mut buffer) {
            Ok(packet) if packet.length > 0 => packet,
            Err(Errno::AGAIN | Errno::INTR) => return true,
            _ => return false,
        };
        let done = match postcard::from_bytes(&buffer[..packet.length]) {
            Ok(Order::Forward) => Need::begin()
                .map(|need| self.need = Some(need))
                .map_err(|error| format!("cannot have the host pass packets on: {error}")),
            Ok(Order::Run(arguments)) => Program::start(&arguments, packet.descriptors.first())
                .map(|program| self.program = Some(program))
                .map_err(|error| format!("cannot start `{}`: {error}", arguments.join(" "))),
            Err(error) => Err(format!("the engine does not speak our language: {error}")),
        };
        self.tell(&done.map_or_else(Answer::Failed, |()| Answer::Done));
        true
    }

    fn tell(&self, answer: &Answer) {
        if let Ok(bytes) = postcard::to_stdvec(answer) {
            // Who does not listen is gone, which shows at the next look.
            let _ = packet::send(&self.socket, &bytes, &[]);
        }
    }
}

impl Program {
    fn start(arguments: &[String], namespace: Option<&OwnedFd>) -> Result<Program, Errno> {
        let words = arguments.iter().map(|word| CString::new(word.as_str()));
        let words = words.collect::<Result<Vec<_>, _>>().map_err(|_| Errno::INVAL)?;
        let path = words.first().cloned().ok_or(Errno::INVAL)?;
        let (words, environment) = (Strings::new(words), Strings::new(Vec::new()));
        let said = rustix::fs::memfd_create("said", MemfdFlags::CLOEXEC)?;
        match sys::clone_process(0, None)? {
            Clone3::Child => {
                let prepared = rustix::stdio::dup2_stdout(&said)
                    .and_then(|()| rustix::stdio::dup2_stderr(&said))
                    .and_then(|()| namespace.map_or(Ok(()), |found| place(found.as_fd())));
                if prepared.is_ok() {
                    sys::close_on_exec_from(3);
                    sys::default_all();
                    sys::unblock_all();
                    sys::execute(&path, &words, &environment);
                }
                sys::exit_now(127)
            }
            Clone3::Parent { pid, pidfd } => Ok(Program { pidfd, pid, said: said.into() }),
        }
    }

    /// Buries it, and gives the end of what it said.
    fn last_words(mut self) -> String {
        if let Some(pid) = process(self.pid) {
            let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::NOHANG);
        }
        let mut text = String::new();
        let length = self.said.seek(SeekFrom::End(0)).unwrap_or(0);
        let begin = length.saturating_sub(TOLD as u64);
        let read = self.said.seek(SeekFrom::Start(begin)).and_then(|_| {
            let mut bytes = Vec::new();
            self.said.read_to_end(&mut bytes)?;
            text = String::from_utf8_lossy(&bytes).trim().to_owned();
            Ok(())
        });
        if read.is_err() { String::new() } else { text }
    }
}

/// Puts a network namespace where the program looks for it, in mounts of the program's own.
fn place(namespace: BorrowedFd<'_>) -> Result<(), Errno> {
    sys::unshare(UnshareFlags::NEWNS)?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let (folder, name) = NAMESPACE.rsplit_once('/').ok_or(Errno::INVAL)?;
    let memory = new_mount("tmpfs", &[("mode", "755")], MountAttrFlags::empty())?;
    attach(memory.as_fd(), CWD, folder)?;
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::openat(&memory, name, flags, Mode::from_raw_mode(0o644))?;
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let mount = open_tree(namespace, "", flags | OpenTreeFlags::AT_EMPTY_PATH)?;
    attach(mount.as_fd(), memory.as_fd(), name)
}
