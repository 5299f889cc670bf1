//! Does a step stay as quick when the steps before it left many files?
//!
//! Each step writes 20,000 files into a folder of its own. Beside it, in turns, the same script runs
//! on the plain file system without a container: when that slows down, the machine did.

use crate::document::Document;
use crate::measure::{Sample, ratio, time_command};
use crate::ours::{Ours, fresh};
use crate::peers::Peers;
use crate::report::Report;
use anyhow::{Context as _, Result};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

pub(crate) const TITLE: &str = "a chain of 40 execs that each write 20,000 files";

const STEPS: usize = 40;
const FILES: usize = 20_000;

pub(crate) fn ask(report: &mut Report) -> Result<()> {
    let peers = Peers::prepare()?;
    let shell = peers.root().join("bin/busybox");
    let floor = testkit::root().join("bench-wide");
    std::fs::create_dir_all(&floor)?;
    let ours = Ours::new();
    let mut connection = ours.connect(&peers.root())?;
    // The first step is what the others are held against: it must not be the one that warms up.
    let (_, mut id) =
        connection.time_sync(connection.document().env("ROUND", &fresh()).exec(&[
            "sh",
            "-c",
            &script("/warm"),
        ]))?;
    plain(&shell, &floor)?;
    let (mut steps, mut plains) = (Sample::default(), Sample::default());
    for step in 0..STEPS {
        let script = script(&format!("/d{step}"));
        let (time, next) =
            connection.time_sync(Document::load(&id).exec(&["sh", "-c", &script]))?;
        id = next;
        steps.push(time);
        plains.push(plain(&shell, &floor)?);
    }
    for step in [0, STEPS - 1] {
        let count = format!("test $(ls /d{step} | wc -l) = {FILES}");
        let document = Document::load(&id).exec(&["sh", "-c", &count]);
        connection.time_exit(document).context("a step left fewer files")?;
    }
    report.sample("ours, a step", &steps);
    report.sample("floor: the script without a container", &plains);
    let spread = |sample: &Sample| sample.slowest().as_secs_f64() / sample.first().as_secs_f64();
    report.ratio_at_most("slowest step / first step", spread(&steps), 1.5);
    report.compare("slowest / first without a container", spread(&plains));
    report.compare("median of the last 5 steps / of the first 5", growth(&steps));
    report.compare("the same without a container", growth(&plains));
    report.compare("a step / without a container", ratio(&steps, &plains));
    Ok(())
}

/// Whether the end is slower than the beginning, apart from single steps that were disturbed.
fn growth(sample: &Sample) -> f64 {
    let (first, last) = sample.ends(5);
    last.as_secs_f64() / first.as_secs_f64()
}

fn script(folder: &str) -> String {
    format!(
        "mkdir -p {folder}; cd {folder}; i=0; while [ $i -lt {FILES} ]; do : > f$i; i=$((i+1)); done"
    )
}

/// Runs the script in an empty folder and removes what it made.
fn plain(shell: &Path, folder: &Path) -> Result<Duration> {
    let files = folder.join("files");
    let script = script(&files.to_string_lossy());
    let time = time_command(Command::new(shell).args(["sh", "-c", &script]))?;
    std::fs::remove_dir_all(&files)?;
    Ok(time)
}
