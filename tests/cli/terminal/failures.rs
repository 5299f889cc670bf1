//! `-i`: a look into what a failed command left.

use super::{chain, types};
use testkit::{State, Terminal};

#[test]
fn a_failed_command_leaves_a_shell_and_fails_as_before() {
    let state = State::new();
    let script = "--args=sh,-c,mkdir -p /tmp; echo left-behind > /tmp/file; echo said; exit 42";
    let words = ["-i", "with-exec", script, "stdout"];
    let mut terminal = Terminal::start(state.cli(chain(&words)), 120, 30);
    terminal.wait_for("failed: exit code: 42");
    terminal.wait_for("/ #");
    types(&mut terminal, "cat /tmp/file", "\nleft-behind");
    terminal.send("exit 3\r");
    let ended = terminal.wait();
    let text = ended.ends_with(42);
    assert!(text.contains("exit code: 42") && text.contains("said"), "{text}");
    // The flag before the functions, another command, and mounts as they were left.
    let words = [
        "with-mounted-temp",
        "--path=/t",
        "with-exec",
        "--args=sh,-c,echo $$ > /t/x; exit 1",
        "-i",
        "--interactive-command",
        "sh -c 'ls -d /t; echo given-$((1+1)); read line'",
        "stdout",
    ];
    let mut terminal = Terminal::start(state.cli(chain(&words)), 100, 30);
    terminal.wait_for("/t\ngiven-2");
    terminal.send("\r");
    terminal.wait().ends_with(1);
}

#[test]
fn a_program_that_is_not_there_leaves_a_shell_too() {
    let state = State::new();
    let words = ["-i", "with-exec", "--args=no-such-program", "stdout"];
    let mut terminal = Terminal::start(state.cli(chain(&words)), 100, 30);
    terminal.wait_for("/ #");
    terminal.send("exit\r");
    terminal.wait().ends_with(127);
}

#[test]
fn without_a_live_display_a_failure_says_why_there_is_no_shell() {
    let state = State::new();
    let words = ["-i", "with-exec", "--args=sh,-c,exit 9", "stdout"];
    for flags in [&["--progress=plain"][..], &["-s"]] {
        let ended = Terminal::start(state.cli(flags).args(chain(&words)), 100, 30).wait();
        let text = ended.ends_with(9);
        assert!(text.contains("no terminal was opened there"), "{text}");
    }
    let output = state.cli(chain(&words)).run();
    let text = output.fails(9);
    assert!(text.contains("no terminal was opened there"), "{text}");
    assert!(text.contains("--progress=tty"), "{text}");
    // One who does not ask is not told.
    let output = state.cli(chain(&words[1..])).run();
    assert!(!output.fails(9).contains("terminal"), "{output:#?}");
}

#[test]
fn a_terminal_without_a_terminal_is_one_clear_error() {
    let state = State::new();
    let output = state.cli(chain(&["terminal"])).run();
    let text = output.fails(1);
    assert!(text.contains("there is no terminal to open"), "{text}");
    assert!(text.contains("hint: run the command on a terminal"), "{text}");
    let ended = Terminal::start(state.cli(["--progress=dots"]).args(chain(&["terminal"])), 80, 24);
    assert!(ended.wait().ends_with(1).contains("there is no terminal to open"));
    let output = state.cli(["--interactive-command='", "core", "version"]).run();
    assert!(output.fails(1).contains("--interactive-command"), "{output:#?}");
}

#[test]
fn a_shell_that_is_not_there_is_an_error() {
    let state = State::new();
    let words = ["terminal", "--cmd=no-such-shell"];
    let ended = Terminal::start(state.cli(chain(&words)), 80, 24).wait();
    let text = ended.ends_with(1);
    assert!(text.contains("cannot run `no-such-shell`"), "{text}");
}
