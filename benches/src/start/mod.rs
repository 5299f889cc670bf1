//! How long is it to the first answer of an engine whose store is full?
//!
//! The store is filled through its own face, with a layer for each result. From the start of the
//! program to its end, with an answer of the engine in between.

use crate::measure::{Sample, ratio, time_command};
use crate::ours::Ours;
use crate::report::Report;
use anyhow::{Context as _, Result};
use protocol::Digest;
use std::path::Path;
use std::time::Duration;
use store::{Meta, Needs, Remembered, Snapshot, Store};

pub(crate) const TITLE: &str = "start of an engine with 100,000 entries in its store";

const ENTRIES: usize = 100_000;
/// Results put between two flushes, so that not everything waits in memory.
const AT_ONCE: usize = 5_000;
const ROUNDS: usize = 15;
const COLD_ROUNDS: usize = 3;
const DOCUMENT: &str = "{ version }";

pub(crate) fn ask(report: &mut Report) -> Result<()> {
    let (mut full, mut empty, mut cold) = (Sample::default(), Sample::default(), Sample::default());
    for _ in 0..ROUNDS {
        let ours = Ours::new();
        time_command(&mut ours.query(DOCUMENT))?;
        ours.stop();
        empty.push(time_command(&mut ours.query(DOCUMENT))?);
    }
    let ours = Ours::new();
    fill(&ours.store()).context("cannot fill a store")?;
    for _ in 0..ROUNDS {
        full.push(time_command(&mut ours.query(DOCUMENT))?);
        ours.stop();
    }
    for _ in 0..COLD_ROUNDS {
        forget_files()?;
        cold.push(time_command(&mut ours.query(DOCUMENT))?);
        ours.stop();
    }
    report.sample("a store with nothing in it", &empty);
    report.sample("100,000 entries", &full);
    report.sample("100,000 entries, nothing cached by the kernel", &cold);
    report.time_at_most("100,000 entries", full.median(), Duration::from_millis(300));
    report.compare("100,000 entries / nothing", ratio(&full, &empty));
    Ok(())
}

/// Puts results into a store, each with a layer of its own.
fn fill(folder: &Path) -> Result<()> {
    let store = Store::open(folder)?;
    for number in 0..ENTRIES {
        let mut layer = store.new_layer()?;
        let meta = Meta { mode: 0o644, ..Meta::default() };
        layer.file("a/file", &meta, &mut number.to_string().as_bytes())?;
        let snapshot = Snapshot::empty().push(layer.commit()?);
        let needs = Needs::new().snapshot(&snapshot).encode();
        let (value, label) = (number.to_string().into_bytes(), format!("entry {number}"));
        let remembered = Remembered { value, kind: "exec", label, needs };
        store.put_action(Digest::of(&number.to_le_bytes()), remembered);
        if number % AT_ONCE == 0 {
            store.flush()?;
        }
    }
    store.flush()?;
    Ok(())
}

/// Has the kernel forget all files, as after a start of the machine.
fn forget_files() -> Result<()> {
    rustix::fs::sync();
    std::fs::write("/proc/sys/vm/drop_caches", "3").context("cannot empty the kernel's caches")
}
