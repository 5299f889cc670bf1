//! How long does it take to get an image from a registry into an empty store?
//!
//! The registry is on loopback. Ours is a whole run of the program with the engine running, up to the
//! entries of the root; when it ends, the image is safe on disk. The peer is `podman pull` with
//! storage of its own on the same file system. The floor is a copy of the same bytes into a folder,
//! verified, not unpacked.

use crate::images::Images;
use crate::measure::{Sample, output, time_command};
use crate::ours::Ours;
use crate::peers::{Peers, Podman, available};
use crate::report::Report;
use anyhow::{Result, ensure};
use std::fs;
use std::process::Command;
use std::time::Duration;

pub(crate) const TITLE: &str = "pull of a 100 MB image from a loopback registry, empty store";

const ROUNDS: usize = 5;

pub(crate) fn ask(report: &mut Report) -> Result<()> {
    let peers = Peers::prepare()?;
    let images = Images::prepare()?;
    let address = images.address("app:1");
    let (mut ours, mut again, mut podman) = <(Sample, Sample, Sample)>::default();
    let mut floor = Sample::default();
    let mut missing = None;
    for _ in 0..ROUNDS {
        floor.push(copy(&address)?);
        let (first, second) = pull(&address)?;
        ours.push(first);
        again.push(second);
        match Podman::pull(&peers, &address) {
            Ok(time) => podman.push(time),
            Err(error) => missing = Some(error),
        }
    }
    report.sample("floor: skopeo copy into a folder, not unpacked", &floor);
    report.sample("ours, empty store", &ours);
    report.sample("ours, already there", &again);
    let podman = missing.map_or(Ok(podman), Err);
    if let Some(podman) = available(report, "podman", podman) {
        report.sample("podman pull, empty storage", &podman);
        report.faster("podman pull / ours", &podman, &ours, 2.5);
    }
    Ok(())
}

/// Pulls into an empty store, and once more in another session.
fn pull(address: &str) -> Result<(Duration, Duration)> {
    let ours = Ours::new();
    output(&mut ours.query("{ version }"))?;
    settle()?;
    let address = format!("--address={address}");
    let line = ["core", "container", "from", &address, "rootfs", "entries"];
    let first = time_command(&mut ours.command(&line))?;
    let entries = output(&mut ours.command(&line))?;
    ensure!(entries.contains("layer-0") && entries.contains("layer-1"), "it holds {entries}");
    Ok((first, time_command(&mut ours.command(&line))?))
}

fn copy(address: &str) -> Result<Duration> {
    let folder = testkit::root().join("bench-pull");
    settle()?;
    let mut command = Command::new("skopeo");
    command.args(["copy", "--quiet", "--insecure-policy", "--src-tls-verify=false"]);
    command.arg(format!("docker://{address}")).arg(format!("oci:{}", folder.display()));
    let time = time_command(&mut command)?;
    fs::remove_dir_all(&folder)?;
    Ok(time)
}

/// Writes back all that is to be written, so that nobody pays for somebody else's files.
fn settle() -> Result<()> {
    output(&mut Command::new("sync")).map(drop)
}
