//! The tree of commands, and which file runs each.
//!
//! The path of a file is the words of its command. Older names are hidden and run the same code as
//! the newer ones.

mod api;
mod core;
mod engine;
mod help;
mod session;
mod version;

use crate::context::Context;
use crate::environment::Environment;
use crate::error::Error;
use crate::exit::Exit;
use crate::globals::{GlobalArgs, ModuleArgs, NoModuleArgs};
use clap::{Args, Parser, Subcommand};
use std::future::Future;

/// Run pipelines in containers, anywhere
#[derive(Debug, Parser)]
#[command(
    name = "ci-tool",
    bin_name = "ci-tool",
    disable_help_subcommand = true,
    args_override_self = true,
    override_usage = "ci-tool [options] [subcommand | file...]",
    after_help = "ci-tool api call -m core container from --address=deb://bookworm \\\n    with-exec --args=uname,-a stdout\necho '{ version }' | ci-tool api query\nci-tool api exec python3 pipeline.py"
)]
pub(crate) struct Cli {
    #[command(flatten)]
    root: RootArgs,
    #[command(flatten)]
    modules: ModuleArgs,
    #[command(flatten)]
    no_module: NoModuleArgs,
    #[command(flatten)]
    globals: GlobalArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

/// Flags of the program without a command.
#[derive(Args, Debug)]
struct RootArgs {
    /// Execute a shell command
    #[arg(short = 'c', long = "command", alias = "code", value_name = "string")]
    script: Option<String>,
    /// LLM model to use
    #[arg(long, value_name = "string")]
    model: Option<String>,
    /// Older form of -M
    #[arg(short = 'n', hide = true, conflicts_with = "load_module")]
    no_mod: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    Api(Box<api::ApiArgs>),
    #[command(hide = true)]
    Call(api::call::CallArgs),
    #[command(hide = true)]
    Core(core::CoreArgs),
    #[command(hide = true)]
    Engine(engine::EngineArgs),
    #[command(hide = true)]
    Functions(api::functions::FunctionsArgs),
    Help(help::HelpArgs),
    #[command(hide = true)]
    Query(api::query::QueryArgs),
    #[command(hide = true)]
    Run(api::exec::ExecArgs),
    #[command(hide = true)]
    Session(session::SessionArgs),
    Version(version::VersionArgs),
}

/// Runs the command that was typed.
pub(crate) fn run(cli: Cli, environment: Environment) -> Result<Exit, Error> {
    let Cli { globals, root, modules, no_module, command } = cli;
    let Some(command) = command else { return without_command(&root, environment) };
    if root.script.is_some() || root.model.is_some() {
        return Err(shell_later());
    }
    let no_module = NoModuleArgs { no_load_module: no_module.no_load_module || root.no_mod };
    let typed = Typed { globals, modules, no_module, environment };
    match command {
        Command::Api(args) => api::run(*args, typed),
        Command::Call(args) => api::call::run(args, typed, "ci-tool call"),
        Command::Core(args) => core::run(args, typed),
        Command::Engine(args) => engine::run(args, typed),
        Command::Functions(args) => api::functions::run(args, typed, "ci-tool functions"),
        Command::Help(args) => help::run(&args, typed),
        Command::Query(args) => api::query::run(args, typed),
        Command::Run(args) => api::exec::run(args, typed),
        Command::Session(args) => session::run(&args, typed),
        Command::Version(args) => version::run(&args, typed),
    }
}

/// What was typed before the command.
pub(crate) struct Typed {
    globals: GlobalArgs,
    modules: ModuleArgs,
    no_module: NoModuleArgs,
    environment: Environment,
}

impl Typed {
    /// The context of a command with these flags of its own.
    fn context(self, globals: GlobalArgs) -> Result<Context, Error> {
        Context::new(self.environment, globals.after(self.globals))
    }
}

/// Runs async work. One thread is enough for a client and starts in no time; what still blocks in
/// the background (reading standard input) must not keep the program from ending.
fn block_on<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(work);
    runtime.shutdown_background();
    result
}

fn without_command(root: &RootArgs, environment: Environment) -> Result<Exit, Error> {
    if root.script.is_some() || root.model.is_some() || environment.is_legacy() {
        return Err(shell_later());
    }
    Ok(Exit(crate::main(vec!["--help".into()], environment)))
}

fn shell_later() -> Error {
    Error::not_available("the shell").with_hint("run `ci-tool --help` to see the commands")
}
