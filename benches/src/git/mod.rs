//! How long does it take to get the tree of a commit from a remote with 10,000 files?
//!
//! The remote is a `git daemon` on loopback. Ours is a query in an open session, up to the entries of the tree, with an
//! empty store; the peer is `git clone --depth 1` of the same remote onto the same file system. Unchanged is the same
//! query in a new session: the remote is asked what it has, and nothing is fetched.

use crate::measure::{Sample, output, ratio, time, time_command};
use crate::ours::Ours;
use crate::report::Report;
use anyhow::{Result, ensure};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) const TITLE: &str = "tree of a commit with 10,000 files, from a remote on loopback";

const ROUNDS: usize = 7;
const FOLDERS: usize = 100;
const FILES: usize = 100;
/// How long the server may take to listen.
const START: Duration = Duration::from_secs(10);
const GOAL_FILES: f64 = 1.2;
const GOAL_REPOSITORY: f64 = 1.6;
const GOAL_UNCHANGED: Duration = Duration::from_millis(30);

pub(crate) fn ask(report: &mut Report) -> Result<()> {
    let remote = Remote::start()?;
    let (mut clone, mut files, mut repository) = <(Sample, Sample, Sample)>::default();
    let mut unchanged = Sample::default();
    for _ in 0..ROUNDS {
        clone.push(remote.clone()?);
        let (first, again) = tree(&remote, "tree(discardGitDir: true)")?;
        files.push(first);
        unchanged.push(again);
        repository.push(tree(&remote, "tree")?.0);
    }
    report.sample("git clone --depth 1", &clone);
    report.sample("ours, files alone", &files);
    report.sample("ours, with .git", &repository);
    report.sample("ours, unchanged, another session", &unchanged);
    report.ratio_at_most("files alone / git clone", ratio(&files, &clone), GOAL_FILES);
    report.ratio_at_most("with .git / git clone", ratio(&repository, &clone), GOAL_REPOSITORY);
    report.time_at_most("unchanged", unchanged.median(), GOAL_UNCHANGED);
    Ok(())
}

/// The first tree in an empty store, and the same in a new session.
fn tree(remote: &Remote, tree: &str) -> Result<(Duration, Duration)> {
    let ours = Ours::new();
    let document =
        format!("{{ git(url: {:?}) {{ head {{ {tree} {{ entries }} }} }} }}", remote.url());
    let query = || -> Result<Duration> {
        let (_session, mut wire) = ours.session()?;
        let (took, reply) = time(|| wire.ask(&document, "entries"))?;
        let reply = reply.to_string();
        ensure!(reply.contains("folder-99/"), "{reply}");
        Ok(took)
    };
    Ok((query()?, query()?))
}

/// A repository and the daemon that serves it.
struct Remote {
    folder: PathBuf,
    port: u16,
    daemon: Child,
}

impl Remote {
    fn start() -> Result<Self> {
        let folder = testkit::root().join("bench-git");
        let work = folder.join("r");
        for directory in 0..FOLDERS {
            let below = work.join(format!("folder-{directory}"));
            fs::create_dir_all(&below)?;
            for file in 0..FILES {
                let text =
                    format!("{directory} {file}\n").repeat(1 + (directory * 31 + file * 17) % 400);
                fs::write(below.join(format!("file-{file}.txt")), text)?;
            }
        }
        let script = "git init -q && git add . && git -c user.name=a -c user.email=b -c gc.auto=0 commit -qm all && git gc -q";
        output(Command::new("sh").args(["-ec", script]).current_dir(&work))?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        // The program itself: `git daemon` starts it as a child, which would outlive the kill.
        let programs = output(Command::new("git").arg("--exec-path"))?;
        let mut daemon = Command::new(Path::new(programs.trim_end()).join("git-daemon"));
        daemon.args(["--export-all", "--reuseaddr", "--listen=127.0.0.1"]);
        daemon.arg(format!("--port={port}")).arg(format!("--base-path={}", folder.display()));
        let daemon = daemon.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let until = Instant::now() + START;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            ensure!(Instant::now() < until, "`git daemon` does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(Self { folder, port, daemon })
    }

    fn url(&self) -> String {
        format!("git://127.0.0.1:{}/r", self.port)
    }

    fn clone(&self) -> Result<Duration> {
        let target = self.folder.join("clone");
        output(&mut Command::new("sync"))?;
        let mut command = Command::new("git");
        command.args(["clone", "-q", "--depth", "1", &self.url()]).arg(&target);
        let took = time_command(&mut command)?;
        remove(&target)?;
        Ok(took)
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
        let _ = remove(&self.folder);
    }
}

fn remove(path: &Path) -> Result<()> {
    Ok(fs::remove_dir_all(path)?)
}
