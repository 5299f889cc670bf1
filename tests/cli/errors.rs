//! Exit codes and what is said when something fails.

use testkit::{State, busybox};

/// `core container with-rootfs <static root> with-exec --args=<args> <last>`.
fn exec<'a>(state: &'a State, args: &str, last: &str) -> testkit::Cli<'a> {
    let rootfs = format!("--directory={}", busybox().display());
    let args = format!("--args={args}");
    state.cli(["core", "container", "with-rootfs", &rootfs, "with-exec", &args, last])
}

#[test]
fn the_exit_code_is_the_commands_and_the_report_shows_it() {
    let state = State::new();
    let output = exec(&state, "sh,-c,echo to-out; echo to-err >&2; exit 42", "stdout").run();
    let said = output.fails(42);
    for text in ["exit code: 42", "to-out", "to-err", "sh"] {
        assert!(said.contains(text), "no `{text}` in {said}");
    }
    assert_eq!(output.stdout, "", "a failed command prints no result");
}

#[test]
fn an_unwanted_success_is_a_failure() {
    let state = State::new();
    let rootfs = format!("--directory={}", busybox().display());
    let chain = ["core", "container", "with-rootfs", &rootfs, "with-exec", "--args=true"];
    let output = state.cli(chain.iter().chain(&["--expect=FAILURE", "sync"])).run();
    assert!(output.fails(1).contains("exit code: 0"), "{output:#?}");
    let output = state.cli(chain.iter().chain(&["--expect=ANY", "exit-code"])).run();
    assert_eq!(output.ok().trim_end(), "0");
}

#[test]
fn a_query_with_a_failed_command_exits_with_one() {
    let state = State::debian();
    let document = r#"{ container { from(address: "deb://bookworm") {
        withExec(args: ["sh", "-c", "exit 7"]) { stdout } } } }"#;
    let output = state.cli(["query"]).stdin(document).run();
    assert!(output.fails(1).contains("exit code: 7"), "{output:#?}");
    assert_eq!(output.stdout, "");
}

#[test]
fn what_does_not_work_yet_says_so() {
    let state = State::new();
    let document = "{ llm { model } }";
    let output = state.cli(["query"]).stdin(document).run();
    assert!(output.fails(1).contains("not implemented yet"), "{output:#?}");
    let output = state.cli(["core", "directory", "as-module", "id"]).run();
    assert!(!output.status.success() && !output.stderr.is_empty(), "{output:#?}");
}

#[test]
fn what_would_be_ignored_is_an_error() {
    let state = State::new();
    let output = state.cli(["-m", "mine", "core", "version"]).run();
    assert!(output.fails(1).contains("loading a module (`mine`)"), "{output:#?}");
    let output = state.cli(["query"]).stdin(" \n").run();
    let said = output.fails(1);
    assert!(said.contains("no document: standard input is empty"), "{said}");
    assert!(said.contains("`--doc`"), "{said}");
}

#[test]
fn the_last_line_is_the_error_and_it_stands_once() {
    let state = State::new();
    let output = state.cli(["core", "directory", "file", "--path=none", "contents"]).run();
    let said = output.fails(1);
    let count = said.matches("none: no such file or directory").count();
    assert!(count >= 1, "{said}");
    let finals = said.lines().filter(|line| line.starts_with("Error: ")).count();
    assert!(finals <= 1, "{said}");
}

#[test]
fn silence_leaves_only_the_error() {
    let state = State::new();
    let output = state.cli(["-s", "core", "directory", "file", "--path=none", "contents"]).run();
    let said = output.fails(1);
    assert!(said.starts_with("Error: "), "{said}");
    let output = state.cli(["-s", "core", "directory", "entries"]).run();
    output.ok();
    assert_eq!(output.stderr, "");
}

#[test]
fn an_engine_that_cannot_be_reached_is_named() {
    let state = State::new();
    let address = "unix:///no/such/engine.sock";
    let output = state.cli(["core", "version"]).env("CITOOL_ENGINE", address).run();
    assert!(output.fails(1).contains("/no/such/engine.sock"), "{output:#?}");
    let output = state.cli(["core", "version"]).env("CITOOL_ENGINE", "carrier-pigeon://coop").run();
    assert!(output.fails(1).contains("carrier-pigeon"), "{output:#?}");
}

#[test]
fn a_working_directory_that_is_not_there_is_an_error() {
    let state = State::new();
    let output = state.cli(["--workdir", "/no/such/folder", "core", "version"]).run();
    assert!(output.fails(1).contains("/no/such/folder"), "{output:#?}");
}
