//! Tools that a user would take instead of us, measured on the same root file system.
//!
//! They come from the distribution's packages, BuildKit from its sources. Some need help to run on a
//! machine like a build machine; what is done for them never makes them slower: their short-lived
//! state lies in memory, networks are off, no result is exported.

mod buildah;
mod buildkit;
mod crun;
mod podman;
mod sys;

pub(crate) use buildah::Buildah;
pub(crate) use buildkit::BuildKit;
pub(crate) use crun::Crun;
pub(crate) use podman::Podman;

use crate::measure::output;
use crate::report::Report;
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the second hierarchy of control groups is mounted on a machine that has both.
const SECOND_HIERARCHY: &str = "/sys/fs/cgroup/unified";

/// Name of the image that tools with images know the root file system by.
const IMAGE: &str = "bench-root";

/// What all peers share: a folder, the root file system, and surroundings they can run in.
pub(crate) struct Peers {
    folder: PathBuf,
}

impl Peers {
    /// Makes the root file system and the surroundings, where that was not done yet.
    pub(crate) fn prepare() -> Result<Self> {
        let peers = Self { folder: testkit::root().join("bench-peers") };
        for name in ["run", "tmp", "home", "storage"] {
            fs::create_dir_all(peers.folder.join(name))?;
        }
        if !peers.root().exists() {
            make_root(&peers.root()).context("cannot make the root file system")?;
        }
        let run = peers.folder.join("run");
        if !is_mount_point(&run)? {
            output(Command::new("mount").args(["-t", "tmpfs", "tmpfs"]).arg(run))?;
        }
        // `crun` refuses to run where a controller sits in the second hierarchy beside others in the
        // first. Without the mount it uses the first, as everybody else here does.
        if is_mount_point(Path::new(SECOND_HIERARCHY))? {
            output(Command::new("umount").arg(SECOND_HIERARCHY))?;
        }
        Ok(peers)
    }

    /// The root file system that everybody runs on.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.join("root")
    }

    /// A command of a peer. Its home, its run folder and its temporary files are not the user's.
    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
        command.env("HOME", self.folder.join("home"));
        command.env("XDG_CONFIG_HOME", self.folder.join("home"));
        command.env("XDG_RUNTIME_DIR", self.folder.join("run"));
        command.env("TMPDIR", self.folder.join("tmp"));
        command
    }

    /// Where `podman` and `buildah` keep images, as arguments.
    fn storage(&self) -> Vec<String> {
        let path = |name: &str| self.folder.join(name).display().to_string();
        let words = ["--root", &path("storage"), "--runroot", &path("run/storage")];
        let words = words.into_iter().chain(["--storage-driver", "overlay"]);
        words.map(str::to_owned).collect()
    }
}

/// Gives this program mounts of its own. To be called before it has threads.
pub(crate) fn isolate() -> Result<()> {
    sys::own_mounts().context("cannot make a mount namespace: run this as root")
}

/// A peer that runs here, or none with a line in the report that says why.
pub(crate) fn available<T>(report: &mut Report, name: &str, peer: Result<T>) -> Option<T> {
    match peer {
        Ok(peer) => Some(peer),
        Err(error) => {
            report.note(format!("{name} left out: {error:#}"));
            None
        }
    }
}

/// A build file of the chain that is measured: one `touch` a step on the given base.
fn build_file(base: &str, steps: usize) -> String {
    let steps = (0..steps).map(|step| format!("RUN [\"touch\", \"/s{step}\"]\n"));
    format!("FROM {base}\n{}", steps.collect::<String>())
}

/// The test root file system and the mount points that every real image has.
fn make_root(path: &Path) -> Result<()> {
    output(Command::new("cp").arg("-a").arg(testkit::busybox()).arg(path))?;
    for name in ["proc", "dev", "sys"] {
        fs::create_dir(path.join(name))?;
    }
    for name in ["hosts", "hostname", "resolv.conf"] {
        fs::write(path.join("etc").join(name), "")?;
    }
    Ok(())
}

fn is_mount_point(path: &Path) -> Result<bool> {
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    Ok(mounts.lines().any(|line| line.split(' ').nth(1).map(Path::new) == Some(path)))
}

/// Fails where a program is not installed.
fn installed(name: &str) -> Result<()> {
    let folders = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"];
    match folders.iter().any(|folder| Path::new(folder).join(name).exists()) {
        true => Ok(()),
        false => bail!("`{name}` is not installed"),
    }
}
