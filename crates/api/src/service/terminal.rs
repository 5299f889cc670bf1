//! `Service.terminal`: a shell in a service that runs.

use super::Service;
use super::instance::Place;
use crate::host::Host;
use crate::services::Services;
use graph::{Args, Builder, Context, LogStream, Op, Scope, Value};
use protocol::Error;

pub(super) fn install(builder: &mut Builder) {
    builder.install::<OpenTerminal>();
}

/// Opens a shell on your terminal, in the container of the service. The service is started if it does not run.
#[derive(Args)]
struct OpenTerminal {
    /// What runs there; empty is the container's own terminal command, or `sh`.
    #[arg(default = "[]")]
    cmd: Vec<String>,
}

impl Op for OpenTerminal {
    type Parent = Service;
    type Output = Service;
    const NAME: &'static str = "terminal";
    const SCOPE: Scope = Scope::Session;

    fn is_unique(_: &[(Box<str>, Value)]) -> bool {
        true
    }

    async fn run(&self, service: &Service, cx: &Context) -> Result<Service, Error> {
        let lease = service.start(cx).await?;
        let (Some(background), Some(Place { inside: Some((process, beside)), .. })) =
            (service.background(), lease.place())
        else {
            return Err(Error::user("only the service of a container has a terminal"));
        };
        let args = background.terminal_args(&self.cmd);
        let terminal = cx.get::<Host>()?.files().terminal().await?;
        let sandbox = &cx.get::<Services>()?.sandbox;
        let exit = beside.run_on(terminal, process, args, sandbox).await?;
        cx.span().log(LogStream::Engine, format!("exit code: {}\n", exit.code));
        Ok(service.clone())
    }
}
