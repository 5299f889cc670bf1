//! The guide "your first pipeline": every program on its page runs as it stands there.

use std::path::Path;
use testkit::{Output, State, client_program};

const PAGE: &str = include_str!("../../docs/guide/first-pipeline.md");
const ARCHIVE: &str = "greet.tar.gz";

/// The indented lines that follow a text on the page.
fn lines_after(text: &str) -> String {
    let (_, rest) = PAGE.split_once(text).unwrap_or_else(|| panic!("`{text}` is not on the page"));
    let lines = rest.trim_start_matches('\n').lines();
    let lines = lines.map_while(|line| line.strip_prefix("    "));
    lines.map(|line| format!("{line}\n")).collect()
}

/// The blocks of the page in a language.
fn programs(language: &str) -> Vec<&'static str> {
    let begin = format!("```{language}\n");
    let blocks = PAGE.split(&begin).skip(1);
    blocks.map(|rest| rest.split_once("```").expect("a block has an end").0).collect()
}

/// The project of the page, in the working directory of the commands.
fn project() -> State {
    let state = State::debian();
    state.file("greet.sh", lines_after("`greet.sh` is what we build:"));
    state.file("test.sh", lines_after("and `test.sh` tests it:"));
    state.file("notes.txt", "not part of the pipeline");
    state
}

/// Names of the files in the archive that a pipeline wrote.
fn packed(state: &State) -> String {
    let path = state.workdir().join(ARCHIVE);
    let list = state.program(Path::new("tar")).args(["-tzf", path.to_str().unwrap()]).run();
    list.ok().to_owned()
}

/// Runs the program of a language, first on the project as it is and then on one whose test fails.
#[track_caller]
fn works(language: &str) {
    let state = project();
    let program = client_program(&format!("{language}-guide"));
    let run =
        || -> Output { state.cli(["--silent", "run", "--", program.to_str().unwrap()]).run() };
    assert_eq!(run().ok(), "hello, pipeline\n");
    assert_eq!(packed(&state), "greet.sh\n");
    std::fs::remove_file(state.workdir().join(ARCHIVE)).unwrap();
    state.file("greet.sh", "echo broken\n");
    let failed = run();
    assert_ne!(failed.code(), 0, "{failed:#?}");
    assert!(
        !failed.stdout.contains("broken"),
        "nothing runs after a test that failed: {failed:#?}"
    );
    assert!(!state.workdir().join(ARCHIVE).exists(), "and nothing is written");
}

#[test]
fn python() {
    works("python");
}

#[test]
fn typescript() {
    works("typescript");
}

#[test]
fn go() {
    works("go");
}

#[test]
fn rust() {
    works("rust");
}

#[test]
fn graphql() {
    let state = project();
    let [first, second] = programs("graphql")[..] else { panic!("two documents") };
    state.file("project.graphql", first);
    state.file("pipeline.graphql", second);
    let on_path = state.file("bin/ci-tool", "");
    std::fs::remove_file(&on_path).unwrap();
    std::os::unix::fs::symlink(testkit::binary(), &on_path).unwrap();
    state.file("pipeline.sh", programs("sh")[0]);
    let path = format!("{}:/usr/bin:/bin", state.workdir().join("bin").display());
    let output = state.cli(["--silent", "run", "--", "sh", "pipeline.sh"]).env("PATH", path).run();
    assert!(output.ok().contains(r#""stdout": "hello, pipeline\n""#), "{output:#?}");
    assert_eq!(packed(&state), "greet.sh\n");
}
