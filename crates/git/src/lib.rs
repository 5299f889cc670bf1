//! The `git` program, hardened: what it is asked, what it answers, and mirrors of remotes.
//!
//! Start at [`Git`], which knows how a command is run and with which surroundings: no configuration but ours, no hooks, no
//! prompts, only the protocols that a command needs. [`Url`] is where a repository is, [`Access`] with which credentials,
//! [`Refs`] what it has. A [`Mirror`] is a bare repository on disk that commits are fetched into, and [`checkout`] writes
//! the files of one. Who starts processes is not decided here: see [`Run`].

mod access;
pub mod checkout;
mod commit;
mod date;
mod error;
pub mod history;
mod mirror;
mod modules;
mod refs;
mod run;
mod url;
mod version;
pub mod work_tree;

pub use access::{Access, Agent, HttpAccess};
pub use commit::{Commit, Person};
pub use error::Error;
pub use mirror::{Depth, Mirror};
pub use modules::{Module, modules};
pub use refs::{Head, Named, Refs, is_commit_id};
pub use run::{Command, Git, Heard, Output, Run, RunError};
pub use url::{Scheme, Spelled, Url, UrlError};
pub use version::Version;
