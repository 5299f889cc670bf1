//! What does a program for the published Python library pay for us?
//!
//! The smallest program, started by `ci-tool run` with an engine that runs, against the import of the
//! library alone: what is between them is our start, the session, and what the library does with the
//! description of the API before its first request. That last part is the library's own: the same
//! program against recorded answers is the floor, with no start and no session of ours in it.

mod replay;

use crate::measure::{Sample, time_command};
use crate::ours::Ours;
use crate::report::Report;
use anyhow::Result;
use replay::Replay;
use std::process::Command;
use std::time::Duration;

pub(crate) const TITLE: &str = "the smallest Python program, beside the import of the library";

const ROUNDS: usize = 25;
const LIMIT: Duration = Duration::from_millis(60);
/// Our start, the session and its end, beside what the library does whoever answers.
const OUR_LIMIT: Duration = Duration::from_millis(30);

pub(crate) fn ask(report: &mut Report) -> Result<()> {
    let ours = Ours::new();
    let smallest = testkit::client_program("python-smallest");
    let smallest = smallest.to_string_lossy();
    let run = || ours.command(&["--silent", "run", "--", &smallest]);
    let (session, _wire) = ours.session()?;
    let replay = Replay::of(session.endpoint.clone())?;
    // The engine starts, Python compiles what it imports, and the answers are recorded.
    time_command(&mut run())?;
    time_command(&mut replay.run(&smallest))?;
    let (mut whole, mut floor, mut import): (Sample, Sample, Sample) = Default::default();
    for _ in 0..ROUNDS {
        take(&mut import, &mut Command::new(testkit::client_program("python-import")))?;
        take(&mut floor, &mut replay.run(&smallest))?;
        take(&mut whole, &mut run())?;
    }
    report.sample("import alone", &import);
    report.sample("the program against recorded answers", &floor);
    report.sample("whole program", &whole);
    let beyond = |sample: &Sample| whole.median().saturating_sub(sample.median());
    report.time_at_most("what the program takes beyond the import", beyond(&import), LIMIT);
    report.time_at_most("what of that is ours: beyond recorded answers", beyond(&floor), OUR_LIMIT);
    Ok(())
}

fn take(sample: &mut Sample, command: &mut Command) -> Result<()> {
    sample.push(time_command(command)?);
    Ok(())
}
