//! How long is it to the first answer when no engine runs?
//!
//! From the start of the program to its end, with an answer of the engine in between.

use crate::measure::{Sample, ratio, time_command};
use crate::ours::Ours;
use crate::peers::{BuildKit, Peers, available};
use crate::report::Report;
use anyhow::Result;
use std::time::Duration;

pub(crate) const TITLE: &str = "engine cold start to the first answer";

const ROUNDS: usize = 15;
const BUILDKIT_ROUNDS: usize = 3;
const DOCUMENT: &str = "{ version }";

pub(crate) fn ask(report: &mut Report) -> Result<()> {
    let peers = Peers::prepare()?;
    let (mut empty, mut kept, mut warm) = (Sample::default(), Sample::default(), Sample::default());
    for _ in 0..ROUNDS {
        let ours = Ours::new();
        empty.push(time_command(&mut ours.query(DOCUMENT))?);
        warm.push(time_command(&mut ours.query(DOCUMENT))?);
        ours.stop();
        kept.push(time_command(&mut ours.query(DOCUMENT))?);
    }
    report.sample("ours, empty state", &empty);
    report.sample("ours, state of an engine before", &kept);
    report.sample("ours, engine running", &warm);
    let limit = Duration::from_millis(150);
    report.time_at_most("empty state", empty.median(), limit);
    report.time_at_most("state of an engine before", kept.median(), limit);
    report.compare("empty state / engine running", ratio(&empty, &warm));
    let starts = (0..BUILDKIT_ROUNDS).map(|_| Ok(BuildKit::start(&peers)?.start));
    if let Some(starts) = available(report, "BuildKit", starts.collect::<Result<Sample>>()) {
        report.sample("BuildKit, empty state", &starts);
        report.compare("BuildKit / ours, empty state", ratio(&starts, &empty));
    }
    Ok(())
}
