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
