//! Starting one's own engine, once, however many clients want it at the same time.
//!
//! The engine is this same program in its hidden role `engine serve`. It binds its socket first and
//! opens its store after, so a client that can connect waits for the greeting and need not poll. A
//! lock file keeps ten clients from starting ten engines; the engine has a lock of its own, which
//! settles it for good.

use crate::Error;
use crate::address::Address;
use crate::connect::{Connection, dial};
use crate::environment::ClientEnvironment;
use crate::route::Route;
use config::paths::StateFiles;
use protocol::env;
use protocol::session::{CANNOT_RUN, HINT, NEWER_STATE_EXIT, Purpose, UNFIT_EXIT, Welcome};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a started engine may take to listen. A predecessor may still be ending within its grace.
const START_LIMIT: Duration = Duration::from_secs(60);
/// How often an engine is started that ends in order before it has answered: it was idle for too long on a busy
/// machine, or somebody told it to end.
const STARTS: u32 = 5;
/// How often the socket of a starting engine is tried: cold start is a figure users feel.
const POLL: Duration = Duration::from_millis(1);
/// How the C library of the engine handles memory. Left to itself it keeps what large requests have
/// freed, once for each of many threads, and each thread keeps a few pieces of every size, which hold whole pages
/// back; an engine is to end where it began.
const MEMORY: (&str, &str) = (
    "GLIBC_TUNABLES",
    "glibc.malloc.mmap_threshold=1048576:glibc.malloc.trim_threshold=1048576:glibc.malloc.arena_max=2:\
     glibc.malloc.tcache_count=0",
);
/// How many lines of the log go into an error.
const LOG_LINES: usize = 12;

/// The engine that the environment means.
pub(crate) fn address(environment: &ClientEnvironment) -> Result<Address, Error> {
    if !environment.engine.is_empty() {
        return Address::parse(&environment.engine, &environment.certificates);
    }
    let state = environment.variables.state_dir(&environment.workdir)?;
    Ok(Address::Own(StateFiles::new(state)))
}

/// Dials one's own engine and starts it when it does not run.
pub(crate) async fn dial_or_start(
    environment: &ClientEnvironment,
    files: &StateFiles,
    purpose: Purpose,
) -> Result<(Connection, Welcome), Error> {
    let route = Route::Socket(files.socket());
    let attempt = || {
        let (route, purpose) = (route.clone(), purpose.clone());
        async move { dial(&route, purpose).await }
    };
    attempt_or_start(environment, files, attempt).await
}

/// Makes an attempt at one's own engine, which is started when the attempt finds none.
pub(crate) async fn attempt_or_start<T, F: Future<Output = Result<T, Error>>>(
    environment: &ClientEnvironment,
    files: &StateFiles,
    attempt: impl Fn() -> F,
) -> Result<T, Error> {
    match attempt().await {
        Err(Error::Absent { .. } | Error::Gone(_)) => {}
        settled => return settled,
    }
    create_state_dir(files.dir())?;
    let _lock = lock_start(&files.start_lock()).await?;
    // Another client may have started it while we waited for the lock.
    match attempt().await {
        Err(Error::Absent { .. } | Error::Gone(_)) => {}
        settled => return settled,
    }
    for _ in 1..STARTS {
        let mut starting = Starting::spawn(environment, files)?;
        match starting.reach(&attempt).await {
            Err(Error::Died { .. }) if starting.ended_in_order() => {}
            settled => return settled,
        }
    }
    Starting::spawn(environment, files)?.reach(attempt).await
}

fn create_state_dir(dir: &Path) -> Result<(), Error> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|source| Error::State { path: dir.to_owned(), source })
}

/// Takes the lock under which engines are started. It is tried, not waited for in the kernel: a wait
/// there could not be cancelled. The kernel drops the lock with the file, also after a crash.
async fn lock_start(path: &Path) -> Result<File, Error> {
    let fail = |source| Error::State { path: path.to_owned(), source };
    let file = private_file(path).map_err(fail)?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(std::fs::TryLockError::WouldBlock) => tokio::time::sleep(POLL * 2).await,
            Err(std::fs::TryLockError::Error(source)) => return Err(fail(source)),
        }
    }
}

fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).read(true).mode(0o600).open(path)
}

/// An engine that was started and has not answered yet.
struct Starting {
    child: Child,
    began: Instant,
    state_dir: PathBuf,
    log_file: PathBuf,
    log_start: u64,
}

impl Starting {
    fn spawn(environment: &ClientEnvironment, files: &StateFiles) -> Result<Self, Error> {
        let log_file = files.log();
        let fail = |source| Error::State { path: log_file.clone(), source };
        let log = private_file(&log_file).map_err(fail)?;
        let log_start = log.metadata().map_err(fail)?.len();
        let mut command = command(environment, files);
        // A working directory would be kept from being unmounted or removed.
        command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let program = environment.program.clone();
        let child = command.spawn().map_err(|source| Error::Spawn { program, source })?;
        let state_dir = files.dir().to_owned();
        Ok(Self { child, began: Instant::now(), state_dir, log_file, log_start })
    }

    /// Makes attempts until the engine answers or has ended.
    async fn reach<T, F: Future<Output = Result<T, Error>>>(
        &mut self,
        attempt: impl Fn() -> F,
    ) -> Result<T, Error> {
        loop {
            // Looked at before the dial: an engine that found another one running ends at once, and
            // the other one answers.
            let ended = self.child.try_wait().ok().flatten();
            match attempt().await {
                Err(Error::Absent { .. } | Error::Gone(_)) => {}
                settled => return settled,
            }
            if let Some(status) = ended {
                if status.code() == Some(NEWER_STATE_EXIT) {
                    return Err(Error::NewerState(self.state_dir.clone()));
                }
                let log = self.log();
                if status.code() == Some(UNFIT_EXIT)
                    && let Some(unfit) = unfit(&log)
                {
                    return Err(unfit);
                }
                // An engine that finds no space finds none to write its reason to either.
                if log.is_empty() && is_full(&self.state_dir) {
                    return Err(Error::DiskFull(self.state_dir.clone()));
                }
                return Err(Error::Died {
                    status: status.to_string(),
                    log,
                    log_file: self.log_file.clone(),
                });
            }
            if self.began.elapsed() > START_LIMIT {
                let (seconds, log) = (START_LIMIT.as_secs(), self.log());
                let log_file = self.log_file.clone();
                return Err(Error::Slow { seconds, log, log_file });
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Whether it has ended and nothing was wrong.
    fn ended_in_order(&mut self) -> bool {
        self.child.try_wait().ok().flatten().is_some_and(|status| status.success())
    }

    /// The last lines that were logged since the start.
    fn log(&self) -> Vec<String> {
        let mut text = vec![];
        let read = File::open(&self.log_file).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.log_start))?;
            file.take(64 << 10).read_to_end(&mut text)
        });
        if let Err(error) = read {
            return vec![format!("(the log cannot be read: {error})")];
        }
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].iter().map(|l| (*l).to_owned()).collect()
    }
}

/// What an engine says that cannot run on this machine, from the end of its log.
fn unfit(log: &[String]) -> Option<Error> {
    let [.., reason, hint] = log else { return None };
    let reason = reason.strip_prefix(CANNOT_RUN)?.to_owned();
    let hint = hint.strip_prefix(HINT)?.to_owned();
    Some(Error::Unfit { reason, hint })
}

fn is_full(dir: &Path) -> bool {
    rustix::fs::statvfs(dir).is_ok_and(|disk| disk.f_bavail == 0)
}

/// The command line of the engine's hidden role.
fn command(environment: &ClientEnvironment, files: &StateFiles) -> Command {
    let mut command = Command::new(&environment.program);
    command.args(["engine", "serve", "--state-dir"]).arg(files.dir());
    // A settings file that exists or was asked for is passed on, so that the engine need not guess.
    if let Ok(settings) = environment.variables.engine_config(&environment.workdir)
        && (settings.required || settings.path.exists())
    {
        command.arg("--config").arg(settings.path);
    }
    if !environment.log.is_empty() {
        command.arg("--log").arg(&environment.log);
    }
    command.env(MEMORY.0, MEMORY.1);
    // The engine outlives the session that its starter may be part of.
    for name in
        [env::SESSION_PORT, env::SESSION_TOKEN, env::COMPAT_SESSION_PORT, env::COMPAT_SESSION_TOKEN]
    {
        command.env_remove(name);
    }
    command
}
