//! What does one command in a container cost, when everything it needs is there?
//!
//! Each command is new (a variable differs), so none is cached. Ours is the whole round trip of a
//! client: query in, answer out. The others are whole runs of their program.

use crate::floor::{self, Kind, TURN};
use crate::measure::{Sample, ratio};
use crate::ours::{Connection, Ours, fresh};
use crate::peers::{Crun, Peers, Podman, available};
use crate::report::Report;
use anyhow::Result;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) const TITLE: &str = "one withExec([\"true\"]) inside a session, warm root, no network";

const ROUNDS: usize = 10;
const WARM_UP: usize = 20;
/// Of ours and of the floor, in each round.
const STARTS: usize = 20;
const CRUN_STARTS: usize = 5;

pub(crate) fn ask(report: &mut Report) -> Result<()> {
    let peers = Peers::prepare()?;
    let mut others = Others::prepare(report, &peers);
    let ours = Ours::alone();
    let mut connection = ours.connect(&peers.root())?;
    for _ in 0..WARM_UP {
        step(&mut connection)?;
    }
    let mut sample = Sample::default();
    for _ in 0..ROUNDS {
        let steps = (0..TURN + STARTS).map(|_| step(&mut connection));
        sample.extend(steps.collect::<Result<Sample>>()?.without_first(TURN));
        others.floors()?;
    }
    others.peers(ROUNDS)?;
    report.sample("ours", &sample);
    others.figures(report);
    others.goals(report, "a step", &sample);
    Ok(())
}

fn step(connection: &mut Connection) -> Result<Duration> {
    connection.time_exit(connection.document().env("ROUND", &fresh()).exec(&["true"]))
}

/// The floor, and what others take for a container on the same root.
pub(crate) struct Others<'a> {
    root: PathBuf,
    podman: Option<Podman<'a>>,
    crun: Option<Crun<'a>>,
    bare: Sample,
    furnished: Sample,
    podman_runs: Sample,
    crun_runs: Sample,
}

impl<'a> Others<'a> {
    /// Finds out who can run here.
    pub(crate) fn prepare(report: &mut Report, peers: &'a Peers) -> Self {
        Self {
            root: peers.root(),
            podman: available(report, "podman", Podman::prepare(peers)),
            crun: available(report, "crun", Crun::prepare(peers)),
            bare: Sample::default(),
            furnished: Sample::default(),
            podman_runs: Sample::default(),
            crun_runs: Sample::default(),
        }
    }

    /// Measures the floor a few times.
    pub(crate) fn floors(&mut self) -> Result<()> {
        self.bare.extend(floor::measure(Kind::Bare, &self.root, STARTS)?);
        self.furnished.extend(floor::measure(Kind::Furnished, &self.root, STARTS)?);
        Ok(())
    }

    /// Measures the peers. Not in turns with what is held against the floor: the kernel goes on taking
    /// down what a peer has left for some time after its end, and who comes next would pay for that.
    pub(crate) fn peers(&mut self, rounds: usize) -> Result<()> {
        for _ in 0..rounds {
            if let Some(crun) = &self.crun {
                for _ in 0..CRUN_STARTS {
                    self.crun_runs.push(crun.run()?);
                }
            }
            if let Some(podman) = &self.podman {
                self.podman_runs.push(podman.run()?);
            }
        }
        Ok(())
    }

    /// Writes what was measured.
    pub(crate) fn figures(&self, report: &mut Report) {
        report.sample("floor: namespaces, overlay, pivot_root, exec, wait", &self.bare);
        report.sample("floor with /proc, /dev, /sys", &self.furnished);
        if self.crun.is_some() {
            report.sample("crun run", &self.crun_runs);
        }
        if self.podman.is_some() {
            report.sample("podman run --rm --network=none", &self.podman_runs);
        }
    }

    /// Holds one of our steps against everybody.
    pub(crate) fn goals(&self, report: &mut Report, what: &str, ours: &Sample) {
        if self.podman.is_some() {
            report.faster(&format!("podman / {what}"), &self.podman_runs, ours, 50.0);
        }
        if self.crun.is_some() {
            report.ratio_at_most(&format!("{what} / crun"), ratio(ours, &self.crun_runs), 0.6);
        }
        report.ratio_at_most(&format!("{what} / floor"), ratio(ours, &self.bare), 2.0);
        report.compare(
            &format!("{what} / floor with /proc, /dev, /sys"),
            ratio(ours, &self.furnished),
        );
    }
}
