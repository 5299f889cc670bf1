//! `ci-tool api`: direct access to the API.

pub(crate) mod call;
pub(crate) mod exec;
pub(crate) mod functions;
pub(crate) mod query;

use super::Typed;
use crate::error::Error;
use crate::exit::Exit;
use crate::globals::GlobalArgs;
use clap::{Args, Subcommand};

/// Use the API directly
#[derive(Args, Debug)]
pub(crate) struct ApiArgs {
    #[command(flatten)]
    globals: GlobalArgs,
    #[command(subcommand)]
    command: Option<ApiCommand>,
}

#[derive(Debug, Subcommand)]
enum ApiCommand {
    Call(call::CallArgs),
    #[command(alias = "with-session")]
    Exec(exec::ExecArgs),
    Functions(functions::FunctionsArgs),
    Query(query::QueryArgs),
}

pub(crate) fn run(args: ApiArgs, mut typed: Typed) -> Result<Exit, Error> {
    typed.globals = args.globals.after(typed.globals);
    match args.command {
        None => Ok(Exit(crate::main(vec!["api".into(), "--help".into()], typed.environment))),
        Some(ApiCommand::Call(args)) => call::run(args, typed, "ci-tool api call"),
        Some(ApiCommand::Exec(args)) => exec::run(args, typed),
        Some(ApiCommand::Functions(args)) => functions::run(args, typed, "ci-tool api functions"),
        Some(ApiCommand::Query(args)) => query::run(args, typed),
    }
}
