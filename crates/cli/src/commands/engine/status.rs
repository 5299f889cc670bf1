//! `ci-tool engine status`: what the engine says about itself, if it runs.

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::globals::GlobalArgs;
use clap::Args;
use client::{ClientEnvironment, SessionOptions};
use config::paths::StateFiles;
use protocol::session::EngineStatus;

/// Show whether the engine runs
#[derive(Args, Debug)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) globals: GlobalArgs,
}

pub(crate) async fn run(context: &Context) -> Result<Exit, Error> {
    let mut environment = context.environment.client.clone();
    environment.session_port.clear();
    let mut beside = None;
    if environment.engine.is_empty() {
        // Named by its socket an engine is never started: looking must not change what is seen.
        let dir = environment.variables.state_dir(&environment.workdir);
        let files = StateFiles::new(dir.map_err(client::Error::from)?);
        environment.engine = address(&files);
        beside = Some(files.beside(protocol::VERSION)).filter(|files| files.socket().exists());
    }
    let mut found = look(&environment).await;
    if let (Err(client::Error::OtherVersion(_)), Some(files)) = (&found, beside) {
        environment.engine = address(&files);
        found = look(&environment).await;
    }
    let status = match found {
        Ok(status) => status,
        Err(client::Error::Absent { .. } | client::Error::Gone(_)) => {
            context.output.result("not running\n")?;
            return Ok(Exit::FAILURE);
        }
        Err(error) => return Err(error.into()),
    };
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

fn address(files: &StateFiles) -> String {
    format!("unix://{}", files.socket().display())
}

async fn look(environment: &ClientEnvironment) -> Result<EngineStatus, client::Error> {
    let session = client::connect(environment, SessionOptions::default()).await?;
    let status = session.status().await?;
    session.close().await?;
    Ok(status)
}
