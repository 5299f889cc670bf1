//! Programs for published client libraries, unchanged: `tests/clients` has them and says what they do.
//!
//! Each runs twice: inside `ci-tool run`, where the library finds a session in its environment, and
//! alone, where the library starts `ci-tool session` itself.

use testkit::registry::{PASSWORD, Registry, USER};
use testkit::{Cli, State, client_program};

/// Names the program that a library is to start.
const PROGRAM_VARIABLE: &str = "_EXPERIMENTAL_DAGGER_CLI_BIN";
/// A program that runs fewer cases than this has lost some.
pub(crate) const FEWEST_CASES: usize = 75;
/// The same for the oldest versions, which have fewer fields to ask for.
const FEWEST_CASES_OF_OLDEST: usize = 59;

/// Runs the program of a library both ways.
#[track_caller]
fn both_ways(name: &str, fewest: usize) {
    let program = client_program(name);
    // A state each: the time that a test may take is the state's.
    let state = State::debian();
    every_case_passes(state.cli(["--silent", "run", "--", program.to_str().unwrap()]), fewest);
    drop(state);
    let state = State::debian();
    let spawning = state.program(&program).env(PROGRAM_VARIABLE, testkit::binary());
    every_case_passes(spawning, fewest);
}

/// Runs a program of cases, beside a registry that it may publish to.
#[track_caller]
pub(crate) fn every_case_passes(program: Cli<'_>, fewest: usize) {
    let registry = Registry::with_password();
    let program = program.env("CASES_REGISTRY", registry.address());
    let output = program.env("CASES_USER", USER).env("CASES_PASSWORD", PASSWORD).run();
    let failed: Vec<&str> =
        output.stdout.lines().filter(|line| line.starts_with("failed ")).collect();
    assert!(failed.is_empty(), "{failed:#?}\n{}", output.stderr);
    let passed = output.ok().lines().filter(|line| line.starts_with("ok ")).count();
    assert!(passed >= fewest, "{passed} cases: {output:#?}");
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
    use super::{FEWEST_CASES, both_ways};

    #[test]
    fn python() {
        both_ways("python-newest", FEWEST_CASES);
    }

    #[test]
    fn typescript() {
        both_ways("typescript-newest", FEWEST_CASES);
    }

    #[test]
    fn go() {
        both_ways("go-newest", FEWEST_CASES);
    }

    #[test]
    fn rust() {
        both_ways("rust-newest", FEWEST_CASES);
    }
}

mod oldest {
    use super::{FEWEST_CASES_OF_OLDEST, both_ways};

    #[test]
    #[ignore = "the oldest versions are part of `cargo xtask test --full`"]
    fn python() {
        both_ways("python-oldest", FEWEST_CASES_OF_OLDEST);
    }

    #[test]
    #[ignore = "the oldest versions are part of `cargo xtask test --full`"]
    fn typescript() {
        both_ways("typescript-oldest", FEWEST_CASES_OF_OLDEST);
    }

    #[test]
    #[ignore = "the oldest versions are part of `cargo xtask test --full`"]
    fn go() {
        both_ways("go-oldest", FEWEST_CASES_OF_OLDEST);
    }

    #[test]
    #[ignore = "the oldest versions are part of `cargo xtask test --full`"]
    fn rust() {
        both_ways("rust-oldest", FEWEST_CASES_OF_OLDEST);
    }
}
