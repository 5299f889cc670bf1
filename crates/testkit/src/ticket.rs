//! [`Ticket`]: leave to run. Tests with engines and containers wait here, over all processes of the
//! machine, so that a test is slow only because of itself and a deadline means something.

use crate::surroundings::deadline;
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::time::{Duration, Instant};

/// Tests that may run at a time.
const SLOTS: usize = 2;

/// What a step of a test may take however long those before it took.
const LEAST: Duration = Duration::from_secs(20);

/// Leave to run until it is dropped.
#[derive(Debug)]
pub struct Ticket {
    _slot: File,
    until: Instant,
}

impl Ticket {
    /// Waits for a free slot. The deadline begins with the ticket, not with the wait.
    pub fn take() -> Self {
        let folder = std::env::temp_dir().join("ci-tool-testkit");
        std::fs::create_dir_all(&folder).expect("the folder of tickets can be made");
        Self { _slot: free_slot(&folder), until: Instant::now() + deadline() }
    }

    /// Time left for the next step of the test. It only bounds what hangs: nothing is expected to come near
    /// it. A test that goes on, though a busy machine makes it slow, has something left for each step.
    pub fn remaining(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now()).max(LEAST)
    }
}

/// Locks a free slot, or waits for the one that this process's number points at. The lock goes with
/// the file, so a killed test gives its slot back.
fn free_slot(folder: &Path) -> File {
    let slots: Vec<File> = (0..SLOTS).map(|index| open(&folder.join(index.to_string()))).collect();
    loop {
        for slot in &slots {
            if slot.try_lock().is_ok() {
                return slot.try_clone().expect("an open file can be cloned");
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn open(path: &Path) -> File {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .unwrap_or_else(|error| panic!("cannot open {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_given_once_and_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let held: Vec<File> = (0..SLOTS).map(|_| free_slot(folder.path())).collect();
        let busy = |index: usize| open(&folder.path().join(index.to_string())).try_lock().is_err();
        assert!((0..SLOTS).all(busy));
        drop(held);
        // Not at once: a program that another test starts holds all open files until it is executed.
        let again: Vec<File> = (0..SLOTS).map(|_| free_slot(folder.path())).collect();
        assert_eq!(again.len(), SLOTS);
    }
}
