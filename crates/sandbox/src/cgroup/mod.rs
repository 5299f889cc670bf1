//! Control groups: limits of a run, and what the kernel says about them afterwards.
//!
//! Version 2 is used where its group of the engine has the controllers, else version 1; where neither
//! has them, a limit is an error and no limit is fine. An engine without root has what was delegated to
//! its user, in version 2 alone; without that it runs without limits and says so once. A group is made for a run only when there is a
//! limit to put on it, because making one costs a good part of a millisecond.
//!
//! ```text
//! <the engine's own group>/<name>/<number>   one run
//! <the engine's own group>/<name>/engine     version 2 only: the engine itself, see `v2`
//! ```
//!
//! Groups nest below the engine's own, so a run can never have more than the engine was given.

mod parse;
mod v1;
mod v2;

#[cfg(test)]
mod tests;

use crate::{Error, Limits, Oom, rootless};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long the kernel may take to let go of a group whose processes are gone.
const REMOVE_LIMIT: Duration = Duration::from_secs(2);
/// Pause between two attempts to remove a group.
const REMOVE_PAUSE: Duration = Duration::from_millis(1);
/// How deep [`sweep`] looks; real trees are far flatter.
const SWEEP_DEPTH: usize = 16;
/// The period over which processor time is counted, in microseconds. The kernel's own default.
const PERIOD: u64 = 100_000;

/// Makes groups for runs.
#[derive(Debug)]
pub(crate) struct Groups {
    version: Version,
    limits: Limits,
    next: AtomicU64,
}

#[derive(Debug)]
enum Version {
    One(v1::Tree),
    Two(v2::Tree),
}

impl Groups {
    /// Finds out how groups are made here. None when there is nothing to limit.
    pub(crate) fn prepare(
        name: &str,
        limits: Limits,
        zygote: i32,
    ) -> Result<Option<Groups>, Error> {
        if !limits.any() {
            return Ok(None);
        }
        check_name(name)?;
        match Version::find(name, &limits, zygote) {
            Ok(version) => Ok(Some(Groups { version, limits, next: AtomicU64::new(0) })),
            Err(error) if rootless::inside() => {
                tracing::warn!(%error, "no control group is delegated to this user: no limits");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// A new group with the limits on it.
    pub(crate) fn create(&self) -> Result<Group, Error> {
        let number = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        let created = match &self.version {
            Version::One(tree) => tree.create(&number, &self.limits),
            Version::Two(tree) => tree.create(&number, &self.limits),
        };
        created.map_err(Error::host("cannot make a control group"))
    }

    /// Leaves nothing behind, as far as that is possible while this process lives.
    pub(crate) fn close(&self) {
        match &self.version {
            Version::One(tree) => tree.close(),
            Version::Two(tree) => tree.close(),
        }
    }
}

impl Version {
    /// The version that this machine offers to this engine.
    fn find(name: &str, limits: &Limits, zygote: i32) -> Result<Version, Error> {
        let read = |file: &str| fs::read_to_string(file).map_err(Error::host("cannot read /proc"));
        let mounts = read("/proc/self/mountinfo")?;
        let own = parse::own(&read("/proc/self/cgroup")?, &mounts);
        match own.unified.as_deref().filter(|own| v2::usable(own)) {
            Some(unified) => {
                let place = v2::Place { own: unified, top: parse::is_top(&mounts, unified) };
                Ok(Version::Two(v2::Tree::prepare(&place, name, limits, zygote)?))
            }
            None => Ok(Version::One(v1::Tree::prepare(&own, name, limits)?)),
        }
    }
}

/// The group of one run.
#[derive(Debug)]
pub(crate) struct Group {
    /// One directory for each hierarchy; only one in version 2.
    directories: Vec<PathBuf>,
    /// What the container enters the group by: files to write to, or the directory to be cloned into.
    entrances: Vec<OwnedFd>,
    /// Where the memory figures are, when memory is limited.
    memory: Option<MemoryFiles>,
    unified: bool,
}

/// Where a hierarchy tells how memory was used.
#[derive(Debug)]
struct MemoryFiles {
    /// Has a line `oom_kill <count>`.
    events: PathBuf,
    peak: PathBuf,
    limit: u64,
}

impl Group {
    /// Whether the entrance is a directory to be cloned into.
    pub(crate) fn unified(&self) -> bool {
        self.unified
    }

    /// What the container enters the group by.
    pub(crate) fn entrances(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.entrances.iter().map(AsFd::as_fd)
    }

    /// Present if the kernel killed something in the group for want of memory.
    pub(crate) fn oom(&self) -> Option<Oom> {
        let files = self.memory.as_ref()?;
        let events = fs::read_to_string(&files.events).ok()?;
        if parse::value(&events, "oom_kill").unwrap_or(0) == 0 {
            return None;
        }
        let peak = fs::read_to_string(&files.peak).ok();
        Some(Oom { limit: files.limit, peak: peak.and_then(|text| text.trim().parse().ok()) })
    }

    /// Removes the group; its processes must be gone.
    pub(crate) async fn remove(self) {
        for directory in &self.directories {
            let mut waited = Duration::ZERO;
            while let Err(error) = remove_if_present(directory) {
                if waited >= REMOVE_LIMIT {
                    tracing::warn!("cannot remove control group {}: {error}", directory.display());
                    break;
                }
                tokio::time::sleep(REMOVE_PAUSE).await;
                waited += REMOVE_PAUSE;
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // For whoever did not come to `remove`; what is still busy is left to the next sweep.
        for directory in &self.directories {
            let _ = remove_if_present(directory);
        }
    }
}

/// Removes the groups that a dead engine left under this name, wherever it ran. Answers with the number
/// of groups removed.
pub fn sweep(cgroup_name: &str) -> Result<usize, Error> {
    check_name(cgroup_name)?;
    let mounts = fs::read_to_string("/proc/self/mountinfo")
        .map_err(Error::host("cannot read /proc/self/mountinfo"))?;
    let removed =
        parse::places(&mounts).iter().map(|place| sweep_below(place, cgroup_name, 0)).sum();
    Ok(removed)
}

fn sweep_below(directory: &Path, name: &str, depth: usize) -> usize {
    if depth > SWEEP_DEPTH {
        return 0;
    }
    let sweep = |path: PathBuf| {
        if path.file_name().is_some_and(|found| found == name) {
            remove_tree(&path)
        } else {
            sweep_below(&path, name, depth + 1)
        }
    };
    subgroups(directory).into_iter().map(sweep).sum()
}

fn remove_tree(group: &Path) -> usize {
    let below: usize = subgroups(group).iter().map(|path| remove_tree(path)).sum();
    match fs::remove_dir(group) {
        Ok(()) => below + 1,
        Err(error) => {
            tracing::warn!("cannot remove control group {}: {error}", group.display());
            below
        }
    }
}

/// The groups directly in a group. A group that vanishes meanwhile has none.
fn subgroups(group: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(group) else { return Vec::new() };
    let is_directory = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|found| found.is_dir());
    entries.flatten().filter(is_directory).map(|entry| entry.path()).collect()
}

fn check_name(name: &str) -> Result<(), Error> {
    if name.is_empty() || name.contains('/') || name.starts_with('.') || name.contains('\0') {
        return Err(Error::Invalid(format!("`{name}` cannot be the name of a control group")));
    }
    Ok(())
}

/// Makes a directory, which may be there already.
fn make_directory(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

fn remove_if_present(path: &Path) -> io::Result<()> {
    match fs::remove_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Writes a file that not every kernel has.
fn write_if_present(path: &Path, value: &str) -> io::Result<()> {
    match fs::write(path, value) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        written => written,
    }
}

/// Microseconds of processor time in each period; the kernel wants no less than a thousand.
fn quota(cpus: f64) -> u64 {
    ((cpus * PERIOD as f64) as u64).max(1_000)
}

/// The error for limits that cannot be had.
fn unlimited(controllers: &[&str], reason: impl Into<String>) -> Error {
    Error::Limit { what: controllers.join(", "), reason: reason.into() }
}

/// The controllers that limits need.
fn needed(limits: &Limits) -> Vec<&'static str> {
    let wanted = [
        ("memory", limits.memory.is_some()),
        ("pids", limits.pids.is_some()),
        ("cpu", limits.cpus.is_some()),
    ];
    wanted.into_iter().filter(|(_, wanted)| *wanted).map(|(name, _)| name).collect()
}
