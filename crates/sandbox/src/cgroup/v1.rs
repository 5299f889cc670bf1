//! Version 1: a hierarchy for each controller, entered by writing to a file.

use super::parse::Own;
use super::{Group, MemoryFiles, PERIOD, make_directory, quota, unlimited, write_if_present};
use crate::{Error, Limits};
use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Controllers, and the files that limits are written to.
const MEMORY: (&str, &str) = ("memory", "memory.limit_in_bytes");
const PIDS: (&str, &str) = ("pids", "pids.max");
const CPU: (&str, &str) = ("cpu", "cpu.cfs_quota_us");

/// The groups that runs nest in, one for each controller that is needed.
#[derive(Debug)]
pub(super) struct Tree {
    memory: Option<PathBuf>,
    pids: Option<PathBuf>,
    cpu: Option<PathBuf>,
}

impl Tree {
    /// Makes the group that runs nest in, in each hierarchy that is needed.
    pub(super) fn prepare(own: &Own, name: &str, limits: &Limits) -> Result<Tree, Error> {
        let base = |wanted: bool, (controller, file): (&str, &str), own: &Option<PathBuf>| {
            if !wanted {
                return Ok(None);
            }
            let Some(own) = own else {
                return Err(unlimited(&[controller], "this host has no control group for it"));
            };
            let base = own.join(name);
            make_directory(&base).map_err(|error| {
                unlimited(&[controller], format!("cannot make `{}`: {error}", base.display()))
            })?;
            if !base.join(file).exists() {
                return Err(unlimited(&[controller], format!("this kernel has no `{file}`")));
            }
            Ok(Some(base))
        };
        Ok(Tree {
            memory: base(limits.memory.is_some(), MEMORY, &own.memory)?,
            pids: base(limits.pids.is_some(), PIDS, &own.pids)?,
            cpu: base(limits.cpus.is_some(), CPU, &own.cpu)?,
        })
    }

    /// A group in each hierarchy, with the limits on it.
    pub(super) fn create(&self, number: &str, limits: &Limits) -> io::Result<Group> {
        let mut group =
            Group { directories: Vec::new(), entrances: Vec::new(), memory: None, unified: false };
        if let (Some(base), Some(bytes)) = (&self.memory, limits.memory) {
            let directory = enter(&mut group, base.join(number))?;
            limit_memory(&directory, bytes)?;
            group.memory = Some(MemoryFiles {
                events: directory.join("memory.oom_control"),
                peak: directory.join("memory.max_usage_in_bytes"),
                limit: bytes,
            });
        }
        if let (Some(base), Some(pids)) = (&self.pids, limits.pids) {
            let directory = enter(&mut group, base.join(number))?;
            fs::write(directory.join(PIDS.1), pids.to_string())?;
        }
        if let (Some(base), Some(cpus)) = (&self.cpu, limits.cpus) {
            let directory = enter(&mut group, base.join(number))?;
            fs::write(directory.join("cpu.cfs_period_us"), PERIOD.to_string())?;
            fs::write(directory.join(CPU.1), quota(cpus).to_string())?;
        }
        Ok(group)
    }

    /// Removes the groups that runs nested in.
    pub(super) fn close(&self) {
        for base in [&self.memory, &self.pids, &self.cpu].into_iter().flatten() {
            if let Err(error) = super::remove_if_present(base) {
                tracing::warn!("cannot remove control group {}: {error}", base.display());
            }
        }
    }
}

/// Makes the directory, unless another controller of the same hierarchy has, and opens its entrance.
fn enter(group: &mut Group, directory: PathBuf) -> io::Result<PathBuf> {
    if !group.directories.contains(&directory) {
        fs::create_dir(&directory)?;
        group.directories.push(directory.clone());
        let entrance = OpenOptions::new().write(true).open(directory.join("cgroup.procs"))?;
        group.entrances.push(OwnedFd::from(entrance));
    }
    Ok(directory)
}

/// Swap counts too, where the kernel counts it, or the limit would only move memory to the disk.
fn limit_memory(directory: &Path, bytes: u64) -> io::Result<()> {
    fs::write(directory.join(MEMORY.1), bytes.to_string())?;
    write_if_present(&directory.join("memory.memsw.limit_in_bytes"), &bytes.to_string())
}
