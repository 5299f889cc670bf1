//! The newer names of `core`, `query` and `run` are the same commands.

use testkit::State;

#[test]
fn api_call_without_modules_is_core() {
    let state = State::new();
    let chain =
        ["directory", "with-new-file", "--path=a", "--contents=hi", "file", "--path=a", "contents"];
    let old = state.cli(["core"].iter().chain(&chain)).run();
    let new = state.cli(["api", "call", "-M"].iter().chain(&chain)).run();
    assert_eq!((old.ok(), new.ok()), ("hi", "hi"));
}

#[test]
fn api_query_is_query() {
    let state = State::new();
    let document = r#"{ file(name: "a", contents: "b") { name } }"#;
    let old = state.cli(["query"]).stdin(document).run();
    let new = state.cli(["api", "query"]).stdin(document).run();
    assert_eq!(old.ok(), new.ok());
}

#[test]
fn api_exec_is_run() {
    let state = State::new();
    let old = state.cli(["run", "sh", "-c", "echo $CITOOL_SESSION_PORT | wc -l; exit 3"]).run();
    let new =
        state.cli(["api", "exec", "sh", "-c", "echo $CITOOL_SESSION_PORT | wc -l; exit 3"]).run();
    assert_eq!((old.code(), new.code()), (3, 3));
    assert_eq!(old.stdout, new.stdout);
}

#[test]
fn bare_groups_print_their_help() {
    let state = State::new();
    let output = state.cli(["api"]).run();
    for command in ["call", "query", "exec"] {
        assert!(output.ok().contains(command), "{output:#?}");
    }
}

#[test]
fn api_functions_lists_what_can_follow() {
    let state = State::new();
    let output = state.cli(["api", "functions", "-m", "core", "container"]).run();
    for name in ["from", "with-exec", "stdout"] {
        assert!(output.ok().contains(name), "{output:#?}");
    }
    let output = state.cli(["api", "functions", "-m", "core", "directory"]).run();
    assert!(!output.ok().contains("as-module"), "{output:#?}");
    let output = state.cli(["api", "functions", "-m", "core", "contaner"]).run();
    assert!(output.fails(1).contains("contaner"), "{output:#?}");
}
