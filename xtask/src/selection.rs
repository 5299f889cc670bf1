//! The one selection of packages and targets that every task builds.
//!
//! Cargo unites the features of all packages it builds together. Another selection would unite
//! others and compile the same crates again; so all tasks ask here and ask for the same.

use crate::command::{output, run};
use crate::project::Project;
use anyhow::Result;
use std::process::Command;

/// All packages with all their targets.
pub(crate) const EVERYTHING: [&str; 2] = ["--workspace", "--all-targets"];

/// The target of release builds, named so that build scripts and macros are built for the host
/// without the flags of the product.
pub(crate) const RELEASE_TARGET: &str = "x86_64-unknown-linux-gnu";

/// A cargo command in the project's folder, with the build folder that this program lies in.
pub(crate) fn cargo(project: &Project, word: &str) -> Command {
    let cargo = crate::project::variable("CARGO").unwrap_or_else(|| "cargo".to_owned());
    let mut command = Command::new(cargo);
    command.arg(word).current_dir(&project.root).env("CARGO_TARGET_DIR", &project.target);
    command
}

/// Builds everything in the development profile.
pub(crate) fn build(project: &Project) -> Result<()> {
    run(cargo(project, "build").args(EVERYTHING))
}

/// Says in the environment of a build which commit it is of. Development builds are not told: they
/// would be made again with every commit.
fn tell_commit(project: &Project, command: &mut Command) {
    let git = |words: &[&str]| output(Command::new("git").args(words).current_dir(&project.root));
    if let Some(commit) = git(&["rev-parse", "HEAD"]) {
        command.env("CITOOL_BUILD_COMMIT", commit.trim());
    }
    if git(&["status", "--porcelain"]).is_some_and(|changes| !changes.is_empty()) {
        command.env("CITOOL_BUILD_DIRTY", "yes");
    }
}

/// Builds the static release of the product and of the benchmarks.
pub(crate) fn build_release(project: &Project) -> Result<std::path::PathBuf> {
    let mut command = cargo(project, "build");
    command.args(["--release", "--target", RELEASE_TARGET, "--bins"]);
    command.args(["-p", "ci-tool", "-p", "benches"]);
    command.env("RUSTFLAGS", "-C target-feature=+crt-static");
    tell_commit(project, &mut command);
    run(&mut command)?;
    Ok(project.target.join(RELEASE_TARGET).join("release"))
}
