//! What does a command cost that has a network, and how fast is that network?
//!
//! The floor enters a network namespace that was made before and has no link at all. The server of the
//! download is in a network of its own behind the host; the host itself fetches from it in turns.

use crate::floor::{self, Kind, TURN};
use crate::measure::{Sample, ratio, time_command};
use crate::ours::{Connection, Ours, fresh};
use crate::peers::{Peers, Podman, available};
use crate::report::Report;
use anyhow::{Context as _, Result};
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::time::Duration;
use testkit::Machine;

pub(crate) const TITLE: &str = "one withExec([\"true\"]) with a network, and a download of 500 MB";

const ROUNDS: usize = 10;
const WARM_UP: usize = 20;
/// Of ours and of the floor, in each round.
const STARTS: usize = 20;
const DOWNLOADS: usize = 11;
const BYTES: usize = 500_000_000;

pub(crate) fn ask(report: &mut Report) -> Result<()> {
    let peers = Peers::prepare()?;
    steps(report, &peers)?;
    downloads(report, &peers)
}

fn steps(report: &mut Report, peers: &Peers) -> Result<()> {
    let podman = available(report, "podman", Podman::prepare(peers));
    let podman = podman.filter(|podman| {
        let first = podman.run_on_bridge().context("a first container on the bridge does not run");
        available(report, "podman", first).is_some()
    });
    let ours = Ours::new();
    let mut connection = ours.connect(&peers.root())?;
    for _ in 0..WARM_UP {
        step(&mut connection)?;
    }
    let (mut sample, mut floor, mut peer) =
        (Sample::default(), Sample::default(), Sample::default());
    for _ in 0..ROUNDS {
        let steps = (0..TURN + STARTS).map(|_| step(&mut connection));
        sample.extend(steps.collect::<Result<Sample>>()?.without_first(TURN));
        floor.extend(floor::measure(Kind::Pooled, &peers.root(), STARTS)?);
    }
    // Not in turns with ours: the kernel takes down a peer's network for some time after its end, and who
    // comes next would pay for that.
    if let Some(podman) = &podman {
        for _ in 0..ROUNDS {
            peer.push(podman.run_on_bridge()?);
        }
    }
    report.sample("ours", &sample);
    report.sample("floor with /proc, /dev, /sys and a network namespace made before", &floor);
    report.ratio_at_most("a step with a network / floor", ratio(&sample, &floor), 2.0);
    if podman.is_some() {
        report.sample("podman run --rm --network=bridge", &peer);
        report.faster("podman / a step with a network", &peer, &sample, 60.0);
    }
    Ok(())
}

fn step(connection: &mut Connection) -> Result<Duration> {
    connection.time_exit(connection.document().env("ROUND", &fresh()).exec(&["true"]))
}

fn downloads(report: &mut Report, peers: &Peers) -> Result<()> {
    let machine = Machine::new(1500);
    let server = serve(&machine)?;
    let shell = peers.root().join("bin/busybox");
    let ours = Ours::new();
    ours.start_in(&machine);
    let mut connection = ours.connect(&peers.root())?;
    let script = format!("nc {} {} >/dev/null", server.ip(), server.port());
    let (mut inside, mut host) = (Sample::default(), Sample::default());
    for _ in 0..DOWNLOADS {
        let document = connection.document().env("ROUND", &fresh()).exec(&["sh", "-c", &script]);
        inside.push(connection.time_exit(document)?);
        let mut command = Command::new("nsenter");
        command.args(machine.entrance()).arg(&shell).args(["sh", "-c", &script]);
        host.push(time_command(&mut command)?);
    }
    report.sample("500 MB from another network, in a container", &inside);
    report.sample("the same on the host", &host);
    let rate = |sample: &Sample| BYTES as f64 / 1e6 / sample.median().as_secs_f64();
    report.figure("rate in a container", format!("{:.0} MB/s", rate(&inside)));
    report.figure("rate on the host", format!("{:.0} MB/s", rate(&host)));
    report.ratio_at_most("host's rate / container's rate", ratio(&inside, &host), 1.0 / 0.8);
    Ok(())
}

/// A server in the machine's internet that sends the bytes to everybody.
fn serve(machine: &Machine) -> Result<SocketAddr> {
    let listener = machine.outside(|| TcpListener::bind((Machine::INTERNET, 0)))?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        let block = vec![0x5a; 1 << 20];
        while let Ok((mut stream, _)) = listener.accept() {
            let mut left = BYTES;
            while left > 0 && stream.write_all(&block[..left.min(block.len())]).is_ok() {
                left = left.saturating_sub(block.len());
            }
        }
    });
    Ok(address)
}
