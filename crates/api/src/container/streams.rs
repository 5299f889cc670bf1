//! What the last command of a container printed and how it ended.

use super::Container;
use super::outcome::{Combined, Outcome};
use crate::services::Services;
use graph::{Args, Builder, Context, Op, OwnId, Scope};
use protocol::Error;
use std::sync::Arc;

pub(super) fn install(builder: &mut Builder) {
    builder
        .install::<Stdout>()
        .install::<Stderr>()
        .install::<CombinedOutput>()
        .install::<ExitCode>()
        .install::<Sync>();
}

/// What the last command wrote to its standard output.
#[derive(Args)]
struct Stdout {}

impl Op for Stdout {
    type Parent = Container;
    type Output = String;
    const NAME: &'static str = "stdout";
    const SCOPE: Scope = Scope::Recent;

    async fn run(&self, container: &Container, cx: &Context) -> Result<String, Error> {
        let outcome = container.outcome()?;
        read(cx, move |services| outcome.stdout.read(&services.store, "stdout", "redirectStdout"))
            .await
    }
}

/// What the last command wrote to its standard error.
#[derive(Args)]
struct Stderr {}

impl Op for Stderr {
    type Parent = Container;
    type Output = String;
    const NAME: &'static str = "stderr";
    const SCOPE: Scope = Scope::Recent;

    async fn run(&self, container: &Container, cx: &Context) -> Result<String, Error> {
        let outcome = container.outcome()?;
        read(cx, move |services| outcome.stderr.read(&services.store, "stderr", "redirectStderr"))
            .await
    }
}

/// What the last command wrote to both streams. The order is kept while it is short; long output is
/// the standard output followed by the standard error.
#[derive(Args)]
struct CombinedOutput {}

impl Op for CombinedOutput {
    type Parent = Container;
    type Output = String;
    const NAME: &'static str = "combinedOutput";
    const SCOPE: Scope = Scope::Recent;

    async fn run(&self, container: &Container, cx: &Context) -> Result<String, Error> {
        let outcome = container.outcome()?;
        read(cx, move |services| match &outcome.combined {
            Combined::Inline(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
            Combined::Parts => {
                let stdout = outcome.stdout.read(&services.store, "stdout", "redirectStdout")?;
                let stderr = outcome.stderr.read(&services.store, "stderr", "redirectStderr")?;
                Ok(stdout + &stderr)
            }
        })
        .await
    }
}

/// Exit code of the last command.
#[derive(Args)]
struct ExitCode {}

impl Op for ExitCode {
    type Parent = Container;
    type Output = i64;
    const NAME: &'static str = "exitCode";
    const SCOPE: Scope = Scope::Recent;

    async fn run(&self, container: &Container, _: &Context) -> Result<i64, Error> {
        Ok(i64::from(container.outcome()?.exit_code))
    }
}

/// Runs everything behind the container, and gives its id.
#[derive(Args)]
struct Sync {}

impl Op for Sync {
    type Parent = Container;
    type Output = OwnId;
    const NAME: &'static str = "sync";

    async fn run(&self, container: &Container, cx: &Context) -> Result<OwnId, Error> {
        let services = cx.get::<Services>()?;
        for tree in container.trees() {
            tree.snapshot(services).await?;
        }
        Ok(OwnId)
    }
}

impl Container {
    fn outcome(&self) -> Result<Arc<Outcome>, Error> {
        let none = || {
            Error::user("no command has been set")
                .with_hint("run one with `withExec` before asking for what it printed")
        };
        self.last.clone().ok_or_else(none)
    }
}

/// Reads a stream off the async threads.
async fn read(
    cx: &Context,
    read: impl FnOnce(&Services) -> Result<String, Error> + Send + 'static,
) -> Result<String, Error> {
    let services = cx.get::<Services>()?.clone();
    let inner = services.clone();
    services.blocking(move || read(&inner)).await
}
