//! A command of a container in the background: what a service is made of.
//!
//! It runs as any other, over an overlay of its own, but nothing of what it writes is kept.

use super::captures::Captures;
use super::failure::{not_begun, stopped};
use super::healthcheck::Healthcheck;
use super::outcome::Capture;
use super::ports::ExposedPort;
use super::run::{self, Command};
use super::terminal::TERMINAL_KIND;
use super::{Container, failure};
use crate::host::UserTerminal;
use crate::nest::Nested;
use crate::service::Service;
use crate::services::Services;
use graph::{Context, Span};
use protocol::{Digest, Error, ExecFailure};
use redact::Known;
use sandbox::{Begun, Exit, Lead, Process, Root, Sandbox, Spec, User, Wish};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{oneshot, watch};

/// A command of a container that is to run in the background.
#[derive(Clone)]
pub(crate) struct Background {
    container: Container,
    command: Command,
}

/// A command that runs.
pub(crate) struct Alive {
    /// Where it is in the network of containers, if it is in that.
    pub(crate) address: Option<Ipv4Addr>,
    pub(crate) process: Process,
    pub(crate) beside: Beside,
}

/// How commands run beside it: as it does.
pub(crate) struct Beside {
    env: Vec<(String, String)>,
    workdir: String,
    user: User,
}

impl Background {
    pub(super) fn new(container: &Container, command: Command) -> Self {
        let mut container = container.clone();
        // A service is shared by all who name it, so it sees nothing that is no part of its name.
        container.volatile.clear();
        Self { container, command }
    }

    /// Stands for all that makes it what it is.
    pub(super) async fn identity(&self, cx: &Context) -> Result<Digest, Error> {
        let action = run::action(&self.container, &self.command, cx).await?;
        let mut digest = Digest::builder("service:container");
        digest.digest(&action);
        for port in self.ports() {
            digest.text(&port.to_string()).number(u64::from(port.skip_healthcheck));
        }
        if let Some(check) = self.container.config.other.get("Healthcheck") {
            digest.text(&check.to_string());
        }
        Ok(digest.finish())
    }

    /// What says whether it works.
    pub(crate) fn healthcheck(&self) -> Option<Healthcheck> {
        Healthcheck::of(&self.container.config)
    }

    /// What a terminal runs there when asked to run `args`.
    pub(crate) fn terminal_args(&self, args: &[String]) -> Vec<String> {
        self.container.terminal_command(args).args
    }

    /// The ports that it listens on.
    pub(crate) fn ports(&self) -> &[ExposedPort] {
        &self.container.config.ports
    }

    /// Takes the services out that it is bound to.
    pub(crate) fn take_bound(&mut self) -> Vec<Service> {
        let bindings = std::mem::take(&mut self.container.bindings);
        bindings.into_iter().map(|binding| binding.service).collect()
    }

    /// Runs it to its end, whatever that is; `begun` hears that it is about to begin. The result is why
    /// it ended.
    pub(crate) async fn run(
        &self,
        (cx, span): (&Context, &Span),
        wish: watch::Receiver<Wish>,
        begun: oneshot::Sender<Alive>,
    ) -> Error {
        match self.try_run((cx, span), wish, begun).await {
            Ok(error) | Err(error) => error,
        }
    }

    async fn try_run(
        &self,
        (cx, span): (&Context, &Span),
        wish: watch::Receiver<Wish>,
        begun: oneshot::Sender<Alive>,
    ) -> Result<Error, Error> {
        let services = cx.get::<Services>()?;
        let revealed = self.container.secrets.reveal(cx).await?;
        let shown = cx.get::<Known>()?.redactor();
        let prepared =
            run::prepare(&self.container, (&self.command, &revealed), services, cx).await?;
        let mut spec = prepared.spec;
        if let Some(company) = &mut spec.company {
            company.always = true;
        }
        let beside = Beside {
            env: spec.env.clone(),
            workdir: spec.workdir.clone(),
            user: spec.user.clone(),
        };
        let (sender, started) = oneshot::channel();
        spec.lead = Some(Lead { begun: sender, wish });
        let captures = Arc::new(Mutex::new(Captures::ending(services, &shown)));
        let output = {
            let (captures, span) = (captures.clone(), span.clone());
            Box::new(move |stream: sandbox::Stream, bytes: &[u8]| {
                let mut captures = captures.lock().unwrap_or_else(PoisonError::into_inner);
                captures.push(stream, bytes, &span);
            })
        };
        let tell = async {
            if let Ok(Begun { address, process }) = started.await {
                // Whoever started it watches its end as well.
                let _ = begun.send(Alive { address, process, beside });
            }
            std::future::pending::<()>().await;
        };
        let ended = tokio::select! {
            ended = services.sandbox.run(spec, output) => ended,
            never = Nested::attend(prepared.nested, cx.clone()) => match never {},
            () = tell => return Err(Error::internal("a service ended without an end")),
            Ok(full) = prepared.stopped => {
                drop(prepared.workspace);
                run::released(prepared.gone, services).await;
                return Ok(stopped(full, &failure::display(&self.command, &shown)));
            }
            error = prepared.bound.died() => {
                drop(prepared.workspace);
                run::released(prepared.gone, services).await;
                return Ok(error);
            }
        };
        let mut captures = captures.lock().unwrap_or_else(PoisonError::into_inner);
        captures.end(span);
        Ok(self.told(ended, &captures))
    }

    /// What its end means to who needed it.
    fn told(&self, ended: Result<sandbox::Exit, sandbox::Error>, captures: &Captures) -> Error {
        let failure = |exit_code| ExecFailure {
            cmd: self.command.args.clone(),
            exit_code,
            stdout: captures.stdout.untrimmed(),
            stderr: captures.stderr.untrimmed(),
        };
        match ended {
            Ok(exit) => {
                Error::user(format!("exit code: {}", exit.code)).with_exec(failure(exit.code))
            }
            Err(error @ sandbox::Error::Program { code, .. }) => {
                not_begun(error).with_exec(failure(code))
            }
            Err(error) => not_begun(error),
        }
    }
}

impl Beside {
    /// Runs a command in the container, and gives its exit code and what it printed last.
    pub(crate) async fn run(
        &self,
        process: &Process,
        args: Vec<String>,
        services: &Services,
    ) -> Result<(i32, String), Error> {
        let printed = Arc::new(Mutex::new(Capture::ending(&services.store)));
        let output = {
            let printed = printed.clone();
            Box::new(move |_, bytes: &[u8]| {
                printed.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
            })
        };
        let exit = services.sandbox.run(self.spec(process, args), output).await;
        let exit = exit.map_err(not_begun)?;
        let printed = printed.lock().unwrap_or_else(PoisonError::into_inner);
        Ok((exit.code, printed.excerpt()))
    }

    /// Runs a command in the container on the user's terminal.
    pub(crate) async fn run_on(
        &self,
        terminal: UserTerminal,
        process: &Process,
        args: Vec<String>,
        sandbox: &Sandbox,
    ) -> Result<Exit, Error> {
        let mut spec = self.spec(process, args);
        if spec.env.iter().all(|(name, _)| name != TERMINAL_KIND.0) {
            spec.env.push((TERMINAL_KIND.0.to_owned(), TERMINAL_KIND.1.to_owned()));
        }
        terminal.run(spec, sandbox).await.map_err(not_begun)
    }

    fn spec(&self, process: &Process, args: Vec<String>) -> Spec {
        Spec {
            env: self.env.clone(),
            workdir: self.workdir.clone(),
            user: self.user.clone(),
            ..Spec::new(Root::Of(process.clone()), args)
        }
    }
}
