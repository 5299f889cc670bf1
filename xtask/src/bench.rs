//! `cargo xtask bench [name]`: every figure beside its peer or floor, in the same run.

use crate::clients;
use crate::command::run as show;
use crate::image::{Image, enter};
use crate::packages::{Purpose, require};
use crate::project::Project;
use crate::selection::{RELEASE_TARGET, build_release};
use anyhow::Result;
use std::process::Command;

/// The benchmark that needs a published client library.
const PYTHON: &str = "python";

/// Builds the static release, then runs the benchmarks in a mount namespace of their own.
pub(crate) fn run(project: &Project, words: &[&str]) -> Result<()> {
    require(Purpose::Bench)?;
    build_release(project)?;
    if words.is_empty() || words.contains(&PYTHON) {
        clients::prepare(project, clients::USUAL)?;
    }
    enter(&[&["bench"], words].concat())
}

/// The part of the task that runs in the namespace.
pub(crate) fn inside(project: &Project, words: &[&str]) -> Result<()> {
    let image = Image::mount(project, "bench")?;
    let programs = project.target.join(RELEASE_TARGET).join("release");
    let cache = project.debian_cache();
    std::fs::create_dir_all(&cache)?;
    let mut command = Command::new(programs.join("bench"));
    command.args(words).current_dir(&image.path);
    command.env("TESTKIT_BIN", project.pin(&programs.join("ci-tool"))?);
    command.env("TESTKIT_STATE", &image.path);
    command.env("TESTKIT_DEBIAN_CACHE", cache);
    command.env("TESTKIT_CLIENTS", clients::programs(project)?);
    command.env("TESTKIT_DEADLINE", "3600");
    command.env("BENCH_TOOLS", project.target.join("xtask/tools"));
    show(&mut command)
}
