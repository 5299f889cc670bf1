//! Services of containers: a container as a service, and services that its commands reach.
//!
//! A service that is bound runs while a command does, and is known to it by an alias. The binding is no part of
//! what the container contains, but what is bound is part of the name of a command.

use super::Container;
use super::background::Background;
use super::exec::{Manner, ReturnType, command_line};
use super::run::Command;
use crate::service::{Lease, PortForward, RunningServices, Service, check_name, up};
use futures::future::try_join_all;
use futures::stream::{FuturesUnordered, StreamExt as _};
use graph::{Args, Builder, Context, Op, Ref, Scope};
use protocol::{DigestBuilder, Error};
use sandbox::Company;

pub(super) fn install(builder: &mut Builder) {
    builder.install::<AsService>().install::<Up>().install::<WithServiceBinding>();
}

/// A service that commands of a container reach.
#[derive(Clone)]
pub(super) struct Binding {
    alias: String,
    pub(super) service: Service,
}

/// The services of one command, which run.
#[derive(Default)]
pub(super) struct Bound(Vec<(String, Lease)>);

/// Feeds the name of a command with what it reaches.
pub(super) fn digest_into(container: &Container, digest: &mut DigestBuilder) {
    if container.bindings.is_empty() {
        return;
    }
    digest.text("services").number(container.bindings.len() as u64);
    for binding in &container.bindings {
        digest.text(&binding.alias).digest(binding.service.identity());
    }
}

/// Starts every service of a container, side by side, and waits until all are ready.
pub(super) async fn start(container: &Container, cx: &Context) -> Result<Bound, Error> {
    let start = |binding: &Binding| {
        let Binding { alias, service } = binding.clone();
        async move {
            let lease = service.start_as(&alias, cx).await?;
            Ok::<_, Error>((alias, lease))
        }
    };
    Ok(Bound(try_join_all(container.bindings.iter().map(start)).await?))
}

impl Bound {
    /// Whom a command of this session reaches.
    pub(super) fn company(&self, cx: &Context) -> Option<Company> {
        let party = cx.get::<RunningServices>().ok()?.party()?.clone();
        let known = |(alias, lease): &(String, Lease)| Some((alias.clone(), lease.address()?));
        Some(Company { party, aliases: self.0.iter().filter_map(known).collect(), always: false })
    }

    /// Waits until one of them has ended, and gives what that means to the command.
    pub(super) async fn died(&self) -> Error {
        let ends = self.0.iter().map(|(alias, lease)| async move {
            let mut error = lease.ended().await;
            let host = lease.hostname();
            let message = format!("bound service {host} (aliased as {alias}) exited");
            error.message = format!("{message}: {}", error.message);
            error
        });
        match ends.collect::<FuturesUnordered<_>>().next().await {
            Some(error) => error,
            None => std::future::pending().await,
        }
    }
}

/// The container as a service: its command in the background, reached on the ports that it exposes.
#[derive(Args)]
struct AsService {
    #[arg(group)]
    asked: Asked,
}

impl Op for AsService {
    type Parent = Container;
    type Output = Service;
    const NAME: &'static str = "asService";

    async fn run(&self, container: &Container, cx: &Context) -> Result<Service, Error> {
        self.asked.of(container, cx).await
    }
}

/// Runs the container as a service that is reached on your machine, until you interrupt it.
#[derive(Args)]
struct Up {
    #[arg(group)]
    asked: Asked,
    /// Ports to listen on; without any, those that the container exposes.
    #[arg(default = "[]")]
    ports: Vec<PortForward>,
    /// Listen on ports that are chosen for you.
    #[arg(default = "false")]
    random: bool,
}

impl Op for Up {
    type Parent = Container;
    type Output = ();
    const NAME: &'static str = "up";
    const SCOPE: Scope = Scope::Request;

    async fn run(&self, container: &Container, cx: &Context) -> Result<(), Error> {
        let service = self.asked.of(container, cx).await?;
        up(&service, &self.ports, self.random, cx).await
    }
}

/// What a container is to run as a service.
#[derive(Args)]
struct Asked {
    /// The program and its arguments. Empty runs the container's default arguments.
    #[arg(default = "[]")]
    args: Vec<String>,
    #[arg(group)]
    manner: Manner,
}

impl Asked {
    async fn of(&self, container: &Container, cx: &Context) -> Result<Service, Error> {
        let line = command_line(container, &self.args, self.manner)?;
        let args = line.ok_or_else(|| Error::user("no service command has been set"))?;
        let command = Command {
            args,
            expect: ReturnType::Any,
            all_capabilities: self.manner.powers.all_capabilities,
            init: !self.manner.no_init,
            nests: self.manner.powers.nests,
            stdin: String::new(),
            redirect_stdin: None,
            redirect_stdout: None,
            redirect_stderr: None,
            network: None,
        };
        let background = Background::new(container, command);
        let identity = background.identity(cx).await?;
        Ok(Service::of_container(background, identity))
    }
}

/// Lets commands reach a service, which runs while they do.
#[derive(Args)]
struct WithServiceBinding {
    /// The name by which commands of this container reach it.
    alias: String,
    /// The service.
    service: Ref<Service>,
}

impl Op for WithServiceBinding {
    type Parent = Container;
    type Output = Container;
    const NAME: &'static str = "withServiceBinding";

    async fn run(&self, container: &Container, _: &Context) -> Result<Container, Error> {
        check_name(&self.alias)?;
        if self.service.is_tunnel() {
            return Err(Error::user(
                "a tunnel is on your machine: containers cannot be bound to it",
            )
            .with_hint("bind the service that it leads to"));
        }
        let mut changed = container.clone();
        changed.bindings.retain(|binding| binding.alias != self.alias);
        let service = Service::clone(&self.service);
        changed.bindings.push(Binding { alias: self.alias.clone(), service });
        Ok(changed)
    }
}
