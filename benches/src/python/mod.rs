//! What does a program for the published Python library pay for us?
//!
//! The smallest program, started by `ci-tool run` with an engine that runs, against the import of the
//! library alone: what is between them is our start, the session, and what the library does with the
//! description of the API before its first request.

use crate::measure::{Sample, time_command};
use crate::ours::Ours;
use crate::report::Report;
use anyhow::Result;
use std::process::Command;
use std::time::Duration;

pub(crate) const TITLE: &str = "the smallest Python program, beside the import of the library";

const ROUNDS: usize = 25;
const LIMIT: Duration = Duration::from_millis(60);

pub(crate) fn ask(report: &mut Report) -> Result<()> {
    let ours = Ours::new();
    let smallest = testkit::client_program("python-smallest");
    let smallest = smallest.to_string_lossy();
    let run = || ours.command(&["--silent", "run", "--", &smallest]);
    // The engine starts, and Python compiles what it imports.
    time_command(&mut run())?;
    let (mut whole, mut import) = (Sample::default(), Sample::default());
    for _ in 0..ROUNDS {
        import.push(time_command(&mut Command::new(testkit::client_program("python-import")))?);
        whole.push(time_command(&mut run())?);
    }
    report.sample("import alone", &import);
    report.sample("whole program", &whole);
    let more = whole.median().saturating_sub(import.median());
    report.time_at_most("what the program takes beyond the import", more, LIMIT);
    Ok(())
}
