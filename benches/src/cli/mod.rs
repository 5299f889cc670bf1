//! How long does a user wait for the program itself, when there is nothing left to do?

use crate::document::Document;
use crate::measure::{Sample, output, ratio, time_command};
use crate::ours::{Ours, fresh};
use crate::peers::Peers;
use crate::report::Report;
use anyhow::Result;
use std::process::Command;
use std::time::Duration;

pub(crate) const TITLE: &str = "the CLI end to end, everything cached, engine running";

const ROUNDS: usize = 40;
const IMAGE: &str = "deb://bookworm";

/// A run of the program that is measured.
struct Case {
    name: &'static str,
    command: Command,
    limit: Duration,
    sample: Sample,
}

pub(crate) fn ask(report: &mut Report) -> Result<()> {
    let peers = Peers::prepare()?;
    let ours = Ours::new();
    let root = format!("--directory={}", peers.root().display());
    let value = fresh();
    let by_flags = ["core", "container", "with-rootfs", &root, "with-exec"];
    let by_flags = [&by_flags[..], &["--args=echo,hello", "stdout"]].concat();
    let debian = format!("--address={IMAGE}");
    let debian_by_flags =
        ["core", "container", "from", &debian, "with-exec", "--args=echo,hello", "stdout"];
    let document =
        Document::from(IMAGE).env("ROUND", &value).exec(&["echo", "hello"]).ask("stdout");
    let mut cases = vec![
        case("version", ours.command(&["version"]), 10),
        case("query { version }", ours.query("{ version }"), 30),
        case("core: an exec on a folder of the host", ours.command(&by_flags), 30),
    ];
    let on_debian = [
        case("core: an exec on Debian", ours.command(&debian_by_flags), 30),
        case("query: an exec on Debian", ours.query(&document), 30),
    ];
    for case in on_debian {
        add_if_it_runs(report, &mut cases, case);
    }
    let nothing = peers.root().join("bin/true");
    let mut floor = Sample::default();
    cases.iter_mut().try_for_each(|case| output(&mut case.command).map(drop))?;
    for _ in 0..ROUNDS {
        floor.push(time_command(&mut Command::new(&nothing))?);
        for case in &mut cases {
            case.sample.push(time_command(&mut case.command)?);
        }
    }
    report.sample("floor: a static program that does nothing", &floor);
    cases.iter().for_each(|case| report.sample(case.name, &case.sample));
    for case in &cases {
        report.time_at_most(case.name, case.sample.median(), case.limit);
        report.compare(&format!("{} / floor", case.name), ratio(&case.sample, &floor));
    }
    Ok(())
}

fn case(name: &'static str, command: Command, milliseconds: u64) -> Case {
    let limit = Duration::from_millis(milliseconds);
    Case { name, command, limit, sample: Sample::default() }
}

/// Debian images need an archive within reach; without one the rest is measured all the same.
fn add_if_it_runs(report: &mut Report, cases: &mut Vec<Case>, mut case: Case) {
    match output(&mut case.command) {
        Ok(_) => cases.push(case),
        Err(error) => report.note(format!("{} left out: {error:#}", case.name)),
    }
}
