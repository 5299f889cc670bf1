//! The command line: one file a command, function flags from the schema, exit codes.
//!
//! [`main`] takes the words and the environment and gives the exit code. Commands are in
//! [`commands`], each with its own flags; what they share is small: [`context`] opens a session and
//! its display, [`function`] turns words into a GraphQL document, [`output`] is the only place that
//! prints besides the display, [`exit`] the only place that decides exit codes. There is no business
//! rule here: what things mean is the engine's to say.

mod call;
mod changes;
mod commands;
mod context;
mod environment;
mod error;
mod exit;
mod function;
mod globals;
mod help;
mod interrupt;
mod lend;
mod output;
mod progress;
mod suggest;
mod terminal;
mod usage;
mod words;

pub use environment::{Build, Environment};

use clap::{CommandFactory, FromArgMatches};
use commands::Cli;
use error::Error;
use exit::Exit;
use output::Output;
use std::ffi::OsString;

/// Runs the command that the words after the program's name ask for, and gives its exit code.
pub fn main(words: Vec<OsString>, environment: Environment) -> u8 {
    let output = Output::new(environment.no_color);
    let result = parse(&words, &output).and_then(|parsed| match parsed {
        Parsed::Help(text) => output.result(&text).map(|()| Exit::SUCCESS),
        Parsed::Command(cli) => commands::run(*cli, environment),
    });
    let exit = result.unwrap_or_else(|error| {
        output.error(&error);
        Exit::of_error(&error)
    });
    exit.0
}

/// Prints why a role of the program cannot begin, and gives the exit code for it.
pub fn fail(message: &str) -> u8 {
    let error = Error::user(message);
    Output::new(true).error(&error);
    Exit::of_error(&error).0
}

/// What the words ask for.
enum Parsed {
    Command(Box<Cli>),
    Help(String),
}

fn parse(words: &[OsString], output: &Output) -> Result<Parsed, Error> {
    match parse_with(Cli::command(), words) {
        Ok(cli) => Ok(Parsed::Command(Box::new(cli))),
        Err(error) if error.kind() == clap::error::ErrorKind::DisplayHelp => {
            // Pages are only made when somebody wants to read one.
            let mut command = Cli::command();
            command.build();
            let (columns, paint) = (output.columns(), output.result_paint());
            let command = help::command::with_pages(command, columns, paint);
            match parse_with(command, words) {
                Err(page) if page.kind() == error.kind() => Ok(Parsed::Help(page.to_string())),
                _ => Ok(Parsed::Help(error.to_string())),
            }
        }
        Err(error) => {
            let mut command = Cli::command();
            command.build();
            let command = usage::find(&command, words, &error);
            let path = command.get_bin_name().unwrap_or("ci-tool");
            Err(usage::explain(&error, path, &help::command::usage(&mut command.clone())))
        }
    }
}

fn parse_with(command: clap::Command, words: &[OsString]) -> Result<Cli, clap::Error> {
    let words = std::iter::once(OsString::from("ci-tool")).chain(words.iter().cloned());
    let matches = command.try_get_matches_from(words)?;
    Cli::from_arg_matches(&matches)
}

#[cfg(test)]
mod tests;
