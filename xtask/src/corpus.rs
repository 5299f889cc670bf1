//! `cargo xtask corpus`: the listings of `tests/corpus`, written anew by another builder.
//!
//! They are checked in, so this runs when a case is added or changed. What comes of it is read before it is
//! kept: the other builder may be wrong, and the case says where.

use crate::image::{Image, enter};
use crate::packages::{Purpose, require};
use crate::project::Project;
use crate::selection::build;
use crate::test::{Suite, report};
use anyhow::Result;

/// The test that writes them; it does nothing else, and no other run starts it.
const WRITER: &str = "docker_build::corpus::listings_are_written";

/// Builds, then writes the listings in a mount namespace of its own.
pub(crate) fn run(project: &Project) -> Result<()> {
    require(Purpose::Bench)?;
    build(project)?;
    enter(&["corpus"])
}

/// The part of the task that runs in the namespace.
pub(crate) fn inside(project: &Project) -> Result<()> {
    let image = Image::mount(project, "corpus")?;
    let mut suite = Suite::prepare(project, &image)?;
    // The other builder takes its time: two minutes for all of them.
    suite.set("TESTKIT_DEADLINE", "3600");
    suite.run_ignored();
    report(suite.run(Some(WRITER))?)
}
