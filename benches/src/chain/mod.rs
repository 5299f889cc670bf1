//! What does a chain of ten commands cost, new and cached?
//!
//! Once as a user types it: the whole chain in one run of the program, with an engine that runs
//! already; the root file system is read from the disk by every such run. Once inside a session, as a
//! client library does it. Peers build a file of ten steps on the same root.

use crate::measure::{Sample, ratio, time_command};
use crate::ours::{Connection, Ours, fresh};
use crate::peers::{BuildKit, Buildah, Peers, available};
use crate::report::Report;
use anyhow::Result;
use std::path::Path;

pub(crate) const TITLE: &str = "a chain of 10 execs, cold and cached";

const STEPS: usize = 10;
const ROUNDS: usize = 5;
/// Of ours in each round; peers take a hundred times as long and are measured less often.
const COLD: usize = 4;
const CACHED: usize = 6;
const PEER_CACHED: usize = 3;

/// Times of one tool.
#[derive(Default)]
struct Pair {
    cold: Sample,
    cached: Sample,
}

pub(crate) fn ask(report: &mut Report) -> Result<()> {
    let peers = Peers::prepare()?;
    let buildah = available(report, "buildah", Buildah::prepare(&peers, STEPS));
    let buildkit = available(report, "BuildKit", prepare_buildkit(&peers));
    let ours = Ours::new();
    let mut connection = ours.connect(&peers.root())?;
    let (mut cli, mut session, mut other) = (Pair::default(), Pair::default(), Sample::default());
    let (mut bud, mut kit) = (Pair::default(), Pair::default());
    for _ in 0..ROUNDS {
        round_of_cli(&ours, &peers.root(), &mut cli)?;
        let name = round_of_session(&mut connection, &mut session)?;
        other.push(in_another_session(&ours, &peers.root(), &name)?);
        if let Some(buildah) = &buildah {
            bud.cold.push(buildah.cold()?);
            for _ in 0..PEER_CACHED {
                bud.cached.push(buildah.cached()?);
            }
        }
        if let Some(buildkit) = &buildkit {
            kit.cold.push(buildkit.cold()?);
            for _ in 0..PEER_CACHED {
                kit.cached.push(buildkit.cached()?);
            }
        }
    }
    pair(report, "ours, one run of the CLI", &cli);
    pair(report, "ours, inside a session", &session);
    report.sample("ours, first query of another session, cached", &other);
    if buildah.is_some() {
        pair(report, "buildah bud", &bud);
        goals(report, "buildah / CLI", (&bud, &cli), (30.0, 6.0));
        goals(report, "buildah / inside a session", (&bud, &session), (40.0, 40.0));
        report.compare("buildah / another session, cached", ratio(&bud.cached, &other));
    }
    if buildkit.is_some() {
        pair(report, "BuildKit", &kit);
        goals(report, "BuildKit / CLI", (&kit, &cli), (10.0, 1.5));
    }
    Ok(())
}

fn prepare_buildkit(peers: &Peers) -> Result<BuildKit<'_>> {
    let mut buildkit = BuildKit::start(peers)?;
    buildkit.prepare_chain(STEPS)?;
    Ok(buildkit)
}

fn round_of_cli(ours: &Ours, root: &Path, pair: &mut Pair) -> Result<()> {
    let mut line = Vec::new();
    for _ in 0..COLD {
        line = command_line(root);
        pair.cold.push(time_command(&mut run(ours, &line))?);
    }
    for _ in 0..CACHED {
        pair.cached.push(time_command(&mut run(ours, &line))?);
    }
    Ok(())
}

fn run(ours: &Ours, line: &[String]) -> std::process::Command {
    ours.command(&line.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The chain as arguments, new in its first step.
fn command_line(root: &Path) -> Vec<String> {
    let words = ["core", "container", "with-rootfs"].map(str::to_owned);
    let mut line = words.to_vec();
    line.push(format!("--directory={}", root.display()));
    line.extend(["with-env-variable", "--name=ROUND"].map(str::to_owned));
    line.push(format!("--value={}", fresh()));
    for step in 0..STEPS {
        line.extend(["with-exec".to_owned(), format!("--args=touch,/s{step}")]);
    }
    line.push("exit-code".to_owned());
    line
}

/// Gives the word that makes the last chain of the round what it is.
fn round_of_session(connection: &mut Connection, pair: &mut Pair) -> Result<String> {
    let mut name = String::new();
    for _ in 0..COLD {
        name = fresh();
        pair.cold.push(chain(connection, &name)?);
    }
    for _ in 0..CACHED {
        pair.cached.push(chain(connection, &name)?);
    }
    Ok(name)
}

/// The chain in a session that has not seen it, with an engine that has.
fn in_another_session(ours: &Ours, root: &Path, name: &str) -> Result<std::time::Duration> {
    chain(&mut ours.connect(root)?, name)
}

fn chain(connection: &mut Connection, name: &str) -> Result<std::time::Duration> {
    connection.time_exit(connection.document().env("ROUND", name).touches(0..STEPS))
}

fn pair(report: &mut Report, what: &str, pair: &Pair) {
    report.sample(&format!("{what}, cold"), &pair.cold);
    report.sample(&format!("{what}, cached"), &pair.cached);
}

fn goals(
    report: &mut Report,
    what: &str,
    (peer, ours): (&Pair, &Pair),
    (cold, cached): (f64, f64),
) {
    report.faster(&format!("{what}, cold"), &peer.cold, &ours.cold, cold);
    report.faster(&format!("{what}, cached"), &peer.cached, &ours.cached, cached);
}
