//! Terminals in containers, used as a user does: on a real terminal, with real keys.

mod ends;
mod failures;
mod shells;

use testkit::{Cli, State, Terminal, busybox};

/// A chain that ends in a terminal, as words.
pub(crate) fn chain(words: &[&str]) -> Vec<String> {
    let rootfs = format!("--directory={}", busybox().display());
    let begin = ["core", "container", "with-rootfs", &rootfs];
    begin.iter().chain(words).map(|word| (*word).to_owned()).collect()
}

/// A terminal of the usual size on which a shell in a container waits for keys.
pub(crate) fn shell(state: &State) -> Terminal {
    shell_by(state.cli(chain(&["terminal"])))
}

/// The same, for a command of one's own.
pub(crate) fn shell_by(cli: Cli<'_>) -> Terminal {
    let mut terminal = Terminal::start(cli, 80, 24);
    terminal.wait_for("/ #");
    terminal
}

/// Types a line and waits until it has done its work.
#[track_caller]
pub(crate) fn types(terminal: &mut Terminal, line: &str, expected: &str) {
    terminal.send(&format!("{line}\r"));
    terminal.wait_for(expected);
}
