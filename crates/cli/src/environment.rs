//! [`Environment`]: everything the command line takes from its surroundings, as plain values.
//!
//! `main.rs` reads the environment and fills this in; nothing below it does.

use client::ClientEnvironment;
use protocol::env;
use std::ffi::OsString;
use std::path::PathBuf;

/// What the command line knows of its surroundings.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// What the client needs.
    pub client: ClientEnvironment,
    /// Progress format when `--progress` is `auto`.
    pub progress: String,
    /// Default of `--silent`.
    pub silent: String,
    /// Default of `--quiet`.
    pub quiet: String,
    /// How often a report gives a sign of life.
    pub report_heartbeat: String,
    /// Working directory when `--workdir` is not given.
    pub workdir: String,
    /// Which command set's form wins where the two differ.
    pub command_set: String,
    /// Whether colours are unwanted.
    pub no_color: bool,
    /// Whether the terminal, if there is one, can only take lines.
    pub dumb_terminal: bool,
    /// What this binary was built from.
    pub build: Build,
}

/// What a binary was built from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Build {
    /// The commit, where the build was told.
    pub commit: Option<&'static str>,
    /// Whether there were changes on top of it.
    pub dirty: bool,
}

impl Environment {
    /// Takes what it needs from `lookup`, which gives the value of an environment variable.
    pub fn from_lookup(
        lookup: &dyn Fn(&str) -> Option<OsString>,
        program: PathBuf,
        current_dir: PathBuf,
        build: Build,
    ) -> Self {
        let text = |name: &str| {
            lookup(name).map(|value| value.to_string_lossy().into_owned()).unwrap_or_default()
        };
        Self {
            client: ClientEnvironment::from_lookup(lookup, program, current_dir),
            progress: text(env::PROGRESS),
            silent: text(env::SILENT),
            quiet: text(env::QUIET),
            report_heartbeat: text(env::REPORT_HEARTBEAT),
            workdir: text(env::WORKDIR),
            command_set: text(env::COMMAND_SET),
            no_color: lookup("NO_COLOR").is_some_and(|value| !value.is_empty()),
            dumb_terminal: lookup("TERM").is_some_and(|value| value == "dumb"),
            build,
        }
    }

    /// Whether the older command set's form wins where the two differ.
    pub(crate) fn is_legacy(&self) -> bool {
        self.command_set == "legacy"
    }
}
