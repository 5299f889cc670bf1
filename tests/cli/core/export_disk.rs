//! Exports to disks that are full or cannot be written: one error that names the path, and no harm.

use crate::core::export_tree::Way;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::State;

/// A small file system in memory, unmounted when dropped.
struct Disk(PathBuf);

impl Disk {
    fn new(path: &Path, options: &str) -> Self {
        fs::create_dir(path).unwrap();
        let disk = Self(path.to_owned());
        disk.mount(&["-t", "tmpfs", "-o", options, "tmpfs"]);
        disk
    }

    fn mount(&self, words: &[&str]) {
        let status = Command::new("mount").args(words).arg(&self.0).status().unwrap();
        assert!(status.success(), "{words:?}");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let status = Command::new("umount").arg(&self.0).status().unwrap();
        assert!(status.success(), "the disk of a test can be unmounted");
    }
}

#[test]
fn a_full_disk_is_an_error_that_leaves_what_was_there() {
    for way in Way::BOTH {
        let state = State::new();
        state.file("src/big", vec![b'n'; 8 << 20]);
        let disk = Disk::new(&state.workdir().join("disk"), "size=4m");
        fs::write(disk.0.join("big"), "old").unwrap();
        for words in [&["directory", "--path=src"][..], &["file", "--path=src/big"]] {
            let words = [&["host"], words, &["-o", "disk"]].concat();
            let output = way.core(&state, &words).run();
            output.fails(1);
            let named = disk.0.join("big").display().to_string();
            assert!(output.stderr.contains(&named), "{way:?}: {output:#?}");
            assert!(output.stderr.contains("o space left"), "{way:?}: {output:#?}");
            assert_eq!(fs::read_to_string(disk.0.join("big")).unwrap(), "old");
            assert_eq!(fs::read_dir(&disk.0).unwrap().count(), 1, "{way:?}: nothing is left");
        }
    }
}

#[test]
fn a_disk_that_cannot_be_written_is_named() {
    for way in Way::BOTH {
        let state = State::new();
        state.file("src/f", "x");
        let disk = Disk::new(&state.workdir().join("disk"), "size=1m");
        fs::write(disk.0.join("f"), "old").unwrap();
        disk.mount(&["-o", "remount,ro"]);
        for to in ["disk", "disk/new"] {
            let output = way.core(&state, &["host", "directory", "--path=src", "-o", to]).run();
            output.fails(1);
            assert!(output.stderr.contains("ead-only file system"), "{way:?}: {output:#?}");
            assert!(output.stderr.contains(to), "{way:?}: {output:#?}");
        }
        assert_eq!(fs::read_to_string(disk.0.join("f")).unwrap(), "old");
    }
}
