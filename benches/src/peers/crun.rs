//! `crun run` of a bundle: the quickest of the installed runtimes, without an engine around it.

use super::{Peers, installed};
use crate::measure::{output, time_command};
use crate::ours::fresh;
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

/// crun with a bundle whose root is the plain folder: not even an overlay is mounted for it.
pub(crate) struct Crun<'a>(&'a Peers);

impl<'a> Crun<'a> {
    /// Writes the bundle and sees that it runs.
    pub(crate) fn prepare(peers: &'a Peers) -> Result<Self> {
        installed("crun")?;
        let bundle = peers.folder.join("bundle");
        if !bundle.exists() {
            fs::create_dir(&bundle)?;
            output(peers.command("crun").arg("spec").current_dir(&bundle))?;
            let file = bundle.join("config.json");
            let mut spec: Value = serde_json::from_str(&fs::read_to_string(&file)?)?;
            spec["process"]["terminal"] = json!(false);
            spec["process"]["args"] = json!(["true"]);
            // The default raises a limit, which takes a right that not every root has.
            spec["process"]["rlimits"] = json!([]);
            spec["root"] = json!({ "path": peers.root(), "readonly": false });
            fs::write(&file, spec.to_string())?;
        }
        let crun = Self(peers);
        crun.run().context("a first container does not run")?;
        Ok(crun)
    }

    /// Runs `true` in a container with a network namespace of its own.
    pub(crate) fn run(&self) -> Result<Duration> {
        let mut command = self.0.command("crun");
        command.arg("--root").arg(self.0.folder.join("run/crun")).arg("run");
        command.arg("--bundle").arg(self.0.folder.join("bundle"));
        time_command(command.arg(format!("bench-{}", fresh())))
    }
}
