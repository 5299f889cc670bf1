//! What engine, zygote and containers tell each other.
//!
//! Engine to zygote, on the zygote's socket, one packet each:
//!
//! ```text
//! byte 0: 0 = settings     the body is a `Setup`; descriptors: mounts of hosts, hostname, [resolv.conf],
//!                          [the engine's network namespace]
//!         1 = run          the body is a `Run`
//!         2 = run          the body is in a file, which is the last descriptor
//! byte 1: 0 = no control group, 1 = files to write to, 2 = a directory to be cloned into
//! byte 2: 0 = no network, 1 = the host's, 2 = the engine's, 3 = all namespaces of another container
//! byte 3: 1 = the command may do anything in its namespaces, 2 = others know its network namespace
//! rest:   the body, in postcard
//! ```
//!
//! Of a run beside another container, the descriptor of that one's process 1 is in the place of the root.
//! Descriptors of a run, in this order: status socket, [control group: `Run::group_files` of them],
//! standard output, standard error, [standard input], root, one for each `MountKind::Descriptor` and
//! `MountKind::Device`, [body].
//!
//! Back to the engine, each run has a socket of its own, on which the zygote and the container send [`Status`]
//! packets. A run that is held waits there for one packet of the engine before its command begins. The last
//! status is always [`Status::Exited`]; an end without it means that the zygote died.
//! A container that waits for its run tells the zygote about its network namespace, on the socket on which
//! it will get the run: one byte, and the descriptors of a `Line`.
//! The zygote reads no more of a run than the first four bytes, so the environment of one run never
//! lies around in the memory that the next one is cloned from.

use crate::Stream;
use crate::network::Outlet;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// Byte 0 of a packet with [`Setup`].
pub(crate) const SETTINGS: u8 = 0;
/// Byte 0 of a packet with [`Run`].
pub(crate) const RUN: u8 = 1;
/// Byte 0 of a packet whose [`Run`] is in a file.
pub(crate) const RUN_IN_FILE: u8 = 2;

/// Byte 1: no control group.
pub(crate) const GROUP_NONE: u8 = 0;
/// Byte 1: the container enters version 1 groups by writing to files.
pub(crate) const GROUP_FILES: u8 = 1;
/// Byte 1: the container is cloned into a version 2 group.
pub(crate) const GROUP_DIRECTORY: u8 = 2;

/// Byte 2: a network namespace with the loopback alone.
pub(crate) const NETWORK_NONE: u8 = 0;
/// Byte 2: the host's network namespace.
pub(crate) const NETWORK_HOST: u8 = 1;
/// Byte 2: a network namespace that is plugged into the engine's.
pub(crate) const NETWORK_BRIDGE: u8 = 2;

/// Byte 2: the namespaces of another container.
pub(crate) const NETWORK_BESIDE: u8 = 3;

/// Byte 3: what commands usually may do.
pub(crate) const POWERS_USUAL: u8 = 0;
/// Byte 3: every capability.
pub(crate) const POWERS_ALL: u8 = 1;

/// Byte 3: the address is somebody's in a party, so nobody else gets it right after.
pub(crate) const POWERS_KNOWN: u8 = 2;

/// Bytes before the body.
pub(crate) const HEAD: usize = 4;
/// Longest packet; longer bodies go into a file. Well below the default send buffer of a socket.
pub(crate) const MAX_PACKET: usize = 64 * 1024;

/// Longest status packet; texts in it are cut to [`SHOWN`] characters.
pub(crate) const MAX_STATUS: usize = 2 * 1024;

/// What the zygote must know before the first run.
#[derive(Serialize, Deserialize)]
pub(crate) struct Setup {
    /// Byte 2 of most runs.
    pub(crate) network: u8,
    /// What containers are plugged into, if there is anything; its namespace is the last descriptor.
    pub(crate) outlet: Option<Outlet>,
    /// The program that makes containers, if it is not us.
    pub(crate) runtime: Option<Runtime>,
}

/// A program that makes containers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Runtime {
    /// Absolute path.
    pub(crate) program: String,
    /// A directory of our own that everything is mounted in.
    pub(crate) place: String,
    /// How it wants to be asked.
    pub(crate) dialect: Dialect,
}

/// What programs that make containers differ in: how they are kept from control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Dialect {
    /// By a flag.
    Crun,
    /// By a hierarchy that it cannot write to.
    Runc,
}

/// The zygote's answer to [`Setup`], on its own socket: an error in words, or nothing.
#[derive(Serialize, Deserialize)]
pub(crate) struct Ready {
    pub(crate) error: Option<String>,
}

/// One command, with descriptors left out.
#[derive(Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) args: Vec<String>,
    /// `NAME=value` each.
    pub(crate) env: Vec<String>,
    pub(crate) workdir: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) groups: Vec<u32>,
    pub(crate) init: bool,
    pub(crate) all_capabilities: bool,
    pub(crate) stdin: Input,
    pub(crate) redirect_stdout: Option<String>,
    pub(crate) redirect_stderr: Option<String>,
    /// Parents before what lies in them.
    pub(crate) mounts: Vec<MountEntry>,
    pub(crate) group_files: u8,
    /// Whether there is anybody to ask for names.
    pub(crate) resolves: bool,
    /// Whether the command begins only when the engine says so.
    pub(crate) held: bool,
    /// Whether somebody wants to hear [`Status::Begun`].
    pub(crate) led: bool,
    /// Whether it runs in the namespaces of another container.
    pub(crate) beside: bool,
    /// Columns and rows of the terminal that it runs on, if it runs on one.
    pub(crate) terminal: Option<(u16, u16)>,
    /// Variables that get the number of a port that the engine answers; none opens none.
    pub(crate) endpoint: Vec<String>,
}

/// Where standard input comes from.
#[derive(Serialize, Deserialize)]
pub(crate) enum Input {
    /// The null device.
    Null,
    /// A pipe, which is among the descriptors.
    Pipe,
    /// A file of the container.
    File(String),
}

/// One mount in the root.
#[derive(Serialize, Deserialize)]
pub(crate) struct MountEntry {
    pub(crate) target: String,
    pub(crate) kind: MountKind,
    pub(crate) read_only: bool,
}

/// What is mounted.
#[derive(PartialEq, Serialize, Deserialize)]
pub(crate) enum MountKind {
    /// The next descriptor.
    Descriptor,
    /// The next descriptor, a device node that may be used.
    Device,
    /// A new file system in memory of at most that many bytes.
    Tmpfs(Option<u64>),
}

/// What the zygote and a container say about a run.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Status {
    /// The container's process 1 exists; its pidfd comes along. Where it is in the engine's network.
    Started { place: Option<u32> },
    /// The files for redirected streams are open and come along, standard output first.
    Files,
    /// The controlling end of the terminal that the command runs on comes along.
    Terminal,
    /// A port is open; the listening socket and the container's root come along.
    Endpoint,
    /// The container is whole and the command begins.
    Begun,
    /// The command did not begin.
    Failed(Failure),
    /// Every process of the container is gone.
    Exited { code: i32, user_micros: u64, system_micros: u64, max_resident: u64 },
}

/// Why a command did not begin.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) stage: Stage,
    /// What the kernel said; 0 where words say more.
    pub(crate) errno: i32,
}

/// What was being done when it failed.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Stage {
    /// Making the container; which step.
    Setup(String),
    /// Mounting something at this path.
    Mount(String),
    /// Entering the working directory.
    Workdir,
    /// Opening the file for the standard input; why, in words.
    Stdin(String),
    /// Opening the file for a redirected stream; why, in words.
    Redirect(Channel, String),
    /// Executing the program: exit code, why in words.
    Program(i32, String),
    /// What a program that makes containers did not manage, in its words.
    Runtime(String),
}

/// [`Stream`] in a form that can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Channel {
    Stdout,
    Stderr,
}

impl From<Channel> for Stream {
    fn from(channel: Channel) -> Self {
        match channel {
            Channel::Stdout => Stream::Stdout,
            Channel::Stderr => Stream::Stderr,
        }
    }
}

/// Longest part of a given text that is repeated in a failure.
pub(crate) const SHOWN: usize = 200;

/// The beginning of a text that may be megabytes long, where a status packet and an error may not.
pub(crate) fn shorten(text: &str) -> String {
    let shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() { shown + "..." } else { shown }
}

impl Failure {
    /// A failed step of making the container.
    pub(crate) fn setup(step: &str) -> impl Fn(Errno) -> Failure {
        move |errno| Failure { stage: Stage::Setup(step.to_owned()), errno: errno.raw_os_error() }
    }

    /// Something could not be mounted at `target`.
    pub(crate) fn mount(target: &str) -> impl Fn(Errno) -> Failure {
        move |errno| Failure { stage: Stage::Mount(shorten(target)), errno: errno.raw_os_error() }
    }

    /// A failure that words tell best.
    pub(crate) fn told(stage: Stage) -> Failure {
        Failure { stage, errno: 0 }
    }
}
