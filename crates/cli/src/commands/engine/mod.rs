//! `ci-tool engine`: a look at one's own engine. Hidden: nobody has to know that there is one.

mod dial_stdio;
mod status;
mod stop;

use super::{Typed, block_on};
use crate::error::Error;
use crate::exit::Exit;
use clap::{Args, Subcommand};

/// Look at the engine, or stop it
#[derive(Args, Debug)]
pub(crate) struct EngineArgs {
    #[command(subcommand)]
    command: Option<EngineCommand>,
}

#[derive(Debug, Subcommand)]
enum EngineCommand {
    #[command(hide = true)]
    DialStdio(dial_stdio::DialStdioArgs),
    Status(status::StatusArgs),
    Stop(stop::StopArgs),
}

pub(crate) fn run(args: EngineArgs, typed: Typed) -> Result<Exit, Error> {
    match args.command {
        None => Ok(Exit(crate::main(vec!["engine".into(), "--help".into()], typed.environment))),
        Some(EngineCommand::DialStdio(args)) => {
            let context = typed.context(args.globals)?;
            block_on(dial_stdio::run(&context))
        }
        Some(EngineCommand::Status(args)) => {
            let context = typed.context(args.globals)?;
            block_on(status::run(&context))
        }
        Some(EngineCommand::Stop(args)) => {
            let context = typed.context(args.globals.clone())?;
            block_on(stop::run(&args, &context))
        }
    }
}
