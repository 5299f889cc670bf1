//! What to run and what came of it, as plain data.
//!
//! Nothing here does anything: a [`Spec`] is consumed by [`crate::Sandbox::run`], which answers with
//! an [`Exit`].

use crate::network::Party;
use crate::{Endpoint, Terminal, wire};
use std::any::Any;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use store::Mount;
use tokio::sync::{oneshot, watch};

/// What holds for every run of one sandbox.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long a cancelled command may take to end after SIGTERM before everything is killed.
    pub grace: Duration,
    /// Name of the control group below the engine's own that holds one group for each run. It must
    /// be this engine's alone, because [`crate::sweep`] removes whatever bears it.
    pub cgroup_name: String,
    /// Limits of each run.
    pub limits: Limits,
    /// What a command can reach when its [`Spec`] does not say.
    pub network: Network,
    /// Directory for the `hosts`, `hostname` and `resolv.conf` that containers see; made if missing.
    pub hosts_files: PathBuf,
    /// The program that makes containers instead of us; none is us.
    pub runtime: Option<Runtime>,
}

/// A program that makes containers from bundles, with the words and flags of `crun` or, if its name has that in it,
/// of `runc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runtime {
    /// Absolute path.
    pub program: PathBuf,
    /// An empty directory of our own; made if missing. Bundles are in memory, mounted there.
    pub place: PathBuf,
}

/// Limits of one run; none means that the engine's own limits are the only ones.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Bytes of memory, swap included.
    pub memory: Option<u64>,
    /// Processes and threads, process 1 included.
    pub pids: Option<u64>,
    /// Processor time in units of one processor; a fraction is fine.
    pub cpus: Option<f64>,
}

impl Limits {
    /// Whether a control group is needed at all.
    pub(crate) fn any(&self) -> bool {
        self.memory.is_some() || self.pids.is_some() || self.cpus.is_some()
    }
}

/// What a command can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// Only itself: a network namespace of its own with the loopback up.
    None,
    /// Whatever the host reaches: the host's network namespace.
    Host,
    /// What the host reaches but the host itself: a network namespace that is plugged into a
    /// [`crate::network::Bridge`].
    Bridge,
}

impl Network {
    /// What stands for it in a request.
    pub(crate) fn byte(self) -> u8 {
        match self {
            Network::None => wire::NETWORK_NONE,
            Network::Host => wire::NETWORK_HOST,
            Network::Bridge => wire::NETWORK_BRIDGE,
        }
    }
}

/// One command and the world it sees.
pub struct Spec {
    /// What it sees as the root file system.
    pub root: Root,
    /// What is mounted in the root, in any order: parents are mounted before what lies in them.
    pub mounts: Vec<MountPoint>,
    /// Program and arguments. A program without a slash is looked up in `PATH` of `env`, inside.
    pub args: Vec<String>,
    /// The whole environment, exactly.
    pub env: Vec<(String, String)>,
    /// Absolute path of the directory the command begins in.
    pub workdir: String,
    /// Whom the command runs as.
    pub user: User,
    /// Whether process 1 is ours and the command its child; otherwise the command is process 1.
    pub init: bool,
    /// Whether the command keeps every capability the engine has, unfiltered and unmasked.
    pub all_capabilities: bool,
    /// What the command can reach; none is what holds for every run.
    pub network: Option<Network>,
    /// What the command reads.
    pub stdin: Stdin,
    /// Path in the container of a regular file that gets what is written to the standard output.
    pub redirect_stdout: Option<String>,
    /// The same for the standard error.
    pub redirect_stderr: Option<String>,
    /// What the output passes through before anybody gets it, redirected streams included.
    pub filter: Option<Box<dyn Filter>>,
    /// What the command runs on instead of its three streams, which are not used then.
    pub terminal: Option<Terminal>,
    /// A port on the loopback that the engine answers, if there is to be one.
    pub endpoint: Option<Endpoint>,
    /// Whose services it reaches on the engine's network; none reaches nobody's.
    pub company: Option<Company>,
    /// Who leads it, if it runs in the background.
    pub lead: Option<Lead>,
    /// Held until the last process is gone, then dropped.
    pub keep: Box<dyn Any + Send>,
}

impl Spec {
    /// A command in a root as most run: as root, with an init and the network of every run, from `/`, with nothing to
    /// read, an empty environment and nothing mounted.
    pub fn new(root: Root, args: Vec<String>) -> Self {
        Self {
            root,
            mounts: Vec::new(),
            args,
            env: Vec::new(),
            workdir: "/".to_owned(),
            user: User::default(),
            init: true,
            all_capabilities: false,
            network: None,
            stdin: Stdin::Empty,
            redirect_stdout: None,
            redirect_stderr: None,
            filter: None,
            terminal: None,
            endpoint: None,
            company: None,
            lead: None,
            keep: Box::new(()),
        }
    }
}

/// What a command sees as its root.
pub enum Root {
    /// A file system that is not attached anywhere.
    Mount(Mount),
    /// All that another container sees: it runs beside that one's command, in the same namespaces, without
    /// mounts of its own.
    Of(Process),
}

/// A running container. Clones are the same.
#[derive(Clone, Debug)]
pub struct Process(pub(crate) Arc<OwnedFd>);

/// Whose services a command reaches.
#[derive(Clone, Debug)]
pub struct Company {
    /// The services of this party.
    pub party: Party,
    /// Names that this command alone knows.
    pub aliases: Vec<(String, Ipv4Addr)>,
    /// Whether it belongs to the party even if nothing is offered there yet.
    pub always: bool,
}

impl Company {
    /// Whether a command has to become a member before it begins.
    pub(crate) fn matters(&self) -> bool {
        self.always || self.party.offers_anything()
    }
}

/// How a command in the background is led. It waits for nobody's leave to run.
pub struct Lead {
    /// Hears that it is about to begin.
    pub begun: oneshot::Sender<Begun>,
    /// What becomes of it. A wish is never taken back.
    pub wish: watch::Receiver<Wish>,
}

/// A command that is about to begin.
#[derive(Clone, Debug)]
pub struct Begun {
    /// Its address in the engine's network, if it is in that.
    pub address: Option<Ipv4Addr>,
    /// The container.
    pub process: Process,
}

/// What becomes of a command in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub enum Wish {
    /// It goes on.
    Run,
    /// It gets SIGTERM, and is killed when the grace is over.
    End,
    /// It is killed.
    Kill,
}

/// Changes output on its way. It may hold back what it needs to see the end of.
pub trait Filter: Send {
    /// Takes a piece of a stream and adds to `passed` what goes on.
    fn pass(&mut self, stream: Stream, piece: &[u8], passed: &mut Vec<u8>);
    /// The stream has ended: adds what was held back.
    fn end(&mut self, stream: Stream, passed: &mut Vec<u8>);
}

/// One mount in the root.
pub struct MountPoint {
    /// Absolute path in the container; links in it are followed inside the root.
    pub target: String,
    /// What is mounted there.
    pub source: Source,
    /// Whether writing is refused.
    pub read_only: bool,
}

/// What is mounted.
pub enum Source {
    /// A directory or a file.
    Mount(Mount),
    /// A device node, which commands may use.
    Device(Mount),
    /// An empty file system in memory.
    Tmpfs {
        /// Most bytes it may hold; none leaves the kernel's default, half of the memory.
        size: Option<u64>,
    },
}

/// Whom a command runs as.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Further groups.
    pub groups: Vec<u32>,
}

/// What a command reads from its standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stdin {
    /// Nothing.
    Empty,
    /// These bytes.
    Bytes(Vec<u8>),
    /// A file of the container, by a path that may be relative to the working directory.
    File(String),
}

/// Which stream some output came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Gets all output as it comes, on the runtime's threads: it must not block for long.
pub type Output = Box<dyn FnMut(Stream, &[u8]) + Send>;

/// How a command ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Exit {
    /// The exit code; 128 plus the number of the signal that ended the command.
    pub code: i32,
    /// Present when the kernel killed something in the container for want of memory.
    pub oom: Option<Oom>,
    /// What the run used.
    pub usage: Usage,
}

/// Memory figures of a run that went over its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oom {
    /// The limit in bytes.
    pub limit: u64,
    /// The most that was in use at once, in bytes; none when the kernel does not say.
    pub peak: Option<u64>,
}

/// What a run used, all its processes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time in user mode.
    pub user: Duration,
    /// Processor time in the kernel.
    pub system: Duration,
    /// Largest resident memory of any one process, in bytes.
    pub max_resident: u64,
}

/// What every root must have so that [`crate::Sandbox::run`] can mount there: path, and whether it is a
/// directory.
pub fn targets(settings: &Settings) -> Vec<(&'static str, bool)> {
    let mut targets = vec![
        ("/proc", true),
        ("/dev", true),
        ("/sys", true),
        ("/etc/hosts", false),
        ("/etc/hostname", false),
    ];
    if settings.network != Network::None {
        targets.push(("/etc/resolv.conf", false));
    }
    targets
}
