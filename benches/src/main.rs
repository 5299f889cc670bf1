//! `bench [name...]`: how fast we are, one folder a question, every figure beside a peer or a floor
//! that was measured in the same run.
//!
//! Absolute figures say little on a machine that does other things too; ratios of figures taken in
//! turns hold. Nothing here fails because something was slow: a goal that is missed is printed as
//! such. Only what could not be measured at all ends with an error.
//!
//! Meant to be started by `cargo xtask bench`, which gives it a plain file system to work on.

#![expect(clippy::print_stdout, reason = "tables on standard output are what this program makes")]

mod chain;
mod cli;
mod cold_start;
mod debian;
mod display;
mod docker_build;
mod document;
mod exec;
mod export;
mod floor;
mod git;
mod images;
mod import;
mod introspection;
mod long_chain;
mod measure;
mod memory;
mod network;
mod ours;
mod peers;
mod pull;
mod push;
mod python;
mod report;
mod rootless;
mod search;
mod service;
mod start;
mod together;
mod wide;
mod wire;

use anyhow::{Result, anyhow, bail};
use report::{Report, Verdict};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// Something we want to know.
struct Question {
    name: &'static str,
    title: &'static str,
    ask: fn(&mut Report) -> Result<()>,
}

/// All questions, the short ones first.
const QUESTIONS: &[Question] = &[
    Question { name: "exec", title: exec::TITLE, ask: exec::ask },
    Question { name: "rootless", title: rootless::TITLE, ask: rootless::ask },
    Question { name: "network", title: network::TITLE, ask: network::ask },
    Question { name: "service", title: service::TITLE, ask: service::ask },
    Question { name: "together", title: together::TITLE, ask: together::ask },
    Question { name: "chain", title: chain::TITLE, ask: chain::ask },
    Question { name: "git", title: git::TITLE, ask: git::ask },
    Question { name: "cli", title: cli::TITLE, ask: cli::ask },
    Question { name: "cold-start", title: cold_start::TITLE, ask: cold_start::ask },
    Question { name: "start", title: start::TITLE, ask: start::ask },
    Question { name: "memory", title: memory::TITLE, ask: memory::ask },
    Question { name: "introspection", title: introspection::TITLE, ask: introspection::ask },
    Question { name: "python", title: python::TITLE, ask: python::ask },
    Question { name: "import", title: import::TITLE, ask: import::ask },
    Question { name: "search", title: search::TITLE, ask: search::ask },
    Question { name: "display", title: display::TITLE, ask: display::ask },
    Question { name: "long-chain", title: long_chain::TITLE, ask: long_chain::ask },
    Question { name: "wide", title: wide::TITLE, ask: wide::ask },
    Question { name: "debian", title: debian::TITLE, ask: debian::ask },
    Question { name: "export", title: export::TITLE, ask: export::ask },
    Question { name: "docker-build", title: docker_build::TITLE, ask: docker_build::ask },
    Question { name: "pull", title: pull::TITLE, ask: pull::ask },
    Question { name: "push", title: push::TITLE, ask: push::ask },
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == floor::WORD) {
        return floor::program(&words[1..]);
    }
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(names: &[String]) -> Result<()> {
    let chosen = choose(names)?;
    peers::isolate()?;
    let mut verdict = Verdict::default();
    let mut broken = Vec::new();
    for question in chosen {
        let mut report = Report::begin(question.name, question.title);
        let asked = catch_unwind(AssertUnwindSafe(|| (question.ask)(&mut report)));
        verdict.add(report.print());
        // The text of a panic was shown where it happened.
        let result = asked.unwrap_or_else(|_| Err(anyhow!("stopped by the panic above")));
        if let Err(error) = result {
            println!("  could not be measured: {error:#}\n");
            broken.push(question.name);
        }
    }
    println!("{verdict}");
    match broken.is_empty() {
        true => Ok(()),
        false => bail!("could not be measured: {}", broken.join(", ")),
    }
}

/// The questions with these names, or all.
fn choose(names: &[String]) -> Result<Vec<&'static Question>> {
    let known = || QUESTIONS.iter().map(|question| question.name).collect::<Vec<_>>().join(", ");
    if names.is_empty() {
        return Ok(QUESTIONS.iter().collect());
    }
    let find = |name: &String| {
        let found = QUESTIONS.iter().find(|question| question.name == *name);
        found.ok_or_else(|| anyhow!("no question is named `{name}`; there are: {}", known()))
    };
    names.iter().map(find).collect()
}
