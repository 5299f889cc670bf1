//! `podman run` and `podman pull`.

use super::{IMAGE, Peers, installed};
use crate::measure::{output, time_command};
use anyhow::{Context as _, Result};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Podman with the root file system as an image.
pub(crate) struct Podman<'a>(&'a Peers);

impl<'a> Podman<'a> {
    /// Imports the root file system, unless that was done, and sees that a container runs.
    pub(crate) fn prepare(peers: &'a Peers) -> Result<Self> {
        installed("podman")?;
        installed("crun")?;
        let podman = Self(peers);
        let exists = output(podman.command().args(["image", "exists", IMAGE])).is_ok();
        if !exists {
            let archive = peers.folder.join("root.tar");
            let root = peers.root();
            output(Command::new("tar").arg("-C").arg(root).arg("-cf").arg(&archive).arg("."))?;
            output(podman.command().args(["import", "--quiet"]).arg(archive).arg(IMAGE))?;
        }
        podman.run().context("a first container does not run")?;
        Ok(podman)
    }

    /// Runs `true` in a container without a network. Limits are given, because the defaults are
    /// higher than a process without the right to raise them may set.
    pub(crate) fn run(&self) -> Result<Duration> {
        self.run_in("none")
    }

    /// Runs `true` in a container on its bridge.
    pub(crate) fn run_on_bridge(&self) -> Result<Duration> {
        self.run_in("bridge")
    }

    fn run_in(&self, network: &str) -> Result<Duration> {
        let mut command = self.command();
        command.args(["run", "--rm", &format!("--network={network}")]);
        command.args(["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"]);
        time_command(command.args([IMAGE, "true"]))
    }

    /// Pulls an image into storage of its own that is empty before and gone afterwards.
    pub(crate) fn pull(peers: &Peers, address: &str) -> Result<Duration> {
        installed("podman")?;
        let folder = peers.folder.join("pull");
        let mut command = peers.command("podman");
        command.arg("--root").arg(&folder).arg("--runroot").arg(peers.folder.join("run/pull"));
        command.args(["--storage-driver", "overlay", "--events-backend=none"]);
        command.arg("--tmpdir").arg(peers.folder.join("run/libpod-pull"));
        command.args(["pull", "--quiet", "--tls-verify=false", address]);
        output(&mut Command::new("sync"))?;
        let time = time_command(&mut command)?;
        // What is mounted below goes with the mount namespace; this only has to make room.
        output(Command::new("rm").arg("-rf").arg(&folder))?;
        Ok(time)
    }

    /// The image as a folder in the layout of the Open Container Initiative.
    pub(super) fn save(&self) -> Result<PathBuf> {
        let folder = self.0.folder.join("oci");
        if !folder.exists() {
            let mut command = self.command();
            output(command.args(["save", "-q", "--format=oci-dir", "-o"]).arg(&folder).arg(IMAGE))?;
        }
        Ok(folder)
    }

    fn command(&self) -> Command {
        let mut command = self.0.command("podman");
        command.args(self.0.storage()).arg("--tmpdir").arg(self.0.folder.join("run/libpod"));
        command.args(["--cgroup-manager=cgroupfs", "--events-backend=none", "--runtime=crun"]);
        command
    }
}
