//! `cargo xtask soak`: the tests that repeat themselves, many rounds each.

use crate::image::{Image, enter};
use crate::packages::{Purpose, require};
use crate::project::{Project, variable};
use crate::selection::build;
use crate::test::{Suite, report};
use anyhow::Result;

/// How many rounds each loop makes; the suite makes 20.
const ROUNDS: &str = "TESTKIT_ROUNDS";
/// Rounds where nobody says otherwise.
const MANY: &str = "200";

/// Tests that loop over `testkit::rounds` live in this module of the end to end tests.
const LOOPS: &str = "must_hold::";

/// Builds, then runs the loops in a mount namespace of their own.
pub(crate) fn run(project: &Project, words: &[&str]) -> Result<()> {
    require(Purpose::Test)?;
    build(project)?;
    enter(&[&["soak"], words].concat())
}

/// The part of the task that runs in the namespace.
pub(crate) fn inside(project: &Project, words: &[&str]) -> Result<()> {
    let image = Image::mount(project, "soak")?;
    let filter = words.first().copied().unwrap_or(LOOPS);
    let mut suite = Suite::prepare(project, &image)?;
    suite.set(ROUNDS, variable(ROUNDS).as_deref().unwrap_or(MANY));
    suite.set("TESTKIT_DEADLINE", "3600");
    suite.show_output();
    report(suite.run(Some(filter))?)
}
