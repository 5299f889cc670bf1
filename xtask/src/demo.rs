//! `cargo xtask demo`: a real pipeline, shown command by command.

use crate::command::{output, run as show};
use crate::packages::{Purpose, require};
use crate::project::Project;
use crate::selection::build;
use anyhow::Result;
use std::process::Command;

/// Variable that names the state folder of an engine.
const STATE_DIR: &str = "CITOOL_STATE_DIR";

const PIPELINES: &[&[&str]] = &[
    &[
        "core",
        "container",
        "from",
        "--address=deb://bookworm",
        "with-exec",
        "--args=sh,-c,echo hello from $(uname -s) > /greeting; cat /greeting",
        "stdout",
    ],
    &[
        "core",
        "container",
        "from",
        "--address=deb://bookworm",
        "with-new-file",
        "--path=/notes/today.txt",
        "--contents=written without a container",
        "file",
        "--path=/notes/today.txt",
        "contents",
    ],
];

/// Builds, then runs the pipelines; the first twice, to show that the second time nothing runs.
pub(crate) fn run(project: &Project) -> Result<()> {
    require(Purpose::Build)?;
    build(project)?;
    let program = project.pin(&project.program("ci-tool"))?;
    let state = match crate::project::variable(STATE_DIR) {
        Some(path) => path.into(),
        None => project.work()?.join("demo"),
    };
    println!("\nState of the demo: {}\n", state.display());
    let command = || {
        let mut command = Command::new(&program);
        command.env(STATE_DIR, &state);
        command
    };
    for pipeline in PIPELINES.iter().chain(PIPELINES.first()) {
        show(command().args(*pipeline))?;
        println!();
    }
    // The engine would end by itself when idle; a demo leaves nothing behind.
    let _ = output(command().args(["engine", "stop"]));
    Ok(())
}
