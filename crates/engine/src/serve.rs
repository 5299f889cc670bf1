//! [`serve`]: the life of an engine.
//!
//! The order is what matters here. The zygote is forked while there is only one thread, because it
//! must never inherit a lock that another thread holds, and before it the namespaces of a user's engine are
//! entered, which holds for one thread too. The socket is bound before the store is
//! opened, so that whoever starts an engine can already wait at the door. At the end the socket goes
//! first: who dials then finds nobody and starts a successor, which waits for our lock.

use crate::attendants::Attendants;
use crate::door::{Door, Ended, Listeners};
use crate::lock::EngineLock;
use crate::remote::Remote;
use crate::wiring::{self, Wired};
use crate::{Error, log, predecessors};
use config::engine::Engine;
use config::paths::StateFiles;
use protocol::session::{CANNOT_RUN, HINT, NEWER_STATE_EXIT, UNFIT_EXIT};
use redact::Known;
use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit};
use sandbox::rootless;
use std::fs::DirBuilder;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Longest path that fits into a unix socket address, its closing zero left out.
const MAX_SOCKET_PATH: usize = 107;
/// Threads that answer requests. Half of them may be in a short call of the file system, see
/// `api::Services`; longer work is other processes' and other threads'.
const WORKERS: usize = 4;
/// Stack of a thread. Only what is touched costs memory; long chains of calls go deep.
const STACK: usize = 8 << 20;
/// Threads for work that blocks, at most.
const BLOCKING_THREADS: usize = 64;
/// How long threads that block may take to end, after everything they work for has.
const LAST_THREADS: Duration = Duration::from_secs(2);
/// How long ending may take beyond the grace of the commands that run.
const BEYOND_GRACE: Duration = Duration::from_secs(10);

/// What an engine is started with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder with all its state.
    pub state_dir: PathBuf,
    /// Its settings file; none is all defaults. One that is named must exist.
    pub config: Option<PathBuf>,
    /// Filter of its log; none leaves it to the settings file.
    pub log: Option<String>,
    /// Whether what engines of other versions keep is left alone.
    pub leave_others: bool,
    /// This program, which is started again as the zygote.
    pub program: PathBuf,
    /// Variables that say how the network is reached, for commands in containers.
    pub proxies: Vec<(String, String)>,
}

/// Runs an engine until it is idle, asked to end or signalled, and gives the exit code of the
/// process. Must be called while the process has one thread.
pub fn serve(settings: Settings) -> i32 {
    let Err(error) = run(settings) else { return 0 };
    // Whoever started us shows the end of the log, which the standard error is part of.
    let _ = writeln!(io::stderr(), "{CANNOT_RUN}{error}");
    if let Some(hint) = error.hint() {
        let _ = writeln!(io::stderr(), "{HINT}{hint}");
        return UNFIT_EXIT;
    }
    if matches!(error, Error::NewerState { .. }) { NEWER_STATE_EXIT } else { 1 }
}

fn run(settings: Settings) -> Result<(), Error> {
    let settings = settled(settings)?;
    let config = read_config(settings.config.as_deref())?;
    leave_surroundings(&settings.state_dir)?;
    let files = StateFiles::new(&settings.state_dir);
    let _lock = EngineLock::take(&files)?;
    let secrets = Arc::new(Known::default());
    let filter = settings.log.as_deref().unwrap_or(&config.log_level);
    log::start(&files.log(), filter, secrets.clone())?;
    become_root()?;
    let store = settings.state_dir.join("store");
    let notices = predecessors::settle(&files, &store)?;
    if !settings.leave_others {
        predecessors::clear_besides(&files, &store, config.keep_duration);
    }
    let attendants = Attendants::start(&settings, &config)?;
    raise_descriptor_limit();
    let listener = listen(&files)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .thread_stack_size(STACK)
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_name("engine")
        .enable_all()
        .build()
        .map_err(|error| Error::part("runtime")(&error))?;
    let lived = runtime.block_on(live(&files, config, attendants, (listener, notices, secrets)));
    runtime.shutdown_timeout(LAST_THREADS);
    tracing::info!("engine ended");
    lived
}

/// The settings with absolute paths: the working directory is about to be left.
fn settled(settings: Settings) -> Result<Settings, Error> {
    let absolute = |path: PathBuf| std::path::absolute(&path).map_err(Error::file(path));
    Ok(Settings {
        state_dir: absolute(settings.state_dir)?,
        config: settings.config.map(absolute).transpose()?,
        log: settings.log,
        leave_others: settings.leave_others,
        program: absolute(settings.program)?,
        proxies: settings.proxies,
    })
}

/// Without root's rights, becomes root of a user namespace: all that follows is the same for everybody.
fn become_root() -> Result<(), Error> {
    if !rootless::needed() {
        return Ok(());
    }
    rootless::enter().map_err(|error| Error::unfit("user namespace", &error, error.hint()))?;
    tracing::info!("this engine runs without root, in a user namespace");
    Ok(())
}

fn read_config(path: Option<&Path>) -> Result<Engine, Error> {
    let Some(path) = path else { return Ok(Engine::default()) };
    let text = std::fs::read_to_string(path).map_err(Error::file(path))?;
    config::engine::parse(&text).map_err(|source| Error::Config { path: path.to_owned(), source })
}

/// Makes the state folder and lets go of the starter's terminal, working directory and file mode
/// mask: commands in containers would inherit the mask.
fn leave_surroundings(state_dir: &Path) -> Result<(), Error> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(state_dir)
        .map_err(Error::file(state_dir))?;
    rustix::process::umask(Mode::from_raw_mode(0o022));
    rustix::process::chdir("/").map_err(|error| Error::file("/")(error.into()))?;
    // Refused to who already leads a group, which is who was started by hand: it stays in front.
    let _ = rustix::process::setsid();
    Ok(())
}

/// Takes as many descriptors as we may have. The zygote and with it all containers keep what the
/// starter had: some programs walk through all of them.
fn raise_descriptor_limit() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = rustix::process::setrlimit(Resource::Nofile, raised) {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}

/// Binds the socket, private from its first moment. We hold the lock, so one that is there is stale.
fn listen(files: &StateFiles) -> Result<UnixListener, Error> {
    let path = files.socket();
    if path.as_os_str().len() > MAX_SOCKET_PATH {
        return Err(Error::SocketPathTooLong(path));
    }
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(Error::file(path)(error));
        }
        _ => {}
    }
    let mask = rustix::process::umask(Mode::from_raw_mode(0o177));
    let bound = UnixListener::bind(&path);
    rustix::process::umask(mask);
    let listener = bound.map_err(Error::file(&path))?;
    listener.set_nonblocking(true).map_err(Error::file(&path))?;
    Ok(listener)
}

async fn live(
    files: &StateFiles,
    config: Engine,
    attendants: Attendants,
    (listener, notices, secrets): (UnixListener, Vec<String>, Arc<Known>),
) -> Result<(), Error> {
    let mut signals = Signals::new()?;
    let listener = tokio::net::UnixListener::from_std(listener)
        .map_err(|error| Error::part("socket")(&error))?;
    let listeners = Listeners::new(listener, Remote::open(&config)?);
    let (idle_timeout, grace) = (config.idle_timeout, config.grace);
    let state_dir = files.dir().to_owned();
    let opening =
        tokio::task::spawn_blocking(move || wiring::open(&state_dir, &config, attendants));
    let wired = opening.await.map_err(|error| Error::part("engine")(&error))??;
    tracing::info!(version = protocol::VERSION, pid = std::process::id(), "engine began");
    let mut backend = wired.backend();
    backend.extensions.insert(secrets);
    let door = Door::new(backend, idle_timeout);
    door.announce(notices);
    door.announce(wired.word().into_iter().collect());
    let why = tokio::select! {
        ended = door.serve(listeners) => match ended {
            Ended::Idle => "idle",
            Ended::Asked => "asked to",
        },
        name = signals.next() => name,
    };
    tracing::info!(why, "engine ends");
    if let Err(error) = std::fs::remove_file(files.socket()) {
        tracing::warn!(%error, "the socket cannot be removed");
    }
    tokio::select! {
        () = end(&wired, grace) => {}
        name = signals.next() => tracing::warn!(signal = name, "engine ends at once"),
    }
    door.hold_farewells();
    Ok(())
}

/// Ends what runs and makes safe what was made.
async fn end(wired: &Wired, grace: Duration) {
    let shutdown = tokio::time::timeout(grace + BEYOND_GRACE, wired.sandbox().shutdown());
    if shutdown.await.is_err() {
        tracing::error!("commands do not end; they die with the engine");
    }
    let flush = wired.backend().flush;
    match tokio::task::spawn_blocking(move || flush()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, "the store cannot be flushed"),
        Err(error) => tracing::error!(%error, "the store cannot be flushed"),
    }
}

/// The signals that end an engine.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> Result<Self, Error> {
        let listen = |kind| signal(kind).map_err(|error| Error::part("signals")(&error));
        let (terminate, interrupt) =
            (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
        Ok(Self { terminate, interrupt })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
