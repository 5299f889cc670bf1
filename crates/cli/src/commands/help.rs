//! `ci-tool help [command]...`: the same as `--help` after the command.

use super::Typed;
use crate::error::Error;
use crate::exit::Exit;
use clap::Args;
use std::ffi::OsString;

/// Show help about a command
#[derive(Args, Debug)]
pub(crate) struct HelpArgs {
    /// Words of the command
    #[arg(value_name = "command", trailing_var_arg = true)]
    words: Vec<OsString>,
}

pub(crate) fn run(args: &HelpArgs, typed: Typed) -> Result<Exit, Error> {
    let mut words = args.words.clone();
    words.push("--help".into());
    Ok(Exit(crate::main(words, typed.environment)))
}
