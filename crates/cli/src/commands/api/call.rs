//! `ci-tool api call`: calls functions, chained into a pipeline.

use crate::call::{self, CallCommand, CallFlags};
use crate::commands::{Typed, block_on};
use crate::error::Error;
use crate::exit::Exit;
use crate::globals::{ModuleArgs, NoModuleArgs};
use clap::Args;

/// Call one or more functions, chained into a pipeline
#[derive(Args, Clone, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct CallArgs {
    #[command(flatten)]
    flags: CallFlags,
    #[command(flatten)]
    modules: ModuleArgs,
    #[command(flatten)]
    no_module: NoModuleArgs,
}

impl CallCommand for CallArgs {
    fn flags(&self) -> &CallFlags {
        &self.flags
    }

    fn on_core(&self) -> Result<bool, Error> {
        Ok(self.modules.names_core()? || self.no_module.no_load_module)
    }
}

pub(crate) fn run(mut args: CallArgs, typed: Typed, path: &str) -> Result<Exit, Error> {
    args.modules = args.modules.after(typed.modules.clone());
    args.no_module.no_load_module |= typed.no_module.no_load_module;
    let mut context = typed.context(args.flags.early_globals())?;
    block_on(call::run(&args, path, &mut context))
}
