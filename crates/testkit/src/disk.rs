//! [`Disk`]: a file system of one's own in a file, for tests that fill it or cut its power.

use crate::process::wait_until;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// An ext4 in a file, mounted through a loop device until dropped.
#[derive(Debug)]
pub struct Disk {
    file: PathBuf,
    point: PathBuf,
}

impl Disk {
    /// Makes a file system of so many MiB in a file and mounts it on a folder.
    pub fn mount(file: &Path, point: &Path, mebibytes: u64) -> Self {
        let image = File::create_new(file).expect("a file for the disk can be made");
        image.set_len(mebibytes << 20).expect("a file can be made long");
        let options = ["-q", "-F", "-m", "0", "-i", "4096"];
        run(Command::new("mkfs.ext4").args(options).arg(file));
        Self::mount_again(file, point)
    }

    /// Mounts the file system that a file holds, as a machine does that had no time to unmount it.
    pub fn mount_again(file: &Path, point: &Path) -> Self {
        run(Command::new("mount").args(["-t", "ext4", "-o", "loop"]).arg(file).arg(point));
        Self { file: file.to_owned(), point: point.to_owned() }
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.point
    }

    /// Bytes that can still be written.
    pub fn free(&self) -> u64 {
        let facts = rustix::fs::statvfs(&self.point).expect("a mounted disk has statistics");
        facts.f_bavail * facts.f_frsize
    }

    /// Copies the disk as it is at one moment, with only what the file system has written to it. The
    /// copy is taken again when something was written meanwhile.
    pub fn copy(&self, to: &Path) {
        let copied = wait_until(Duration::from_secs(30), || {
            let before = self.writes();
            run(Command::new("cp").arg("--sparse=always").arg(&self.file).arg(to));
            before == self.writes()
        });
        assert!(copied, "the disk was never quiet for as long as it takes to copy it");
    }

    /// Write requests that the disk has got so far.
    fn writes(&self) -> u64 {
        let device = output(Command::new("findmnt").args(["-n", "-o", "SOURCE"]).arg(&self.point));
        let name = device.trim().trim_start_matches("/dev/").to_owned();
        let stat = std::fs::read_to_string(format!("/sys/block/{name}/stat"));
        let stat = stat.unwrap_or_else(|error| panic!("no statistics of `{name}`: {error}"));
        let field = stat.split_whitespace().nth(4).expect("the fifth number counts writes");
        field.parse().expect("a count is a number")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazy, so that a process that is still there only keeps what it uses.
        let _ = Command::new("umount").arg("--lazy").arg(&self.point).status();
        let _ = std::fs::remove_file(&self.file);
    }
}

fn run(command: &mut Command) {
    let status = command.status();
    assert!(status.is_ok_and(|status| status.success()), "{command:?} failed");
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    String::from_utf8(output.stdout).expect("the name of a device is text")
}
