//! How much memory does an engine take, and does it grow with what it has done?
//!
//! The sum over all its processes, shared pages counted by part. The session stays open all the
//! while: what it remembers counts.

use crate::ours::{Connection, Ours, fresh};
use crate::peers::{BuildKit, Peers, available};
use crate::report::{Report, memory_text};
use anyhow::Result;
use std::time::Duration;

pub(crate) const TITLE: &str = "memory of all engine processes";

const MEGABYTE: u64 = 1_000_000;
/// Execs before the first and before the last look.
const FEW: usize = 50;
const MANY: usize = 1000;
/// Time for an engine to finish what it does in the background.
const SETTLE: Duration = Duration::from_secs(2);

pub(crate) fn ask(report: &mut Report) -> Result<()> {
    let peers = Peers::prepare()?;
    let ours = Ours::new();
    crate::measure::output(&mut ours.query("{ version }"))?;
    let idle = settled(&ours);
    let mut connection = ours.connect(&peers.root())?;
    execs(&mut connection, FEW)?;
    let few = settled(&ours);
    execs(&mut connection, MANY - FEW)?;
    let many = settled(&ours);
    drop(connection);
    let closed = settled(&ours);
    report.figure("ours, idle and fresh", memory_text(idle));
    report.figure("ours, after 50 execs, session open", memory_text(few));
    report.figure("ours, after 1,000 execs, session open", memory_text(many));
    report.figure("ours, after 1,000 execs, session closed", memory_text(closed));
    let buildkit = BuildKit::start(&peers);
    if let Some(buildkit) = available(report, "BuildKit", buildkit) {
        std::thread::sleep(SETTLE);
        let memory = buildkit.memory();
        report.figure("BuildKit, idle and fresh", memory_text(memory));
        report.compare("BuildKit / ours, idle", memory as f64 / idle as f64);
    }
    report.memory_at_most("idle and fresh", idle, 40 * MEGABYTE);
    report.ratio_at_most("after 1,000 execs / after 50", many as f64 / few as f64, 1.1);
    report.ratio_at_most("the same, session closed", closed as f64 / few as f64, 1.1);
    Ok(())
}

fn execs(connection: &mut Connection, count: usize) -> Result<()> {
    for _ in 0..count {
        let document = connection.document().env("ROUND", &fresh()).exec(&["true"]);
        connection.time_exit(document)?;
    }
    Ok(())
}

fn settled(ours: &Ours) -> u64 {
    std::thread::sleep(SETTLE);
    ours.memory()
}
