//! Runs one command in isolation over mounts that somebody else made.
//!
//! Start reading at [`Sandbox::run`] (the engine's side: pipes, waiting, killing), then `zygote`
//! (the small process that clones containers) and `container` (what happens inside a clone before
//! the command begins). [`Spec`] says what to run, [`Settings`] what holds for every run.
//!
//! The engine is a threaded program and must never fork: a forked copy of one of its threads can hang
//! on a lock that another thread held. So [`Zygote::start`] makes a process of one thread before
//! any thread exists, and that process does all the cloning. Whatever lives below the zygote
//! dies with it, because the zygote is process 1 of a pid namespace, and the zygote dies with the engine.
//!
//! Programs of the host that the engine itself needs are run by `errands`, a second such process.
//!
//! Out of scope: how root file systems are made (`store`), what a command means (`api`).

mod admission;
mod capabilities;
mod cgroup;
mod container;
mod driver;
mod endpoint;
mod errands;
mod error;
mod fuse;
mod gpus;
mod hosts;
mod launch;
mod memory;
pub mod network;
mod packet;
pub mod rootless;
mod sandbox;
mod seccomp;
mod spec;
mod streams;
mod sys;
mod terminal;
mod wire;
mod zygote;

pub use cgroup::sweep;
pub use endpoint::{Endpoint, Opened};
pub use errands::{Done, Errand, Errands, Heard, errands_main};
pub use error::{Error, NO_PROGRAM};
pub use fuse::{answered_mount, is_answered};
pub use gpus::{Gpu, gpus};
pub use memory::{MEMORY_ENTRY, memory_file, memory_place, memory_socket};
pub use sandbox::Sandbox;
pub use spec::{
    Begun, Company, Exit, Filter, Lead, Limits, MountPoint, Network, Oom, Output, Process, Root,
    Runtime, Settings, Source, Spec, Stdin, Stream, Usage, User, Wish, targets,
};
pub use terminal::{Terminal, TerminalInput, TerminalSize};
pub use zygote::{Zygote, zygote_main};
