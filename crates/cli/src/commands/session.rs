//! `ci-tool session`: how published client libraries start us.
//!
//! The contract is theirs: one line of JSON with exactly two keys, then silence; standard input at
//! its end means stop. Old libraries pass flags that mean nothing here, so unknown ones are ignored.

use super::{Typed, block_on};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::globals::GlobalArgs;
use crate::interrupt::Interrupt;
use clap::Args;
use client::{Endpoint, SessionOptions};
use tokio::io::AsyncReadExt;

/// Written by hand, because every flag but these is taken and ignored.
const HELP: &str = "\
Serve a session to a client library

USAGE
  ci-tool session [options]

OPTIONS
      --workdir string   Directory that relative host paths start from
      --label name:value Name and version of the library, repeatable
      --version string   Version of the API whose behaviour is expected

The first line on standard output is JSON with the port and the token of the session. The session
ends with standard input, or on SIGTERM. Other flags are accepted and ignored.
";

/// Serve a session to a client library
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct SessionArgs {
    /// Flags of client libraries
    #[arg(allow_hyphen_values = true, trailing_var_arg = true, hide = true)]
    words: Vec<String>,
}

pub(crate) fn run(args: &SessionArgs, typed: Typed) -> Result<Exit, Error> {
    if args.words.iter().any(|word| matches!(word.as_str(), "-h" | "--help")) {
        typed.context(GlobalArgs::default())?.output.result(HELP)?;
        return Ok(Exit::SUCCESS);
    }
    let mut globals = GlobalArgs::default();
    globals.shared.workdir = values(&args.words, "--workdir").last().map(Into::into);
    let context = typed.context(globals)?;
    let (notices, lock) = (context.notices(), context.globals.lock());
    let options = SessionOptions { notices, lock, ..options(&args.words) };
    block_on(serve(&context, options))
}

async fn serve(context: &Context, options: SessionOptions) -> Result<Exit, Error> {
    let mut interrupt = Interrupt::new()?;
    let session = interrupt.or(client::connect(&context.environment.client, options)).await?;
    let endpoint = Endpoint::start(&session).await?;
    context.output.result(&first_line(endpoint.port(), endpoint.token()))?;
    tokio::select! {
        () = end_of_input() => {}
        () = interrupt.pressed() => {}
    }
    drop(endpoint);
    // The library has gone; how the end went is for whoever reads the log.
    if let Err(error) = session.close().await {
        context.output.note(&error.to_string());
    }
    Ok(Exit::SUCCESS)
}

fn first_line(port: u16, token: &str) -> String {
    format!("{{\"port\":{port},\"session_token\":\"{token}\"}}\n")
}

async fn end_of_input() {
    let mut input = tokio::io::stdin();
    let mut bytes = [0; 4096];
    while matches!(input.read(&mut bytes).await, Ok(count) if count > 0) {}
}

fn options(words: &[String]) -> SessionOptions {
    let labels: Vec<(String, String)> = values(words, "--label")
        .filter_map(|label| label.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let version = values(words, "--version").last();
    let library = labels.iter().find(|(name, _)| name.ends_with("sdk.version"));
    let compat = version.or(library.map(|(_, value)| value.as_str()));
    let compat = compat.filter(|version| *version != "n/a").unwrap_or_default().to_owned();
    SessionOptions { labels, compat, ..SessionOptions::default() }
}

/// The values that a flag was given, in either form.
fn values<'w>(words: &'w [String], flag: &'w str) -> impl Iterator<Item = &'w str> {
    words.iter().enumerate().filter_map(move |(index, word)| {
        let rest = word.strip_prefix(flag)?;
        match rest.strip_prefix('=') {
            Some(value) => Some(value),
            None if rest.is_empty() => words.get(index + 1).map(String::as_str),
            None => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn the_first_line_has_exactly_two_keys() {
        let line = first_line(4711, "abc");
        assert_eq!(line, "{\"port\":4711,\"session_token\":\"abc\"}\n");
        let parsed: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(parsed.as_object().unwrap().len(), 2);
    }

    #[test]
    fn learns_the_library_from_its_labels() {
        let line = "--label lib.example/sdk.name:python --label lib.example/sdk.version:0.16.3 \
                    --workdir /w --project /p --serve-module -v";
        let options = options(&words(line));
        assert_eq!(options.compat, "0.16.3");
        assert_eq!(options.labels[0], ("lib.example/sdk.name".into(), "python".into()));
        assert_eq!(values(&words(line), "--workdir").last(), Some("/w"));
    }

    #[test]
    fn an_explicit_version_wins_and_none_is_none() {
        let compat = |line: &str| options(&words(line)).compat;
        assert_eq!(compat("--label x/sdk.version:0.16.3 --version=0.18.0"), "0.18.0");
        assert_eq!(compat("--label x/sdk.version:n/a"), "");
        assert_eq!(compat("--unknown --flags"), "");
    }
}
