//! Programs for published client libraries, unchanged: `tests/clients` has them and says what they do.
//!
//! Each runs twice: inside `ci-tool run`, where the library finds a session in its environment, and
//! alone, where the library starts `ci-tool session` itself.

use testkit::{Output, State, client_program};

/// Names the program that a library is to start.
const PROGRAM_VARIABLE: &str = "_EXPERIMENTAL_DAGGER_CLI_BIN";
/// A program that runs fewer cases than this has lost some.
const FEWEST_CASES: usize = 20;

/// Runs the program of a library both ways.
#[track_caller]
fn both_ways(name: &str) {
    let state = State::debian();
    let program = client_program(name);
    let inside = state.cli(["--silent", "run", "--", program.to_str().unwrap()]).run();
    every_case_passed(&inside);
    let spawning = state.program(&program).env(PROGRAM_VARIABLE, testkit::binary()).run();
    every_case_passed(&spawning);
}

/// Checks what a program of cases printed.
#[track_caller]
pub(crate) fn every_case_passed(output: &Output) {
    let failed: Vec<&str> =
        output.stdout.lines().filter(|line| line.starts_with("failed ")).collect();
    assert!(failed.is_empty(), "{failed:#?}\n{}", output.stderr);
    let passed = output.ok().lines().filter(|line| line.starts_with("ok ")).count();
    assert!(passed >= FEWEST_CASES, "{passed} cases: {output:#?}");
}

/// Runs a program that compares the served schema with the one we wrote down.
#[track_caller]
fn serves_the_schema(name: &str) {
    let state = State::new();
    let file = state.file("schema.graphql", api::SCHEMA);
    let (program, file) = (client_program(name), file.to_str().unwrap());
    let output = state.cli(["--silent", "run", "--", program.to_str().unwrap(), file]).run();
    let (statements, rest) = output.ok().split_once(' ').expect("it says how many there were");
    assert!(statements.parse::<u32>().is_ok_and(|count| count > 2000), "{output:#?}");
    assert_eq!(rest, "statements, 0 problems\n");
}

#[test]
fn graphql_core_builds_the_schema() {
    serves_the_schema("python-schema");
}

#[test]
fn graphql_js_builds_the_schema() {
    serves_the_schema("typescript-schema");
}

mod newest {
    use super::both_ways;

    #[test]
    fn python() {
        both_ways("python-newest");
    }

    #[test]
    fn typescript() {
        both_ways("typescript-newest");
    }

    #[test]
    fn go() {
        both_ways("go-newest");
    }

    #[test]
    fn rust() {
        both_ways("rust-newest");
    }
}

mod oldest {
    use super::both_ways;

    #[test]
    #[ignore = "the oldest versions are part of `cargo xtask test --full`"]
    fn python() {
        both_ways("python-oldest");
    }

    #[test]
    #[ignore = "the oldest versions are part of `cargo xtask test --full`"]
    fn typescript() {
        both_ways("typescript-oldest");
    }

    #[test]
    #[ignore = "the oldest versions are part of `cargo xtask test --full`"]
    fn go() {
        both_ways("go-oldest");
    }

    #[test]
    #[ignore = "the oldest versions are part of `cargo xtask test --full`"]
    fn rust() {
        both_ways("rust-oldest");
    }
}
