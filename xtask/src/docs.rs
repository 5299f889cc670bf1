//! `cargo xtask docs`: the generated pages of `docs/reference`.
//!
//! The program `reference` writes them from what the crates themselves say: the help of each
//! command, the keys of the engine's configuration, the names of the environment variables.

use crate::command::run as show;
use crate::packages::{Purpose, require};
use crate::project::Project;
use crate::selection::build;
use anyhow::{Result, bail};
use std::process::Command;

/// Writes the pages, compares them, or lists what the API does not do yet.
pub(crate) fn run(project: &Project, words: &[&str]) -> Result<()> {
    let mode = match words {
        [] => "write",
        ["--check"] => "check",
        ["--missing"] => "missing",
        _ => bail!("usage: cargo xtask docs [--check|--missing]"),
    };
    require(Purpose::Build)?;
    build(project)?;
    let mut command = Command::new(project.program("reference"));
    command.arg(mode).arg(project.program("ci-tool")).arg(project.root.join("docs/reference"));
    show(&mut command)
}
