//! How long does it take to make a Debian root file system of packages that are already here?
//!
//! The packages are downloaded before, by a run that is not counted. The peer is `mmdebstrap` with
//! its packages downloaded before as well; it makes the same set and packs it into an archive. It
//! knows no base to add to: one more package costs it a whole run.

use crate::measure::{Sample, output, ratio, time_command};
use crate::ours::Ours;
use crate::report::Report;
use anyhow::{Context as _, Result};
use std::process::Command;
use std::time::Duration;

pub(crate) const TITLE: &str = "deb://bookworm, packages already downloaded";

const ROUNDS: usize = 3;
const SUITE: &str = "bookworm";
/// A package that brings nothing else, and one that brings twenty; each has a program of its name.
const MORE: [&str; 2] = ["make", "python3"];

pub(crate) fn ask(report: &mut Report) -> Result<()> {
    let base = format!("deb://{SUITE}");
    let more = MORE.map(|package| format!("{base}+{package}"));
    {
        let ours = Ours::new();
        assemble(&ours, &base, "true").context("cannot download packages")?;
        for (address, program) in more.iter().zip(MORE) {
            assemble(&ours, address, program).context("cannot download packages")?;
        }
    }
    let mut empty = Sample::default();
    let mut warm = MORE.map(|_| Sample::default());
    for _ in 0..ROUNDS {
        let ours = Ours::new();
        empty.push(assemble(&ours, &base, "true")?);
        for ((address, program), sample) in more.iter().zip(MORE).zip(&mut warm) {
            sample.push(assemble(&ours, address, program)?);
        }
    }
    report.sample(&format!("ours, {base}, empty store"), &empty);
    for (address, sample) in more.iter().zip(&warm) {
        report.sample(&format!("ours, {address}, store with {base}"), sample);
    }
    report.time_at_most(&base, empty.median(), Duration::from_secs(10));
    for (address, sample) in more.iter().zip(&warm) {
        report.time_at_most(address, sample.median(), Duration::from_secs(3));
    }
    match mmdebstrap() {
        Ok(peer) => {
            report.sample("mmdebstrap --variant=minbase", &peer);
            report.compare("mmdebstrap / ours, empty store", ratio(&peer, &empty));
        }
        Err(error) => report.note(format!("mmdebstrap left out: {error:#}")),
    }
    Ok(())
}

/// Makes an image and runs a program in it, so that one that is not really there is an error.
fn assemble(ours: &Ours, address: &str, program: &str) -> Result<Duration> {
    let (address, args) = (format!("--address={address}"), format!("--args={program},--version"));
    let line = ["core", "container", "from", &address, "with-exec", &args, "exit-code"];
    time_command(&mut ours.command(&line))
}

/// Runs it twice: the first run downloads.
fn mmdebstrap() -> Result<Sample> {
    output(Command::new("mmdebstrap").arg("--version")).context("it is not installed")?;
    let folder = testkit::root().join("bench-mmdebstrap");
    let packages = folder.join("packages");
    std::fs::create_dir_all(&packages)?;
    let packages = packages.display();
    let run = || {
        let mut command = Command::new("mmdebstrap");
        command.args(["-q", "--variant=minbase", "--mode=root"]).env("TMPDIR", &folder);
        command.arg("--skip=download/empty,essential/unlink");
        command.arg("--setup-hook=mkdir -p \"$1\"/var/cache/apt/archives");
        command.arg(format!("--setup-hook=cp -a {packages}/. \"$1\"/var/cache/apt/archives/"));
        command.arg(format!(
            "--customize-hook=cp -an \"$1\"/var/cache/apt/archives/*.deb {packages}/"
        ));
        time_command(command.arg(SUITE).arg(folder.join("root.tar")))
    };
    run().context("a first run fails")?;
    let time = run()?;
    std::fs::remove_dir_all(&folder)?;
    Ok(std::iter::once(time).collect())
}
