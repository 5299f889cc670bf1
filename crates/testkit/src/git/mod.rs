//! A real git server on loopback: over http by git's own `http-backend`. [`crate::SshServer`] is the one over ssh.

mod http;

pub use http::{Guard, HttpServer};

use std::path::Path;
use std::process::Command;

/// Runs a line of shell in a folder, with a name to commit under and a clock that stands still. Gives what it wrote.
#[track_caller]
pub fn work(folder: &Path, line: &str) -> String {
    let mut command = Command::new("sh");
    command.arg("-ec").arg(line).current_dir(folder).env_clear();
    let surroundings = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("HOME", "/nonexistent"),
        ("GIT_AUTHOR_NAME", "Ann"),
        ("GIT_AUTHOR_EMAIL", "ann@example.com"),
        ("GIT_AUTHOR_DATE", "1700000000 +0100"),
        ("GIT_COMMITTER_NAME", "Carl"),
        ("GIT_COMMITTER_EMAIL", "carl@example.com"),
        ("GIT_COMMITTER_DATE", "1700000001 +0000"),
        ("GIT_CONFIG_COUNT", "2"),
        ("GIT_CONFIG_KEY_0", "init.defaultBranch"),
        ("GIT_CONFIG_VALUE_0", "main"),
        ("GIT_CONFIG_KEY_1", "protocol.file.allow"),
        ("GIT_CONFIG_VALUE_1", "always"),
    ];
    let done = command.envs(surroundings).output().expect("a shell can be started");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{line}\n{said}");
    String::from_utf8(done.stdout).expect("git writes text").trim().to_owned()
}
