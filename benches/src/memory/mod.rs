//! How much memory does an engine take, and does it grow with what it has done?
//!
//! The sum over all its processes, shared pages counted by part. A client is the same program and
//! takes its part of the pages of that program, so figures with a client and figures without one are
//! never held against each other.

use crate::ours::{Ours, fresh};
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
    let few = after(&ours, &peers, FEW)?;
    let many = after(&ours, &peers, MANY - FEW)?;
    report.figure("ours, idle and fresh", memory_text(idle));
    report.figure("ours, after 50 execs, session open", memory_text(few.open));
    report.figure("ours, after 50 execs, session closed", memory_text(few.closed));
    report.figure("ours, after 1,000 execs, session open", memory_text(many.open));
    report.figure("ours, after 1,000 execs, session closed", memory_text(many.closed));
    let buildkit = BuildKit::start(&peers);
    if let Some(buildkit) = available(report, "BuildKit", buildkit) {
        std::thread::sleep(SETTLE);
        let memory = buildkit.memory();
        report.figure("BuildKit, idle and fresh", memory_text(memory));
        report.compare("BuildKit / ours, idle", memory as f64 / idle as f64);
    }
    report.memory_at_most("idle and fresh", idle, 40 * MEGABYTE);
    let growth = |few: u64, many: u64| many as f64 / few as f64;
    report.ratio_at_most("after 1,000 / after 50, open", growth(few.open, many.open), 1.1);
    report.ratio_at_most("after 1,000 / after 50, closed", growth(few.closed, many.closed), 1.1);
    Ok(())
}

/// Memory at the end of a session.
struct Looks {
    open: u64,
    closed: u64,
}

/// Runs so many commands in one session.
fn after(ours: &Ours, peers: &Peers, count: usize) -> Result<Looks> {
    let mut connection = ours.connect(&peers.root())?;
    for _ in 0..count {
        let document = connection.document().env("ROUND", &fresh()).exec(&["true"]);
        connection.time_exit(document)?;
    }
    let open = settled(ours);
    drop(connection);
    Ok(Looks { open, closed: settled(ours) })
}

fn settled(ours: &Ours) -> u64 {
    std::thread::sleep(SETTLE);
    ours.memory()
}
