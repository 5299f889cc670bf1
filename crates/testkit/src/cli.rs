//! [`Cli`]: one run of the program under test, with an environment that holds nothing of ours.

use crate::process::{Process, signal, wait_until};
use crate::state::State;
use crate::surroundings::deadline;
use crate::user::User;
use std::io::Write as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A command that is about to run.
pub struct Cli<'a> {
    state: &'a State,
    command: Command,
    stdin: Input,
}

enum Input {
    Empty,
    Bytes(Vec<u8>),
    Open,
}

/// What a finished command left.
#[derive(Clone, Debug)]
pub struct Output {
    /// The command line.
    pub line: String,
    /// How it ended.
    pub status: ExitStatus,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// How long it took.
    pub elapsed: Duration,
}

/// A command that runs.
pub struct Running {
    line: String,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Captured,
    stderr: Captured,
    started: Instant,
    until: Instant,
}

impl<'a> Cli<'a> {
    pub(crate) fn new(state: &'a State, program: &Path) -> Self {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
        command.env("HOME", state.home()).env("NO_COLOR", "1").current_dir(state.workdir());
        command.env(protocol::env::STATE_DIR, state.dir());
        command.env(protocol::env::ENGINE_CONFIG, state.engine_config());
        if let Some(user) = state.user() {
            command.uid(user.uid).gid(user.gid);
        }
        Self { state, command, stdin: Input::Empty }
    }

    /// The command alone, for who wants to hold its streams.
    pub(crate) fn into_command(self) -> Command {
        self.command
    }

    /// Whom the command runs as; root if it is nobody.
    pub(crate) fn user(&self) -> Option<&User> {
        self.state.user()
    }

    /// Time left for the test.
    pub(crate) fn remaining(&self) -> Duration {
        self.state.remaining()
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<S: AsRef<str>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Takes an environment variable away.
    #[must_use]
    pub fn without_env(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Runs the command as root also on a state folder of somebody else.
    #[must_use]
    pub fn as_root(mut self) -> Self {
        self.command.uid(0).gid(0);
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn workdir(mut self, path: impl Into<PathBuf>) -> Self {
        self.command.current_dir(path.into());
        self
    }

    /// Gives the command this input; without it the input is empty.
    #[must_use]
    pub fn stdin(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.stdin = Input::Bytes(input.into());
        self
    }

    /// Leaves the input open, to write to it later.
    #[must_use]
    pub fn stdin_open(mut self) -> Self {
        self.stdin = Input::Open;
        self
    }

    /// Runs the command to its end.
    pub fn run(self) -> Output {
        self.spawn().wait()
    }

    /// Starts the command, in a process group of its own. Steps are shown line by line, unless the test has
    /// its own word on that: what is looked for must not depend on the end.
    pub fn spawn(mut self) -> Running {
        if self.command.get_envs().all(|(name, _)| name != protocol::env::PROGRESS) {
            self.command.env(protocol::env::PROGRESS, "plain");
        }
        let line = format!("{:?}", self.command);
        let input = match self.stdin {
            Input::Empty => Stdio::null(),
            Input::Bytes(_) | Input::Open => Stdio::piped(),
        };
        self.command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = self.command.spawn().unwrap_or_else(|e| panic!("cannot start {line}: {e}"));
        let mut stdin = child.stdin.take();
        if let Input::Bytes(input) = self.stdin
            && let Some(mut pipe) = stdin.take()
        {
            // The command may end without reading: that is no error of the test.
            std::thread::spawn(move || pipe.write_all(&input));
        }
        let stdout = Captured::read(child.stdout.take().expect("standard output is a pipe"));
        let stderr = Captured::read(child.stderr.take().expect("standard error is a pipe"));
        let started = Instant::now();
        let until = started + self.state.remaining();
        Running { line, child, stdin, stdout, stderr, started, until }
    }
}

impl Running {
    /// Process number.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Sends a signal to the command alone.
    pub fn signal(&self, number: rustix::process::Signal) {
        signal(self.pid(), number);
    }

    /// Sends a signal to the whole process group, as a terminal does.
    pub fn signal_group(&self, number: rustix::process::Signal) {
        if let Some(group) = rustix::process::Pid::from_raw(self.pid()) {
            let _ = rustix::process::kill_process_group(group, number);
        }
    }

    /// Writes to the input, which must have been left open.
    pub fn write(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("the input was left open");
        stdin.write_all(bytes).expect("the command reads its input");
    }

    /// Ends the input.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Standard output so far.
    pub fn stdout_so_far(&self) -> String {
        self.stdout.text()
    }

    /// Standard error so far.
    pub fn stderr_so_far(&self) -> String {
        self.stderr.text()
    }

    /// Waits until the output or the talk holds a text.
    pub fn wait_for(&mut self, text: &str) {
        let until = self.until;
        wait_until(until.saturating_duration_since(Instant::now()), || {
            // What it wrote just before its end may still be on its way to us.
            let ended = self.child.try_wait().is_ok_and(|status| status.is_some())
                && self.stdout.is_whole()
                && self.stderr.is_whole();
            self.stdout.text().contains(text) || self.stderr.text().contains(text) || ended
        });
        let (stdout, stderr) = (self.stdout.text(), self.stderr.text());
        let found = stdout.contains(text) || stderr.contains(text);
        assert!(found, "{}: no `{text}` in:\n{stdout}\n{stderr}", self.line);
    }

    /// Waits for the end; past the deadline the process group is killed and the test fails.
    pub fn wait(mut self) -> Output {
        let left = self.until.saturating_duration_since(Instant::now());
        let ended = wait_until(left, || self.child.try_wait().is_ok_and(|status| status.is_some()));
        if !ended {
            self.signal_group(rustix::process::Signal::KILL);
            let _ = self.child.wait();
            let (stdout, stderr) = (self.stdout.text(), self.stderr.text());
            panic!("{} did not end in time:\n{stdout}\n{stderr}", self.line);
        }
        let status = self.child.wait().expect("an ended child can be waited for");
        let elapsed = self.started.elapsed();
        Output {
            stdout: self.stdout.finish(&self.line),
            stderr: self.stderr.finish(&self.line),
            line: std::mem::take(&mut self.line),
            status,
            elapsed,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            self.signal_group(rustix::process::Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

impl Output {
    /// The standard output of a command that must have succeeded.
    #[track_caller]
    pub fn ok(&self) -> &str {
        assert!(self.status.success(), "{self:#?}");
        &self.stdout
    }

    /// Checks that the command failed with this code, and gives what it said.
    #[track_caller]
    pub fn fails(&self, code: i32) -> &str {
        assert_eq!(self.status.code(), Some(code), "{self:#?}");
        &self.stderr
    }

    /// Exit code, or 128 + n after signal n.
    pub fn code(&self) -> i32 {
        let status = self.status;
        status.code().or_else(|| status.signal().map(|n| 128 + n)).expect("one of the two")
    }
}

/// A stream that is read in the background.
struct Captured {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Captured {
    fn read(mut stream: impl std::io::Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let into = bytes.clone();
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 64 << 10];
            while let Ok(count @ 1..) = stream.by_ref().read(&mut buffer) {
                into.lock().expect("no reader panics").extend_from_slice(&buffer[..count]);
            }
        });
        Self { bytes, reader }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().expect("no reader panics")).into_owned()
    }

    /// Whether nothing more can come.
    fn is_whole(&self) -> bool {
        self.reader.is_finished()
    }

    /// All of it, after the command ended. Somebody else may hold the stream open: an engine that
    /// was started in the background must not.
    fn finish(&self, line: &str) -> String {
        let ended = wait_until(deadline(), || self.is_whole());
        assert!(ended, "{line} has ended, yet somebody holds its output open");
        self.text()
    }
}

/// The process of a running command.
impl From<&Running> for Process {
    fn from(running: &Running) -> Self {
        Process::of(running.pid()).expect("a child that was not waited for has an entry")
    }
}
