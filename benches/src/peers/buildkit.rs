//! BuildKit: its daemon, built from its sources through the Go proxy, on the distribution's `runc`.

use super::{Peers, Podman, build_file, installed};
use crate::measure::{output, time_command};
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use testkit::process::{signal, tree, wait_until};

/// The version that is measured. Another one is built anew.
const VERSION: &str = "v0.33.0";
const MODULE: &str = "github.com/moby/buildkit";
const PROGRAMS: [&str; 2] = ["buildkitd", "buildctl"];

/// How long the daemon may take to answer first, and to end.
const START_TIME: Duration = Duration::from_secs(60);
const STOP_TIME: Duration = Duration::from_secs(20);

/// A running daemon on an empty state.
pub(crate) struct BuildKit<'a> {
    peers: &'a Peers,
    programs: PathBuf,
    folder: PathBuf,
    base: Option<Base>,
    daemon: Child,
    /// From the start of the daemon to its first answer.
    pub(crate) start: Duration,
}

/// The image that builds start from.
struct Base {
    layout: PathBuf,
    digest: String,
}

impl<'a> BuildKit<'a> {
    /// Starts a daemon on an empty state, built first if that was never done.
    pub(crate) fn start(peers: &'a Peers) -> Result<Self> {
        installed("runc")?;
        let programs = build()?;
        let folder = peers.folder.join("buildkit");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)?;
        let log = peers.folder.join("buildkit.log");
        let mut command = peers.command(programs.join("buildkitd"));
        command.arg("--root").arg(folder.join("state")).arg("--addr").arg(address(&folder));
        command.args(["--oci-worker-binary=runc", "--oci-worker-snapshotter=overlayfs"]);
        command.args(["--oci-worker-net=host", "--otel-socket-path"]).arg(folder.join("otel.sock"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(fs::File::create(&log)?);
        let begin = Instant::now();
        let daemon = command.spawn().context("cannot start `buildkitd`")?;
        let start = Duration::ZERO;
        let mut kit = Self { peers, programs, folder, base: None, daemon, start };
        wait_until(START_TIME, || {
            output(kit.client().args(["debug", "workers"])).is_ok() || has_ended(&mut kit.daemon)
        });
        kit.start = begin.elapsed();
        if has_ended(&mut kit.daemon) || kit.start >= START_TIME {
            let log = fs::read_to_string(log).unwrap_or_default();
            bail!("the daemon does not answer: {}", log.lines().last().unwrap_or_default());
        }
        Ok(kit)
    }

    /// Writes the build file and builds it once, so that every step is cached.
    pub(crate) fn prepare_chain(&mut self, steps: usize) -> Result<()> {
        let layout = Podman::prepare(self.peers).context("the image is made by podman")?.save()?;
        let index: Value = serde_json::from_str(&fs::read_to_string(layout.join("index.json"))?)?;
        let digest = index["manifests"][0]["digest"].as_str().context("a layout has a manifest")?;
        self.base = Some(Base { digest: digest.to_owned(), layout });
        let context = self.folder.join("context");
        fs::create_dir_all(&context)?;
        fs::write(context.join("Dockerfile"), build_file("base", steps))?;
        self.cached().context("a first build does not run")?;
        Ok(())
    }

    /// Builds every step anew.
    pub(crate) fn cold(&self) -> Result<Duration> {
        self.build(&["--no-cache"])
    }

    /// Builds with every step in the cache.
    pub(crate) fn cached(&self) -> Result<Duration> {
        self.build(&[])
    }

    /// Memory of the daemon and everything it started, shared pages counted by part.
    pub(crate) fn memory(&self) -> u64 {
        let processes = tree(self.daemon.id() as i32);
        processes.iter().map(|process| process.proportional_memory()).sum()
    }

    fn build(&self, options: &[&str]) -> Result<Duration> {
        let base = self.base.as_ref().context("the chain was not prepared")?;
        let context = self.folder.join("context").display().to_string();
        let mut command = self.client();
        command.args(["build", "--progress=quiet", "--frontend=dockerfile.v0"]).args(options);
        command.args(["--local", &format!("context={context}")]);
        command.args(["--local", &format!("dockerfile={context}")]);
        command.args(["--oci-layout", &format!("base={}", base.layout.display())]);
        command.args(["--opt", &format!("context:base=oci-layout://base@{}", base.digest)]);
        command.args(["--opt", "force-network-mode=none"]);
        time_command(&mut command)
    }

    fn client(&self) -> Command {
        let mut command = self.peers.command(self.programs.join("buildctl"));
        command.arg("--addr").arg(address(&self.folder));
        command
    }
}

impl Drop for BuildKit<'_> {
    /// Asks the daemon to end, and kills it when it does not.
    fn drop(&mut self) {
        signal(self.daemon.id() as i32, rustix::process::Signal::TERM);
        wait_until(STOP_TIME, || has_ended(&mut self.daemon));
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

fn has_ended(child: &mut Child) -> bool {
    child.try_wait().is_ok_and(|status| status.is_some())
}

fn address(folder: &Path) -> String {
    format!("unix://{}", folder.join("socket").display())
}

/// Folder with the programs, built if they are not there. BuildKit's module has excludes, which
/// `go install` refuses, so a module of ours asks for its packages.
fn build() -> Result<PathBuf> {
    let folder = testkit::tools().join(format!("buildkit-{VERSION}"));
    if PROGRAMS.iter().all(|name| folder.join(name).exists()) {
        return Ok(folder);
    }
    let module = folder.join("module");
    let _ = fs::remove_dir_all(&module);
    fs::create_dir_all(&module)?;
    let go = || {
        let mut command = Command::new("go");
        command.current_dir(&module);
        command
    };
    output(go().arg("version")).context("Go is needed to build it")?;
    println!("  building BuildKit {VERSION} from its sources, once; this takes minutes");
    output(go().args(["mod", "init", "tools"]))?;
    let packages = PROGRAMS.map(|name| format!("{MODULE}/cmd/{name}"));
    let versions = packages.each_ref().map(|package| format!("{package}@{VERSION}"));
    output(go().arg("get").args(versions)).context("cannot get its sources")?;
    output(go().args(["build", "-trimpath", "-o", "made/"]).args(packages))?;
    for name in PROGRAMS {
        fs::rename(module.join("made").join(name), folder.join(name))?;
    }
    Ok(folder)
}
