//! Looking at processes through `/proc`: by what they were started with, and by descent.

use crate::surroundings::deadline;
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A tick of the kernel's accounts in milliseconds, as `/proc` tells it on every machine.
const TICK_MILLIS: u64 = 10;

/// A process, told apart from a later one with the same number by when it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// Process number.
    pub pid: i32,
    begun: u64,
}

impl Process {
    /// The process that has this number now.
    pub fn of(pid: i32) -> Option<Self> {
        let stat = stat(pid)?;
        Some(Self { pid, begun: stat.begun })
    }

    /// Whether it still runs. One that waits to be collected does not.
    pub fn is_alive(&self) -> bool {
        stat(self.pid).is_some_and(|stat| stat.begun == self.begun && stat.state != 'Z')
    }

    /// Waits until it has ended; false when it still runs after all the time that a test has. How soon
    /// it gets to run is up to the machine.
    pub fn wait_gone(&self) -> bool {
        wait_until(deadline(), || !self.is_alive())
    }

    /// Its arguments, separated by spaces.
    pub fn arguments(&self) -> String {
        read(self.pid, "cmdline").replace('\0', " ")
    }

    /// Whether keys that make signals reach it: its terminal has it in front.
    pub fn is_in_front(&self) -> bool {
        stat(self.pid).is_some_and(|stat| stat.begun == self.begun && stat.group == stat.in_front)
    }

    /// Whether a signal has stopped it.
    pub fn is_stopped(&self) -> bool {
        stat(self.pid).is_some_and(|stat| stat.begun == self.begun && stat.state == 'T')
    }

    /// Ends it at once.
    pub fn kill(&self) {
        signal(self.pid, rustix::process::Signal::KILL);
    }

    /// Lines of its cgroup file.
    pub fn cgroups(&self) -> Vec<String> {
        read(self.pid, "cgroup").lines().map(str::to_owned).collect()
    }

    /// How long its threads have kept processors busy.
    pub fn processor_time(&self) -> Duration {
        Duration::from_millis(stat(self.pid).map_or(0, |stat| stat.busy) * TICK_MILLIS)
    }

    /// Its share of memory in bytes, shared pages counted by part.
    pub fn proportional_memory(&self) -> u64 {
        let text = read(self.pid, "smaps_rollup");
        let line = text.lines().find(|line| line.starts_with("Pss:")).unwrap_or("Pss: 0 kB");
        let kilobytes = line.split_whitespace().nth(1).and_then(|word| word.parse::<u64>().ok());
        kilobytes.unwrap_or(0) * 1024
    }
}

/// Sends a signal, if there is still somebody to get it.
pub fn signal(pid: i32, signal: rustix::process::Signal) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// All processes with this text in their arguments.
pub fn with_argument(text: &str) -> Vec<Process> {
    let all = all_pids().into_iter();
    let matching = all.filter(|pid| read(*pid, "cmdline").replace('\0', " ").contains(text));
    matching.filter_map(Process::of).filter(Process::is_alive).collect()
}

/// All processes with exactly this command line, words separated by spaces.
pub fn named(line: &str) -> Vec<Process> {
    let mut found = with_argument(line);
    found.retain(|process| process.arguments().trim_end() == line);
    found
}

/// All processes with this text in the environment they were started with.
pub fn with_environment(text: &str) -> Vec<Process> {
    let matching = all_pids().into_iter().filter(|pid| read(*pid, "environ").contains(text));
    matching.filter_map(Process::of).filter(Process::is_alive).collect()
}

/// A process and everything it started, and everything those started.
pub fn tree(pid: i32) -> Vec<Process> {
    let pairs: Vec<(i32, i32)> =
        all_pids().into_iter().filter_map(|pid| Some((pid, stat(pid)?.parent))).collect();
    let mut members = vec![pid];
    let mut seen = HashSet::from([pid]);
    let mut next = 0;
    while let Some(parent) = members.get(next).copied() {
        let children = pairs.iter().filter(|pair| pair.1 == parent).map(|pair| pair.0);
        members.extend(children.filter(|child| seen.insert(*child)));
        next += 1;
    }
    members.into_iter().filter_map(Process::of).collect()
}

/// Waits until something holds; false when it does not after the time. For what another process
/// does in its own time and tells nobody about.
pub fn wait_until(time: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + time;
    loop {
        if holds() {
            return true;
        }
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

struct Stat {
    state: char,
    parent: i32,
    group: i32,
    /// The group that the terminal has in front.
    in_front: i32,
    /// Ticks in user and in kernel mode.
    busy: u64,
    begun: u64,
}

/// The fields after the name, which may hold anything and ends at the last `)`.
fn stat(pid: i32) -> Option<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Stat {
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        in_front: fields.get(5)?.parse().ok()?,
        busy: fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?,
        begun: fields.get(19)?.parse().ok()?,
    })
}

fn read(pid: i32, file: &str) -> String {
    let path = PathBuf::from(format!("/proc/{pid}")).join(file);
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
}

fn all_pids() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").expect("/proc is mounted");
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_is_found_by_argument_and_by_descent_until_it_ends() {
        let marker = format!("{}.75", 900_000 + std::process::id());
        let mut child = Command::new("sleep").arg(&marker).spawn().unwrap();
        // A child shows its new arguments a moment after it was started.
        wait_until(deadline(), || !with_argument(&marker).is_empty());
        let found = with_argument(&marker);
        assert_eq!(found.iter().map(|p| p.pid).collect::<Vec<_>>(), [child.id() as i32]);
        assert!(tree(std::process::id() as i32).contains(&found[0]));
        child.kill().unwrap();
        assert!(found[0].wait_gone(), "it waits to be collected, no more");
        child.wait().unwrap();
        assert!(with_argument(&marker).is_empty());
    }

    #[test]
    fn time_of_a_process_is_counted() {
        let own = Process::of(std::process::id() as i32).unwrap();
        let is_counted = || {
            (0..1_000_000_u64).map(std::hint::black_box).sum::<u64>() > 0
                && own.processor_time() > Duration::ZERO
        };
        assert!(wait_until(deadline(), is_counted));
    }

    #[test]
    fn memory_of_a_process_is_counted() {
        let own = Process::of(std::process::id() as i32).unwrap();
        assert!(own.proportional_memory() > 100_000);
    }
}
