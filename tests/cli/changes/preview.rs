//! Chains that end in changes: they are shown, asked about and applied to the working directory.

use std::fs;
use testkit::{Cli, State, Terminal};

/// A state whose working directory has the directories `old` and `new`, and what `old` has.
fn sample() -> State {
    let state = State::new();
    for path in ["changed", "gone", "dir/a", "dir/b"] {
        state.file(&format!("old/{path}"), "old\n");
        state.file(path, "old\n");
    }
    state.file("new/changed", "old\nnew\n");
    state.file("new/added", "new\n");
    state
}

fn core<'a>(state: &'a State, words: &[&str]) -> Cli<'a> {
    let changes = ["core", "host", "directory", "--path=new", "changes", "--from=old"];
    state.cli(changes).args(words)
}

#[track_caller]
fn assert_applied(state: &State, applied: bool) {
    let here = state.workdir();
    let contents = fs::read_to_string(here.join("changed")).unwrap();
    assert_eq!(contents, if applied { "old\nnew\n" } else { "old\n" });
    assert_eq!(here.join("added").exists(), applied);
    assert_eq!(here.join("gone").exists(), !applied);
    assert_eq!(here.join("dir").exists(), !applied);
}

#[test]
fn without_a_terminal_changes_are_shown_and_applied_only_when_told() {
    let state = sample();
    let refused = core(&state, &[]).run();
    let said = refused.fails(1);
    let shown = "added   +1\nchanged +1\ndir/    -2\ngone    -1\n\n5 files changed, +2 -3 lines\n";
    assert!(said.contains(shown), "{said}");
    assert!(said.contains("nobody can be asked here") && said.contains("`-y`"), "{said}");
    assert_applied(&state, false);
    let applied = core(&state, &["-y"]).run();
    assert_eq!(applied.ok(), "");
    assert!(applied.stderr.contains(shown), "{applied:#?}");
    assert!(applied.stderr.contains("Applied to "), "{applied:#?}");
    assert_applied(&state, true);
}

#[test]
fn no_changes_are_nothing_to_ask_about() {
    let state = State::new();
    state.file("same/file", "x");
    let words = ["core", "host", "directory", "--path=same", "changes", "--from=same"];
    let output = state.cli(words).run();
    assert_eq!(output.ok(), "");
    assert!(output.stderr.contains("no changes to apply"), "{output:#?}");
}

#[test]
fn on_a_terminal_the_user_decides() {
    for (answer, applied) in [("n", false), ("y", true)] {
        let state = sample();
        let mut terminal = Terminal::start(core(&state, &[]), 80, 24);
        terminal.wait_for("5 files changed, +2 -3 lines");
        terminal.wait_for("Apply changes? [y/N]");
        terminal.send(&format!("{answer}\r"));
        let ended = terminal.wait();
        let told = if applied { "Applied to" } else { "discarded: nothing was written" };
        assert!(ended.ends_with(0).contains(told), "{answer}");
        assert_applied(&state, applied);
    }
    let state = sample();
    let mut terminal = Terminal::start(core(&state, &[]), 80, 24);
    terminal.wait_for("Apply changes? [y/N]");
    terminal.send("\x03");
    terminal.wait().ends_with(2);
    assert_applied(&state, false);
}
