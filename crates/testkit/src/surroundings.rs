//! What the one who started the tests said about the surroundings, and what holds when nobody did.
//!
//! | variable | meaning | without it |
//! |---|---|---|
//! | `TESTKIT_BIN` | the program under test | `ci-tool` beside the tests |
//! | `TESTKIT_STATE` | folder for state folders, on a plain file system | `testkit` in the build folder |
//! | `TESTKIT_DEBIAN_CACHE` | downloaded Debian packages | `debian-cache` in the folder above |
//! | `TESTKIT_ROUNDS` | rounds of a loop | 20 |
//! | `TESTKIT_DEADLINE` | seconds a test may take once it has its ticket | 60 |
//! | `TESTKIT_RANDOM` | seed of random numbers, to repeat a run | taken from the clock |
//! | `TESTKIT_CLIENTS` | programs for published client libraries | `clients` in the folder above |
//! | `BENCH_TOOLS` | folder for peers that are built, not installed | `tools` in the folder above |

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

/// The program under test.
pub fn binary() -> PathBuf {
    let path =
        variable("TESTKIT_BIN").map_or_else(|| build_folder().join("ci-tool"), PathBuf::from);
    assert!(path.exists(), "there is no {}: run the tests by `cargo xtask test`", path.display());
    path
}

/// Another program of the same build.
pub fn beside_tests(name: &str) -> PathBuf {
    let path = build_folder().join(name);
    assert!(path.exists(), "there is no {}: run the tests by `cargo xtask test`", path.display());
    path
}

/// Folder for everything that tests make.
pub fn root() -> PathBuf {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let path =
            variable("TESTKIT_STATE").map_or_else(|| build_folder().join("testkit"), PathBuf::from);
        std::fs::create_dir_all(&path).expect("the folder for tests can be made");
        path.canonicalize().expect("the folder for tests was just made")
    })
    .clone()
}

/// Rounds that a looping test makes.
pub fn rounds() -> u32 {
    number("TESTKIT_ROUNDS").map_or(20, |rounds| rounds as u32)
}

/// The program of a published client library, e.g. `python-newest`.
pub fn client_program(name: &str) -> PathBuf {
    let folder = variable("TESTKIT_CLIENTS").map_or_else(|| root().join("clients"), PathBuf::from);
    let path = folder.join(name);
    assert!(path.exists(), "there is no {}: run `cargo xtask setup clients`", path.display());
    path
}

/// Folder for peers that benchmarks build themselves.
pub fn tools() -> PathBuf {
    variable("BENCH_TOOLS").map_or_else(|| root().join("tools"), PathBuf::from)
}

pub(crate) fn debian_cache() -> PathBuf {
    variable("TESTKIT_DEBIAN_CACHE").map_or_else(|| root().join("debian-cache"), PathBuf::from)
}

pub(crate) fn deadline() -> Duration {
    Duration::from_secs(number("TESTKIT_DEADLINE").unwrap_or(60))
}

pub(crate) fn random_seed() -> Option<u64> {
    number("TESTKIT_RANDOM")
}

/// The folder of the build profile: test programs lie in it or in its `deps`.
fn build_folder() -> PathBuf {
    let program = std::env::current_exe().expect("a running program has a path");
    let folder = program.parent().expect("a program lies in a folder");
    match folder.file_name().is_some_and(|name| name == "deps") {
        true => folder.parent().expect("`deps` lies in a folder").to_path_buf(),
        false => folder.to_path_buf(),
    }
}

fn number(name: &str) -> Option<u64> {
    let text = variable(name)?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

#[expect(clippy::disallowed_methods, reason = "the one reader of variables for tests")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
