//! How long does a Dockerfile of ten steps take, against `buildah bud` on the same root?
//!
//! Ours is once a whole run of the program with the engine running, once a query in a session. Cold means that
//! no step was ever run: a variable before the first one is new. The peer builds the same steps with its
//! layers in the cache, or without it.

use crate::document::quoted;
use crate::measure::{Sample, time, time_command};
use crate::ours::{Ours, fresh};
use crate::peers::{Buildah, Peers, available};
use crate::report::Report;
use crate::wire::Wire;
use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use testkit::registry::Registry;

pub(crate) const TITLE: &str = "dockerBuild of a file with ten RUN steps, no network";

const STEPS: usize = 10;
const ROUNDS: usize = 10;

pub(crate) fn ask(report: &mut Report) -> Result<()> {
    let peers = Peers::prepare()?;
    let buildah = available(report, "buildah", Buildah::prepare(&peers, STEPS));
    let registry = Registry::start();
    let ours = Ours::alone();
    let (_session, mut wire) = ours.session()?;
    let base = publish(&mut wire, &peers.root(), &registry)?;
    let file = File { path: testkit::root().join("bench-docker-build"), base };
    let (mut cold, mut cached) = <(Sample, Sample)>::default();
    let (mut cold_inside, mut cached_inside) = <(Sample, Sample)>::default();
    let (mut peer_cold, mut peer_cached) = <(Sample, Sample)>::default();
    for _ in 0..ROUNDS {
        file.write()?;
        cold.push(time_command(&mut file.line(&ours))?);
        cached.push(time_command(&mut file.line(&ours))?);
        file.write()?;
        cold_inside.push(file.inside(&mut wire)?);
        cached_inside.push(file.inside(&mut wire)?);
        if let Some(buildah) = &buildah {
            peer_cold.push(buildah.cold()?);
            peer_cached.push(buildah.cached()?);
        }
    }
    report.sample("ours, one run of the program, cold", &cold);
    report.sample("ours, one run of the program, cached", &cached);
    report.sample("ours, in a session, cold", &cold_inside);
    report.sample("ours, in a session, cached", &cached_inside);
    if buildah.is_some() {
        report.sample("buildah bud, cold", &peer_cold);
        report.sample("buildah bud, cached", &peer_cached);
        report.faster("buildah / ours, cold", &peer_cold, &cold, 25.0);
        report.faster("buildah / ours, cached", &peer_cached, &cached, 6.0);
        report.faster("buildah / ours in a session, cold", &peer_cold, &cold_inside, 30.0);
        report.faster("buildah / ours in a session, cached", &peer_cached, &cached_inside, 30.0);
    }
    fs::remove_dir_all(&file.path)?;
    Ok(())
}

/// Puts the root into a registry, and gives its address with the digest.
fn publish(wire: &mut Wire, root: &Path, registry: &Registry) -> Result<String> {
    let directory = wire.import(root)?;
    let address = quoted(&format!("{}/bench-root:1", registry.address()));
    let document = format!(
        "{{ container {{ withRootfs(directory: {}) {{ publish(address: {address}) }} }} }}",
        quoted(&directory)
    );
    wire.ask_text(&document, "publish")
}

/// The build context.
struct File {
    path: PathBuf,
    base: String,
}

impl File {
    /// Writes a file whose steps never ran.
    fn write(&self) -> Result<()> {
        fs::create_dir_all(&self.path)?;
        let steps = (0..STEPS).map(|step| format!("RUN [\"touch\", \"/s{step}\"]\n"));
        let head = format!("FROM {}\nENV ROUND={}\n", self.base, fresh());
        fs::write(self.path.join("Dockerfile"), head + &steps.collect::<String>())?;
        Ok(())
    }

    fn line(&self, ours: &Ours) -> Command {
        let path = format!("--path={}", self.path.display());
        ours.command(&["core", "host", "directory", &path, "docker-build", "sync"])
    }

    fn inside(&self, wire: &mut Wire) -> Result<Duration> {
        let path = quoted(&self.path.to_string_lossy());
        let document = format!(
            "{{ host {{ directory(path: {path}, noCache: true) {{ dockerBuild {{ sync }} }} }} }}"
        );
        Ok(time(|| wire.ask_text(&document, "sync"))?.0)
    }
}
