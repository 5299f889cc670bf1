//! The engine of a user without root: the same commands, the same results, in a user namespace.
//!
//! Every test has a user of its own, made with the ids that it needs.

mod commands;
mod ends;
mod files;
mod missing;
mod network;

use testkit::{State, User};

/// Commands that need no network run in this.
const ALONE: &str = "network = \"none\"\n";

/// A state folder of a user with ids.
fn state() -> State {
    State::of_user(User::with_ids(), ALONE)
}

/// A chain on the static root file system, as words of the command line.
fn core<'a>(rootfs: &'a str, words: &[&'a str]) -> Vec<&'a str> {
    [&["core", "container", "with-rootfs", rootfs], words].concat()
}

/// The flag that names the static root file system.
fn rootfs() -> String {
    format!("--directory={}", testkit::busybox().display())
}
