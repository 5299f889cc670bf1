//! [`User`]: a user of the machine without root's rights, gone when dropped.
//!
//! The files of the machine that list users are changed for the time of the test, one test at a time.

use crate::process::Process;
use crate::program::copy_program;
use crate::surroundings::{binary, root};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// What the names of all users of tests begin with.
const PREFIX: &str = "ci-tool-t";
/// Ids that a user gets beside its own.
const RANGE: u64 = 65_536;

/// A user with a group of the same name.
#[derive(Debug)]
pub struct User {
    name: String,
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

impl User {
    /// A user who has no ids but its own.
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let _turn = turn();
        sweep();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}", std::process::id());
        run(Command::new("useradd")
            .args(["--system", "--user-group", "--shell", "/bin/sh"])
            .args(["--no-create-home", "--home-dir", "/nonexistent", &name]));
        let accounts = fs::read_to_string("/etc/passwd").expect("users are listed");
        let fields = |line: &str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
        let account = accounts.lines().map(fields).find(|fields| fields[0] == name);
        let account = account.expect("a user that was made is listed");
        let id = |field: usize| account[field].parse().expect("ids are numbers");
        Self { uid: id(2), gid: id(3), name }
    }

    /// A user whom the machine gives 65,536 further ids, as it gives them to everybody who logs in.
    pub fn with_ids() -> Self {
        let user = Self::new();
        let _turn = turn();
        let mut end = 100_000;
        for file in ["/etc/subuid", "/etc/subgid"] {
            // Without the file nothing is added.
            OpenOptions::new().create(true).append(true).open(file).expect("ids can be listed");
            for line in fs::read_to_string(file).expect("ids are listed").lines() {
                let numbers: Vec<u64> = line.split(':').filter_map(|n| n.parse().ok()).collect();
                end = end.max(numbers.iter().sum());
            }
        }
        let range = format!("{end}-{}", end + RANGE - 1);
        let options = ["--add-subuids", &range, "--add-subgids", &range, &user.name];
        run(Command::new("usermod").args(options));
        user
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Gives the user a file or a folder with all that is in it. Links are not followed.
    pub fn own(&self, path: &Path) {
        let owner = format!("{}:{}", self.uid, self.gid);
        run(Command::new("chown").args(["-hR", &owner]).arg(path));
    }

    /// Gives the user one file or folder.
    pub(crate) fn own_one(&self, path: &Path) {
        chown(path, Some(self.uid), Some(self.gid)).expect("root gives files away");
    }
}

impl Default for User {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _turn = turn();
        remove(&self.name);
    }
}

/// The program under test where every user can run it: the build folder may be private.
pub(crate) fn binary_for_all() -> PathBuf {
    let path = root().join("bin/ci-tool");
    let lock = File::create(root().join("bin.lock")).expect("a lock can be made");
    lock.lock().expect("the lock can be waited for");
    if !path.exists() {
        let half = root().join("ci-tool.half");
        fs::create_dir_all(root().join("bin")).expect("a folder can be made");
        copy_program(&binary(), &half);
        fs::rename(&half, &path).expect("a file can be renamed");
    }
    path
}

/// Held while the lists of users change, over all processes of the machine.
fn turn() -> File {
    let lock = File::create(std::env::temp_dir().join("ci-tool-testkit-users.lock"));
    let lock = lock.expect("a lock can be made");
    lock.lock().expect("the lock can be waited for");
    lock
}

/// Removes the users of test programs that are gone.
fn sweep() {
    let accounts = fs::read_to_string("/etc/passwd").expect("users are listed");
    for name in accounts.lines().filter_map(|line| line.split(':').next()) {
        let pid = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
        let Some(pid) = pid.and_then(|(pid, _)| pid.parse().ok()) else { continue };
        if Process::of(pid).is_none() {
            remove(name);
        }
    }
}

/// Removes a user with its ids and its group.
fn remove(name: &str) {
    // Processes that are on their way out do not matter, and there is no home to keep.
    let _ = Command::new("userdel").args(["--force", name]).output();
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_ids_and_leaves_nothing() {
        let user = User::with_ids();
        let listed = |file: &str| fs::read_to_string(file).unwrap().contains(user.name());
        assert!(["/etc/passwd", "/etc/subuid", "/etc/subgid"].into_iter().all(listed));
        let name = user.name().to_owned();
        drop(user);
        for file in ["/etc/passwd", "/etc/group", "/etc/subuid", "/etc/subgid"] {
            assert!(!fs::read_to_string(file).unwrap().contains(&name), "{file}");
        }
    }
}
