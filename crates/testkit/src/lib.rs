//! What tests of the real program stand on: a ticket to run, a state folder of one's own, the
//! command line with a clean environment, and a look at what is left behind.
//!
//! Begin with [`State::new`], run commands with [`State::cli`], open a session with
//! [`Session::start`]. Dropping a [`State`] stops its engine and fails the test when a process, a
//! cgroup or a mount is left. Everything here panics on trouble: it is for tests alone.

#![expect(
    clippy::print_stderr,
    reason = "tests say seeds and leftovers where the runner shows them"
)]

mod cli;
mod disk;
pub mod git;
mod http;
pub mod leftovers;
mod machine;
pub mod process;
mod program;
mod pty;
mod random;
pub mod registry;
mod rootfs;
mod seed;
mod session;
mod ssh;
mod state;
mod surroundings;
mod ticket;
mod user;
mod web;

pub use cli::{Cli, Output, Running};
pub use disk::Disk;
pub use http::{
    Endpoint, Reply, Request, chunked_head, read_answer, send_on, whole, write_request,
};
pub use machine::Machine;
pub use program::write_program;
pub use pty::{Ended, Terminal};
pub use random::Random;
pub use rootfs::busybox;
pub use seed::make as make_seed;
pub use session::{ExecError, Session};
pub use ssh::SshServer;
pub use state::State;
pub use surroundings::{beside_tests, binary, client_program, root, rounds, tools};
pub use ticket::Ticket;
pub use user::User;
pub use web::Web;
