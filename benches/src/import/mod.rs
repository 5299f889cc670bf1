//! How long does it take to read a large directory of the host?
//!
//! Ours is one request of a fresh session on an engine that runs. Cold means a store that has never
//! seen the directory; the peer copies it. Unchanged and with one file changed the peer is `git
//! status`, which too stats every file and reads what changed. All in turns, on one file system, with
//! what is read in memory and nothing left to be written back from before.

use crate::measure::{Sample, output, ratio, time, time_command};
use crate::ours::Ours;
use crate::report::Report;
use anyhow::{Context as _, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

pub(crate) const TITLE: &str = "import of a directory with 100,000 files, 400 MB";

const ROUNDS: usize = 6;
/// Times that a round looks at the directory as it is, and changed.
const LOOKS: usize = 3;
const DIRECTORIES: usize = 2_000;
const FILES_EACH: usize = 50;
/// Sizes go round, from few bytes to about twice the middle.
const SIZES: usize = 8_000;

#[derive(Default)]
struct Samples {
    cold: Sample,
    unchanged: Sample,
    changed: Sample,
    copy: Sample,
    status: Sample,
    status_changed: Sample,
}

pub(crate) fn ask(report: &mut Report) -> Result<()> {
    let folder = testkit::root().join("bench-import");
    let source = folder.join("source");
    make_tree(&source).context("cannot make a tree")?;
    let git = Git { repository: folder.join("repository"), tree: source.clone() };
    git.add_all().context("cannot make a repository")?;
    let mut samples = Samples::default();
    for round in 0..=ROUNDS {
        let mut these = Samples::default();
        measure(&source, &git, round, &mut these)?;
        // The first round fills caches.
        if round > 0 {
            samples.extend(these);
        }
    }
    report.sample("ours, cold", &samples.cold);
    report.sample("cp -a", &samples.copy);
    report.sample("ours, unchanged", &samples.unchanged);
    report.sample("git status", &samples.status);
    report.sample("ours, one file changed", &samples.changed);
    report.sample("git status, one file changed", &samples.status_changed);
    report.ratio_at_most("cold / cp -a", ratio(&samples.cold, &samples.copy), 0.6);
    let unchanged = ratio(&samples.unchanged, &samples.status);
    report.ratio_at_most("unchanged / git status", unchanged, 1.3);
    let changed = ratio(&samples.changed, &samples.status_changed);
    report.ratio_at_most("one file changed / git status", changed, 1.5);
    fs::remove_dir_all(&folder)?;
    Ok(())
}

fn measure(source: &Path, git: &Git, round: usize, samples: &mut Samples) -> Result<()> {
    let copied = source.with_file_name("copied");
    settle()?;
    samples.copy.push(time_command(Command::new("cp").arg("-a").args([source, &copied]))?);
    fs::remove_dir_all(&copied)?;
    let ours = Ours::new();
    import(&ours, &source.join("0/0")).context("the engine does not start")?;
    settle()?;
    let (time, first) = import(&ours, source)?;
    samples.cold.push(time);
    settle()?;
    git.status()?;
    for look in 0..LOOKS {
        samples.unchanged.push(import(&ours, source)?.0);
        samples.status.push(git.status()?);
        let changed = source.join(format!("{look}/{look}/file-7"));
        fs::write(&changed, format!("changed in round {round}, look {look}"))?;
        let (time, id) = import(&ours, source)?;
        ensure!(id != first, "another session has another directory");
        samples.changed.push(time);
        samples.status_changed.push(git.status()?);
    }
    Ok(())
}

impl Samples {
    fn extend(&mut self, other: Samples) {
        self.cold.extend(other.cold);
        self.unchanged.extend(other.unchanged);
        self.changed.extend(other.changed);
        self.copy.extend(other.copy);
        self.status.extend(other.status);
        self.status_changed.extend(other.status_changed);
    }
}

/// A repository whose files are the tree, kept outside of it.
struct Git {
    repository: PathBuf,
    tree: PathBuf,
}

impl Git {
    fn command(&self) -> Command {
        let mut command = Command::new("git");
        command.env("GIT_DIR", &self.repository).env("GIT_WORK_TREE", &self.tree);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").current_dir(&self.tree);
        command.args(["-c", "core.untrackedCache=false", "-c", "core.fsmonitor=false"]);
        command.args(["-c", "gc.auto=0", "-c", "core.compression=0"]);
        command
    }

    fn add_all(&self) -> Result<()> {
        output(self.command().args(["init", "-q"]))?;
        output(self.command().args(["add", "-A"]))?;
        let who = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"];
        output(self.command().args(who).args(["commit", "-q", "-m", "all"]))?;
        Ok(())
    }

    fn status(&self) -> Result<Duration> {
        time_command(self.command().args(["status", "--porcelain"]))
    }
}

fn make_tree(source: &Path) -> Result<()> {
    let bytes: Vec<u8> = (0..SIZES).map(|number| number as u8).collect();
    for number in 0..DIRECTORIES {
        let directory = source.join(format!("{}/{number}", number % 40));
        fs::create_dir_all(&directory)?;
        for file in 0..FILES_EACH {
            let size = (file * SIZES / FILES_EACH + SIZES / 100) % SIZES;
            fs::write(directory.join(format!("file-{file}")), &bytes[..size])?;
        }
    }
    Ok(())
}

/// Writes back all that is to be written, so that nobody pays for somebody else's files.
fn settle() -> Result<()> {
    output(&mut Command::new("sync")).map(|_| ())
}

/// Imports a directory in a session of its own and gives its id there.
fn import(ours: &Ours, path: &Path) -> Result<(Duration, String)> {
    let (_session, mut wire) = ours.session()?;
    time(|| wire.import(path))
}
