//! `ci-tool engine status`: what the engine says about itself, if it runs.

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::globals::GlobalArgs;
use clap::Args;
use client::SessionOptions;
use config::paths::StateFiles;

/// Show whether the engine runs
#[derive(Args, Debug)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) globals: GlobalArgs,
}

pub(crate) async fn run(context: &Context) -> Result<Exit, Error> {
    let mut environment = context.environment.client.clone();
    environment.session_port.clear();
    if environment.engine.is_empty() {
        // Named by its socket an engine is never started: looking must not change what is seen.
        let dir = environment.variables.state_dir(&environment.workdir);
        let dir = dir.map_err(client::Error::from)?;
        environment.engine = format!("unix://{}", StateFiles::new(dir).socket().display());
    }
    let session = match client::connect(&environment, SessionOptions::default()).await {
        Ok(session) => session,
        Err(client::Error::Absent { .. } | client::Error::Gone(_)) => {
            context.output.result("not running\n")?;
            return Ok(Exit::FAILURE);
        }
        Err(error) => return Err(error.into()),
    };
    let status = session.status().await?;
    session.close().await?;
    // This look is a session too.
    let sessions = status.sessions.saturating_sub(1);
    context.output.result(&format!(
        "version:  v{}\npid:      {}\nuptime:   {}\nsessions: {sessions}\naddress:  {}\n",
        status.version,
        status.pid,
        tui::duration(status.uptime_seconds.saturating_mul(1_000_000)),
        environment.engine,
    ))?;
    Ok(Exit::SUCCESS)
}
