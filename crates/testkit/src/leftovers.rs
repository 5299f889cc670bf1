//! What an engine may leave behind, looked for by what belongs to its state folder.

use crate::process::{Process, tree, with_argument, with_environment};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// All that an engine has while it runs, to look for when it does not any more.
#[derive(Clone, Debug, Default)]
pub struct Holdings {
    /// Processes of the engine and of everything it started.
    pub processes: Vec<Process>,
    /// Cgroup folders that are not the test's own.
    pub cgroups: BTreeSet<PathBuf>,
}

impl Holdings {
    /// What the engine of a state folder has now.
    pub fn of(state: &Path) -> Self {
        let mut processes = Vec::new();
        for engine in engines(state) {
            processes.extend(tree(engine.pid));
        }
        let own = Process::of(std::process::id() as i32).map(|own| own.cgroups());
        let own = own.unwrap_or_default();
        let lines = processes.iter().flat_map(Process::cgroups).filter(|line| !own.contains(line));
        let cgroups = lines.flat_map(|line| cgroup_folders(&line)).collect();
        Self { processes, cgroups }
    }

    /// Adds what another look found.
    pub fn merge(&mut self, other: Self) {
        self.processes.extend(other.processes);
        self.cgroups.extend(other.cgroups);
    }

    /// What of it is still there after a while. Processes and cgroups go in their own time.
    pub fn remaining(&self, time: Duration) -> Vec<String> {
        let left = || {
            let processes = self.processes.iter().filter(|process| process.is_alive());
            let processes = processes
                .map(|process| format!("process {}: {}", process.pid, process.arguments()));
            let cgroups = self.cgroups.iter().filter(|path| path.exists());
            let cgroups = cgroups.map(|path| format!("cgroup {}", path.display()));
            processes.chain(cgroups).collect::<Vec<String>>()
        };
        crate::process::wait_until(time, || left().is_empty());
        left()
    }
}

/// Engines of a state folder: processes of ours that name it and outlive their client.
pub fn engines(state: &Path) -> Vec<Process> {
    let name = state.to_string_lossy();
    let variable = format!("{}={name}\0", protocol::env::STATE_DIR);
    let mut found = with_environment(&variable);
    found.extend(with_argument(&name));
    found.retain(|process| process.arguments().contains("engine serve"));
    found.sort_by_key(|process| process.pid);
    found.dedup();
    found
}

/// Mounts whose place or source lies below a folder.
pub fn mounts_below(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let name = format!("{}/", folder.display());
    text.lines().filter(|line| line.contains(&name)).map(str::to_owned).collect()
}

/// Folders of one line of a process's cgroup file: `4:memory:/a/b` or `0::/a/b`.
fn cgroup_folders(line: &str) -> Vec<PathBuf> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { return Vec::new() };
    let path = path.trim_start_matches('/');
    if path.is_empty() {
        return Vec::new();
    }
    let names = match controllers {
        "" => vec!["", "unified"],
        _ => vec![controllers.trim_start_matches("name=")],
    };
    let folders = names.iter().map(|name| Path::new("/sys/fs/cgroup").join(name).join(path));
    folders.filter(|folder| folder.exists()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_that_stays_is_named() {
        let mut child = Command::new("sleep").arg("612.25").spawn().unwrap();
        let process = Process::of(child.id() as i32).unwrap();
        let holdings = Holdings { processes: vec![process], cgroups: BTreeSet::new() };
        let named = || process.arguments().contains("612.25");
        crate::process::wait_until(crate::surroundings::deadline(), named);
        let left = holdings.remaining(Duration::ZERO);
        assert!(left.len() == 1 && left[0].contains("sleep 612.25"), "{left:?}");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(holdings.remaining(Duration::ZERO).is_empty());
    }

    #[test]
    fn a_cgroup_line_leads_to_its_folder() {
        assert!(cgroup_folders("4:memory:/").is_empty());
        assert!(cgroup_folders("0::/no/such/group").is_empty());
    }
}
