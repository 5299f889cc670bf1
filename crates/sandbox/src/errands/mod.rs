//! Programs of the host that the engine needs run, by an attendant that runs nothing else.
//!
//! The engine must not fork (see `zygote`), and these programs are no containers: they read and write files of
//! the engine's own. The attendant is our binary in another role, started before there is a thread, and process 1 of a pid
//! namespace: however the engine ends, what it ran is gone.
//!
//! One packet asks for one program. With it come its three standard streams and a line of its own, on which its end
//! is told; a line that the engine has closed means that nobody waits, and its programs are killed.

mod serve;

pub use serve::errands_main;

use crate::sys::watched;
use crate::zygote::{self, wait_readable};
use crate::{Error, packet};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncReadExt, Interest};
use tokio::net::unix::pipe;

/// How the attendant is called in a list of processes.
const NAME: &str = "ci-tool.errands";
/// How long a killed attendant may take to be gone.
const END_LIMIT: Duration = Duration::from_secs(10);
/// Longest order: arguments and environment together.
const MAX_ORDER: usize = 128 << 10;
/// How long to wait when the attendant has too much to read.
const PAUSE: Duration = Duration::from_millis(1);
/// Bytes taken from a stream at once.
const PIECE: usize = 32 << 10;
/// How much of what a program says on its standard error is kept: its end.
const KEPT_TALK: usize = 64 << 10;

/// Hears what a program says while it runs.
pub type Heard = Box<dyn FnMut(&[u8]) + Send>;

/// A program to run.
#[derive(Default)]
pub struct Errand {
    /// A name to look for where the system keeps its programs, or a path.
    pub program: String,
    /// Arguments, without the name.
    pub arguments: Vec<String>,
    /// Its whole environment.
    pub environment: Vec<(String, String)>,
    /// Where it runs.
    pub folder: String,
    /// What it reads.
    pub input: Vec<u8>,
    /// What its standard input is, instead of that.
    pub stdin: Option<OwnedFd>,
    /// Most that it may write to its standard output.
    pub limit: usize,
    /// Hears what it says on its standard error, as it comes.
    pub heard: Option<Heard>,
}

/// A program that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// Exit code; 128 plus the signal that ended it.
    pub code: i32,
    /// What it wrote.
    pub stdout: Vec<u8>,
    /// The end of what it said.
    pub stderr: Vec<u8>,
}

/// What the attendant is asked.
#[derive(Serialize, Deserialize)]
struct Order {
    program: String,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    folder: String,
}

/// What it says on the line of a program.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Answer {
    /// The program has ended.
    Ended(i32),
    /// There is no such program.
    Missing,
    /// It could not be started.
    Failed(String),
}

/// The attendant. When this is dropped, it and all that it runs are killed.
#[derive(Debug)]
pub struct Errands {
    socket: OwnedFd,
    pidfd: OwnedFd,
}

impl Errands {
    /// Starts `program`, which is our own binary, with arguments that make it call [`errands_main`]. Call this
    /// before any thread exists, from a thread that lives as long as the process.
    pub fn start(program: &Path, args: &[&str]) -> Result<Self, Error> {
        let flags = libc::CLONE_NEWPID as u64;
        let (socket, pidfd, _) = zygote::start_role(NAME, program, args, flags)?;
        Ok(Self { socket, pidfd })
    }

    /// Runs a program to its end. It is killed, with all that it started, when nobody waits any more.
    pub async fn run(&self, errand: Errand) -> Result<Done, Error> {
        let Errand { program, arguments, environment, folder, input, stdin, limit, heard } = errand;
        let order = Order { program, arguments, environment, folder };
        let bytes = postcard::to_stdvec(&order)
            .map_err(|error| Error::Invalid(format!("cannot ask for a program: {error}")))?;
        if bytes.len() > MAX_ORDER {
            let name = order.program;
            return Err(Error::Invalid(format!("arguments for `{name}` are too long")));
        }
        let failed = |errno: Errno| Error::host("cannot run a program")(errno.into());
        let stdin = match stdin {
            Some(given) => given,
            None => input_file(&input).map_err(Error::host("cannot run a program"))?.into(),
        };
        let (out, stdout) = pipe_with(PipeFlags::CLOEXEC).map_err(failed)?;
        let (talk, stderr) = pipe_with(PipeFlags::CLOEXEC).map_err(failed)?;
        let (line, theirs) = packet::pair().map_err(failed)?;
        self.send(&bytes, &[stdin.as_fd(), stdout.as_fd(), stderr.as_fd(), theirs.as_fd()]).await?;
        drop((stdin, stdout, stderr, theirs));
        let (stdout, stderr, answer) =
            tokio::join!(read_all(out, limit), read_talk(talk, heard), hear(line));
        match answer? {
            Answer::Ended(code) => Ok(Done { code, stdout: stdout?, stderr: stderr? }),
            Answer::Missing => Err(Error::Program {
                program: order.program,
                code: 127,
                reason: "it is not installed".to_owned(),
            }),
            Answer::Failed(reason) => {
                Err(Error::Program { program: order.program, code: 126, reason })
            }
        }
    }

    async fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<(), Error> {
        loop {
            match packet::send(&self.socket, bytes, descriptors) {
                Ok(()) => return Ok(()),
                Err(Errno::AGAIN) => tokio::time::sleep(PAUSE).await,
                Err(errno) => return Err(Error::host("cannot ask for a program")(errno.into())),
            }
        }
    }
}

impl Drop for Errands {
    fn drop(&mut self) {
        if pidfd_send_signal(&self.pidfd, Signal::KILL).is_ok()
            && wait_readable(self.pidfd.as_fd(), END_LIMIT).is_err()
        {
            tracing::error!("the process that runs programs did not end within {END_LIMIT:?}");
            return;
        }
        let buried = waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED);
        if let Err(error) = buried {
            tracing::warn!("cannot bury the process that runs programs: {error}");
        }
    }
}

/// What a program reads, as a file in memory.
fn input_file(input: &[u8]) -> std::io::Result<File> {
    let mut file = File::from(memfd_create("input", MemfdFlags::CLOEXEC)?);
    file.write_all(input)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

/// All of a stream; an error when it is longer than allowed.
async fn read_all(stream: OwnedFd, limit: usize) -> Result<Vec<u8>, Error> {
    let failed = Error::host("cannot hear a program");
    let mut stream = pipe::Receiver::from_owned_fd(stream).map_err(&failed)?;
    let mut all = Vec::new();
    loop {
        all.reserve(PIECE);
        if stream.read_buf(&mut all).await.map_err(&failed)? == 0 {
            return Ok(all);
        }
        if all.len() > limit {
            return Err(Error::Invalid(format!("a program wrote more than {limit} bytes")));
        }
    }
}

/// The end of a stream.
async fn read_talk(stream: OwnedFd, mut heard: Option<Heard>) -> Result<Vec<u8>, Error> {
    let failed = Error::host("cannot hear a program");
    let mut stream = pipe::Receiver::from_owned_fd(stream).map_err(&failed)?;
    let mut kept = Vec::new();
    loop {
        let before = kept.len();
        kept.reserve(PIECE);
        if stream.read_buf(&mut kept).await.map_err(&failed)? == 0 {
            return Ok(kept);
        }
        if let Some(heard) = &mut heard {
            heard(&kept[before..]);
        }
        if kept.len() > 2 * KEPT_TALK {
            kept.drain(..kept.len() - KEPT_TALK);
        }
    }
}

/// Waits for the one answer on the line of a program.
async fn hear(line: OwnedFd) -> Result<Answer, Error> {
    let line = watched(line, Interest::READABLE).map_err(Error::host("cannot hear a program"))?;
    loop {
        if let Some(answer) = next_answer(&line).await? {
            return Ok(answer);
        }
    }
}

async fn next_answer(line: &AsyncFd<OwnedFd>) -> Result<Option<Answer>, Error> {
    let failed = Error::host("cannot hear a program");
    let mut ready = line.readable().await.map_err(&failed)?;
    let mut buffer = [0; 4096];
    match packet::receive(line.get_ref(), &mut buffer) {
        Err(Errno::AGAIN | Errno::INTR) => {
            ready.clear_ready();
            Ok(None)
        }
        Ok(packet) if packet.length > 0 => postcard::from_bytes(&buffer[..packet.length])
            .map(Some)
            .map_err(|error| Error::Invalid(format!("a program's end is not understood: {error}"))),
        _ => Err(failed(std::io::Error::other("the process that runs programs is gone"))),
    }
}
