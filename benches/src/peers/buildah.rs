//! `buildah bud`: a build file with one `RUN` a step.

use super::{IMAGE, Peers, Podman, build_file, installed};
use crate::measure::time_command;
use anyhow::{Context as _, Result};
use std::fs;
use std::time::Duration;

/// Buildah with a build file on the image of the root file system.
pub(crate) struct Buildah<'a>(&'a Peers);

impl<'a> Buildah<'a> {
    /// Writes the build file and builds it once, so that every step is cached.
    pub(crate) fn prepare(peers: &'a Peers, steps: usize) -> Result<Self> {
        installed("buildah")?;
        Podman::prepare(peers).context("the image is made by podman")?;
        let folder = peers.folder.join("buildah");
        fs::create_dir_all(folder.join("context"))?;
        let base = format!("localhost/{IMAGE}");
        fs::write(folder.join("Containerfile"), build_file(&base, steps))?;
        let buildah = Self(peers);
        buildah.cold().context("a first build does not run")?;
        Ok(buildah)
    }

    /// Builds every step anew.
    pub(crate) fn cold(&self) -> Result<Duration> {
        self.build(&["--layers", "--no-cache"])
    }

    /// Builds with every step in the cache.
    pub(crate) fn cached(&self) -> Result<Duration> {
        self.build(&["--layers"])
    }

    fn build(&self, options: &[&str]) -> Result<Duration> {
        let folder = self.0.folder.join("buildah");
        let mut command = self.0.command("buildah");
        command.args(self.0.storage()).arg("bud").args(options);
        command.args(["-q", "--pull-never", "--network=none", "--runtime=crun", "-t", "chain"]);
        command.args(["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"]);
        command.arg("-f").arg(folder.join("Containerfile")).arg(folder.join("context"));
        time_command(&mut command)
    }
}
