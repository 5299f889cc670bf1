//! Does a step cost the same however long the chain before it is?
//!
//! A document may be nested about 800 deep, so the chain of 1,000 comes in parts: each goes on from
//! the id of the one before. The last part is measured by itself: its steps are those at the far end.
//!
//! Each long chain is among short ones that have as many steps together, and means are compared. A long
//! chain meets the rare moments at which the machine does something else, and what is brought to disk
//! beside it, ten times as often as a short one; the median of the short ones would leave both out.

use crate::document::Document;
use crate::exec::Others;
use crate::measure::{Sample, ratio};
use crate::ours::{Connection, Ours, fresh};
use crate::peers::Peers;
use crate::report::Report;
use anyhow::{Context as _, Result};
use std::time::Duration;

pub(crate) const TITLE: &str = "chains of 100 and of 1,000 execs";

const ROUNDS: usize = 5;
/// Short chains before each long one, and as many after it.
const SHORTS: usize = 5;
/// Steps of the short chain, and of the last part of the long one.
const SHORT: usize = 100;
/// Where the parts of the long chain end.
const PARTS: [usize; 4] = [700, 800, 900, 1000];

pub(crate) fn ask(report: &mut Report) -> Result<()> {
    let peers = Peers::prepare()?;
    let mut others = Others::prepare(report, &peers);
    let ours = Ours::new();
    let mut connection = ours.connect(&peers.root())?;
    run(&mut connection, &[SHORT])?;
    let (mut short, mut long) = (Sample::default(), Sample::default());
    let mut last = Sample::default();
    for _ in 0..ROUNDS {
        others.floors()?;
        let shorts = |connection: &mut Connection| {
            let chain = |_| Ok(run(connection, &[SHORT])?.iter().sum());
            (0..SHORTS).map(chain).collect::<Result<Sample>>()
        };
        short.extend(shorts(&mut connection)?);
        let times = run(&mut connection, &PARTS)?;
        long.push(times.iter().sum());
        last.extend(times.last().copied().into_iter().collect());
        short.extend(shorts(&mut connection)?);
    }
    others.peers(ROUNDS)?;
    report.sample("ours, 100 execs", &short);
    report.sample("ours, 1,000 execs", &long);
    let first = short.divided_by(SHORT as u32);
    let last = last.divided_by(SHORT as u32);
    report.sample("ours, a step of the first 100", &first);
    report.sample("ours, a step of the last 100", &last);
    others.figures(report);
    let times = long.mean().as_secs_f64() / short.mean().as_secs_f64();
    report.ratio_at_most("1,000 execs / 100 execs, by their means", times, 11.0);
    report.compare("1,000 execs / 100 execs, by their medians", ratio(&long, &short));
    others.goals(report, "a step of the first 100", &first);
    others.goals(report, "a step of the last 100", &last);
    Ok(())
}

/// Runs a new chain in parts that end at these steps, and gives the time of each.
fn run(connection: &mut Connection, parts: &[usize]) -> Result<Vec<Duration>> {
    let mut document = connection.document().env("ROUND", &fresh());
    let mut begin = 0;
    let mut times = Vec::new();
    for end in parts {
        let (time, id) = connection.time_sync(document.touches(begin..*end))?;
        times.push(time);
        document = Document::load(&id);
        begin = *end;
    }
    let all = parts.last().copied().unwrap_or_default();
    let count = format!("test $(ls / | grep -c '^s[0-9]') = {all}");
    connection.time_exit(document.exec(&["sh", "-c", &count])).context("a step left no file")?;
    Ok(times)
}
