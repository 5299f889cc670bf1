//! `ci-tool core`: the older name of `api call` on the core API.

use super::{Typed, block_on};
use crate::call::{self, CallCommand, CallFlags};
use crate::error::Error;
use crate::exit::Exit;
use clap::Args;

/// Call a core function
#[derive(Args, Clone, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct CoreArgs {
    #[command(flatten)]
    flags: CallFlags,
}

impl CallCommand for CoreArgs {
    fn flags(&self) -> &CallFlags {
        &self.flags
    }

    fn on_core(&self) -> Result<bool, Error> {
        Ok(true)
    }
}

pub(crate) fn run(args: CoreArgs, typed: Typed) -> Result<Exit, Error> {
    typed.modules.names_core()?;
    let mut context = typed.context(args.flags.early_globals())?;
    context.deprecated("`core` is an older name: `api call -m core` does the same");
    block_on(call::run(&args, "ci-tool core", &mut context))
}
