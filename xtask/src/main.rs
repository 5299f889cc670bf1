//! The project's own tasks: `cargo xtask <task>`.
//!
//! This program only starts other programs and reads text. It knows nothing of the product beyond
//! its command line, and it uses the standard library alone so that starting it costs seconds.

#![expect(clippy::print_stdout, reason = "a task runner talks on the terminal")]

mod bench;
mod clients;
mod command;
mod corpus;
mod demo;
mod docs;
mod image;
mod packages;
mod project;
mod release;
mod selection;
mod soak;
mod test;
mod tidy;
mod toolchains;

use anyhow::{Context as _, Result, bail};
use project::Project;
use std::process::ExitCode;

const HELP: &str = "\
Tasks of this project.

Usage: cargo xtask <task> [options]

  demo                     build ci-tool and run a small pipeline in real containers
  test [--full] [filter]   format, lints, tidy, build and all tests, real containers included;
                           with a filter: build and the tests whose names contain it;
                           --full adds doc tests, the oldest client libraries and the extra
                           checkers that are installed
  tidy                     rules about files, names and crate arrows
  docs [--check|--missing] write docs/reference; --check only compares; --missing lists the fields
                           of the API that answer \"not implemented yet\"
  bench [name]             release build, then every benchmark (or one), each beside a peer or floor
  soak [filter]            the tests that repeat themselves, 200 rounds each
  corpus                   write the listings of tests/corpus anew, with another builder (buildah)
  release                  the static binary, its size and a proof that it needs no library
  setup [for]              install what a task needs (for: build, test, bench, clients)
";

/// A hidden first word: the rest of `test`, `bench`, `soak` or `corpus`, inside a mount namespace of its own.
const INSIDE: &str = "inside";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let project = Project::find().context("cannot find the project's folder")?;
    match words.as_slice() {
        ["demo"] => demo::run(&project),
        ["test", rest @ ..] => test::run(&project, rest),
        ["tidy"] => tidy::run(&project),
        ["docs", rest @ ..] => docs::run(&project, rest),
        ["bench", rest @ ..] => bench::run(&project, rest),
        ["soak", rest @ ..] => soak::run(&project, rest),
        ["corpus"] => corpus::run(&project),
        ["release"] => release::run(&project),
        ["setup", "clients"] => {
            packages::require(packages::Purpose::Test)?;
            clients::prepare(&project, clients::ALL)
        }
        ["setup", rest @ ..] => packages::run(rest),
        [INSIDE, "test", rest @ ..] => test::inside(&project, rest),
        [INSIDE, "soak", rest @ ..] => soak::inside(&project, rest),
        [INSIDE, "corpus"] => corpus::inside(&project),
        [INSIDE, "bench", rest @ ..] => bench::inside(&project, rest),
        [] | ["help" | "--help" | "-h"] => {
            println!("{HELP}");
            Ok(())
        }
        [word, ..] => bail!("unknown task `{word}`\n\n{HELP}"),
    }
}
