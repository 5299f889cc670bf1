//! Every example runs.

use std::path::{Path, PathBuf};
use testkit::State;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name).canonicalize().unwrap()
}

#[test]
fn hello() {
    let state = State::debian();
    let output = state.cli(["query", "--doc", "hello.graphql"]).workdir(example("hello")).run();
    assert!(output.ok().contains("hello from Linux"), "{output:#?}");
}

#[test]
fn word_count() {
    let state = State::debian();
    let output = state
        .cli(["query", "--doc", "count.graphql", "Count", "--var", "folder=texts"])
        .workdir(example("word-count"))
        .run();
    let json: serde_json::Value = serde_json::from_str(output.ok()).unwrap();
    assert!(json["host"]["directory"]["entries"].as_array().is_some_and(|names| names.len() == 2));
}

#[test]
fn python_pipeline() {
    let state = State::debian();
    let output =
        state.cli(["run", "python3", "pipeline.py"]).workdir(example("python-pipeline")).run();
    let text = output.ok();
    assert!(text.contains("tests passed"), "{output:#?}");
    assert!(text.contains("report.txt"), "{output:#?}");
}

/// An example that no test names is not run by anybody.
#[test]
fn every_example_has_its_test() {
    let tests = include_str!("examples.rs");
    for entry in std::fs::read_dir(example("")).unwrap() {
        let entry = entry.unwrap();
        if entry.path().is_dir() {
            let name = entry.file_name().into_string().unwrap();
            assert!(tests.contains(&format!("example(\"{name}\")")), "no test runs `{name}`");
        }
    }
}
