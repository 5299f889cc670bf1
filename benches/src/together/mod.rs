//! What do 200 commands at once take, against one after the other?
//!
//! Each command keeps one processor busy for some milliseconds. Beside the time stands the most memory that the
//! engine and all that it started had meanwhile.

use crate::document::Document;
use crate::measure::{Sample, time};
use crate::ours::{Connection, Ours, fresh};
use crate::peers::Peers;
use crate::report::{Report, memory_text};
use anyhow::{Context as _, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub(crate) const TITLE: &str = "200 execs at once, against one after the other";

const COMMANDS: usize = 200;
/// Commands that are timed one after the other, at the beginning and at the end.
const IN_TURN: usize = 50;
const ROUNDS: usize = 3;
/// How often memory is looked at.
const LOOK: Duration = Duration::from_millis(100);
const MOST_MEMORY: u64 = 512 << 20;
/// About 20 ms of a processor.
const SCRIPT: &str = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 0";

pub(crate) fn ask(report: &mut Report) -> Result<()> {
    let peers = Peers::prepare()?;
    let ours = Ours::new();
    let mut connection = ours.connect(&peers.root())?;
    let container = connection.container.clone();
    let document = || Document::load(&container).env("ROUND", &fresh()).exec(&["sh", "-c", SCRIPT]);
    let (mut one, mut all) = (Sample::default(), Sample::default());
    let mut most = 0;
    for _ in 0..ROUNDS {
        for _ in 0..IN_TURN {
            one.push(connection.time_exit(document())?);
        }
        let documents: Vec<String> = (0..COMMANDS).map(|_| document().ask("exitCode")).collect();
        let over = AtomicBool::new(false);
        let (time, memory) = std::thread::scope(|scope| -> Result<(Duration, u64)> {
            let watching = scope.spawn(|| {
                let mut most = 0;
                while !over.load(Ordering::Relaxed) {
                    most = ours.memory().max(most);
                    std::thread::sleep(LOOK);
                }
                most
            });
            let took = at_once(&connection, &documents);
            over.store(true, Ordering::Relaxed);
            let memory = watching.join().map_err(|_| anyhow::anyhow!("nobody watched"))?;
            Ok((took?, memory))
        })?;
        all.push(time);
        most = most.max(memory);
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    report.sample("one of them, after the other", &one);
    report.sample("200 at once", &all);
    let in_turn = one.median().as_secs_f64() * COMMANDS as f64;
    report.figure("200 one after the other", format!("{in_turn:.2} s, {processors} processors"));
    let share = all.median().as_secs_f64() / (in_turn / processors as f64);
    report.ratio_at_most("at once / (in turn / processors)", share, 1.2);
    report.figure("memory at most", memory_text(most));
    report.memory_at_most("memory meanwhile", most, MOST_MEMORY);
    Ok(())
}

/// Sends each document over a connection of its own, all at the same time.
fn at_once(connection: &Connection, documents: &[String]) -> Result<Duration> {
    let (took, ()) = time(|| {
        std::thread::scope(|scope| -> Result<()> {
            let ask = |document: &String| {
                let mut wire = connection.another()?;
                wire.ask(document, "exitCode").map(|_| ())
            };
            let asked: Vec<_> =
                documents.iter().map(|document| scope.spawn(move || ask(document))).collect();
            for asked in asked {
                asked.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
            }
            Ok(())
        })
        .context("a command failed")
    })?;
    Ok(took)
}
