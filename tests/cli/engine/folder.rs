//! A state folder that cannot be used: one clear error each, with a way out.

use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::{Output, State};

/// A file system in memory, taken off when the test is over.
struct Mounted(PathBuf);

impl Mounted {
    fn new(state: &State, options: &str) -> Self {
        let path = state.workdir().join("disk");
        std::fs::create_dir_all(&path).unwrap();
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(&path);
        assert!(command.status().unwrap().success());
        Self(path)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// A command that needs an engine on this folder.
fn on(state: &State, folder: &Path) -> Output {
    state.cli(["core", "version"]).env("CITOOL_STATE_DIR", folder).run()
}

#[track_caller]
fn says(output: &Output, message: &str, hint: &str) {
    let said = output.fails(1);
    assert!(said.contains(message), "no `{message}` in {said}");
    assert!(said.contains(&format!("hint: {hint}")), "no `{hint}` in {said}");
    assert_eq!(said.matches("Error:").count(), 1, "{said}");
}

#[test]
fn a_file_in_its_place() {
    let state = State::new();
    let file = state.file("file", "");
    says(&on(&state, &file), "file`: File exists", "a file is where a folder belongs");
    says(&on(&state, &file.join("below")), "below`: Not a directory", "a file is where a folder");
}

#[test]
fn a_path_too_long_for_a_socket() {
    let state = State::new();
    let folder = state.workdir().join("x".repeat(120));
    says(&on(&state, &folder), "too long", "choose a shorter path");
}

#[test]
fn a_file_system_that_cannot_be_written() {
    let state = State::new();
    let disk = Mounted::new(&state, "ro");
    says(&on(&state, &disk.0.join("state")), "Read-only", "choose a folder on a file system");
    says(&on(&state, &disk.0), "Read-only", "choose a folder on a file system");
}

#[test]
fn a_full_disk() {
    let state = State::new();
    let disk = Mounted::new(&state, "size=64k");
    let full = std::fs::write(disk.0.join("filler"), vec![1; 128 << 10]);
    assert!(full.is_err(), "the disk has an end");
    says(&on(&state, &disk.0.join("state")), "no space is left on the disk", "make room");
}

#[test]
fn a_folder_of_somebody_else() {
    let state = State::new();
    let folder = state.workdir().join("private");
    std::fs::create_dir(&folder).unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&folder, private).unwrap();
    let output = state
        .program(Path::new("/usr/bin/setpriv"))
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .args([testkit::binary().to_str().unwrap(), "core", "version"])
        .env("CITOOL_STATE_DIR", &folder)
        .run();
    says(&output, "Permission denied", "it belongs to somebody else");
}
