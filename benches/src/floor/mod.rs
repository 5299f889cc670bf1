//! The floor: the least that the kernel takes for a container, without any engine around it.
//!
//! New namespaces (mount, pid, ipc, uts, net, cgroup), a `volatile` overlay with one lower, its root
//! pivoted to, a static program executed and waited for. No isolation beyond that, no cgroup, no
//! streams, no result kept. It runs as a program of its own (`bench floor ...`), small and with one
//! thread, because the size of a process shows in the time it takes to clone it.

mod sys;

use crate::measure::{Sample, output};
use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// The hidden word that runs the floor program.
pub(crate) const WORD: &str = "floor";

/// How much a container of the floor has.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// The root file system alone.
    Bare,
    /// The mounts that every container has: `/proc`, `/dev`, `/dev/pts`, `/dev/shm`, `/sys`.
    Furnished,
    /// The same in a network namespace that was made before and only has to be entered.
    Pooled,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Bare => "bare",
            Kind::Furnished => "furnished",
            Kind::Pooled => "pooled",
        }
    }
}

/// Starts at the beginning of a turn that neither the floor nor who is held against it counts: the kernel is still
/// taking down what the other has left, and the pages of the floor program are new.
pub(crate) const TURN: usize = 2;

/// Starts the floor program on a root file system and gives the times of a turn of so many starts.
pub(crate) fn measure(kind: Kind, root: &Path, count: usize) -> Result<Sample> {
    let work = testkit::root().join("bench-floor");
    let _ = std::fs::remove_dir_all(&work);
    let mut command = Command::new(std::env::current_exe()?);
    command.args([WORD, kind.word()]).arg(root).arg(&work).arg((TURN + count).to_string());
    let text = output(&mut command)?;
    let times = text.lines().map(|line| Ok(Duration::from_nanos(line.parse()?)));
    let times = times.collect::<Result<Sample>>().context("the floor program prints numbers")?;
    Ok(times.without_first(TURN))
}

/// `bench floor <kind> <root> <work> <count>`: prints nanoseconds, a line for each start.
pub(crate) fn program(words: &[String]) -> ExitCode {
    match starts(words) {
        Ok(times) => {
            times.iter().for_each(|time| println!("{}", time.as_nanos()));
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn starts(words: &[String]) -> Result<Vec<Duration>> {
    let [kind, root, work, count] = words else {
        anyhow::bail!("usage: bench floor bare|furnished|pooled <root> <work> <count>")
    };
    let pooled = kind == Kind::Pooled.word();
    let furnished = pooled || kind == Kind::Furnished.word();
    let (root, work) = (PathBuf::from(root), PathBuf::from(work));
    let stage = work.join("stage");
    std::fs::create_dir_all(&stage)?;
    let mut times = Vec::new();
    for number in 0..count.parse::<usize>()? {
        let (upper, inner) = (work.join(format!("u{number}")), work.join(format!("w{number}")));
        let network = if pooled { Some(sys::network()?) } else { None };
        let begin = Instant::now();
        std::fs::create_dir(&upper)?;
        std::fs::create_dir(&inner)?;
        let overlay = sys::overlay(&root, &upper, &inner).context("cannot make an overlay")?;
        sys::run(overlay, &stage, furnished, network.as_ref())?;
        times.push(begin.elapsed());
    }
    Ok(times)
}
