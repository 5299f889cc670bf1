//! `ci-tool api exec`: runs a command with a live session attached.

mod child;

use crate::commands::{Typed, block_on};
use crate::context::{Context, Work};
use crate::error::Error;
use crate::exit::Exit;
use crate::globals::{DisplayChoice, GlobalArgs};
use child::Child;
use clap::Args;
use client::Endpoint;
use std::ffi::OsString;
use std::time::Duration;
use tui::Mode;

/// Verbosity of this command without flags.
const BASE_LEVEL: i32 = 1;

/// Run a command with a live API session attached
#[derive(Args, Debug)]
pub(crate) struct ExecArgs {
    /// Maximum wait between SIGTERM and SIGKILL on interrupt
    #[arg(long, value_name = "duration", default_value = "10s", value_parser = duration)]
    cleanup_timeout: Duration,
    /// Show only the command's own output unless something fails
    #[arg(long)]
    focus: bool,
    #[command(flatten)]
    globals: GlobalArgs,
    /// The command and its arguments
    #[arg(value_name = "command", trailing_var_arg = true, required = true)]
    command: Vec<OsString>,
}

pub(crate) fn run(args: ExecArgs, typed: Typed) -> Result<Exit, Error> {
    let context = typed.context(args.globals.clone())?;
    block_on(exec(&args, &context))
}

async fn exec(args: &ExecArgs, context: &Context) -> Result<Exit, Error> {
    let choice = choice(args, context)?;
    let mut work = context.open().await?;
    let result = attach(args, context, choice, &mut work).await;
    let failed = !matches!(result, Ok(Exit::SUCCESS));
    work.end(result, failed).await
}

async fn attach(
    args: &ExecArgs,
    context: &Context,
    choice: DisplayChoice,
    work: &mut Work,
) -> Result<Exit, Error> {
    let endpoint = work.interrupt.or(Endpoint::start(&work.session)).await?;
    work.show(choice);
    let live = choice.mode == Mode::Live;
    let child = Child {
        command: &args.command,
        endpoint: (endpoint.port(), endpoint.token()),
        grace: args.cleanup_timeout,
        // On a terminal that is redrawn the child's output has to pass through the display.
        captures_stdout: live && context.output.stdout_is_terminal(),
        captures_stderr: live && context.output.stderr_is_terminal(),
    };
    child.run(work).await
}

fn choice(args: &ExecArgs, context: &Context) -> Result<DisplayChoice, Error> {
    // The command may read from the terminal: keys are for it.
    let choice = DisplayChoice { keys: false, ..context.display_choice(BASE_LEVEL)? };
    if args.focus && choice.mode != Mode::Silent {
        return Ok(DisplayChoice { mode: Mode::Focus, ..choice });
    }
    Ok(choice)
}

fn duration(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    config::parse_duration(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_as_other_tools_write_them() {
        for (text, milliseconds) in [("10s", 10_000), ("1m30s", 90_000), ("500ms", 500), ("0", 0)] {
            assert_eq!(duration(text).unwrap(), Duration::from_millis(milliseconds), "{text}");
        }
        assert!(duration("10").is_err());
        assert!(duration("soon").is_err());
    }
}
