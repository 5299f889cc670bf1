//! `ci-tool engine dial-stdio`: one's own engine on standard input and output. A client on another
//! machine runs this by ssh, for an engine at an `ssh://` address.

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::globals::GlobalArgs;
use clap::Args;

/// Pass bytes between standard input and output and the engine
#[derive(Args, Debug)]
pub(crate) struct DialStdioArgs {
    #[command(flatten)]
    pub(crate) globals: GlobalArgs,
}

pub(crate) async fn run(context: &Context) -> Result<Exit, Error> {
    client::relay(&context.environment.client).await?;
    Ok(Exit::SUCCESS)
}
