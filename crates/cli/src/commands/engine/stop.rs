//! `ci-tool engine stop`: ends the engine; the next command that needs one starts it again.

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::globals::GlobalArgs;
use clap::Args;

/// Stop the engine
#[derive(Args, Debug)]
pub(crate) struct StopArgs {
    /// End running sessions too
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    pub(crate) globals: GlobalArgs,
}

pub(crate) async fn run(args: &StopArgs, context: &Context) -> Result<Exit, Error> {
    let stopped = client::stop(&context.environment.client, args.force).await?;
    context.output.note(if stopped { "The engine has stopped." } else { "No engine runs." });
    Ok(Exit::SUCCESS)
}
