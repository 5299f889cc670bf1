//! The fields of `Service`.

use super::tunnel::HERE;
use super::{Service, check_name};
use crate::container::ExposedPort;
use crate::service::RunningServices;
use graph::{Args, Builder, Context, Op, OwnId, Scope};
use protocol::Error;
use sandbox::Wish;

pub(super) fn install(builder: &mut Builder) {
    builder
        .install::<Hostname>()
        .install::<WithHostname>()
        .install::<Endpoint>()
        .install::<Ports>()
        .install::<Start>()
        .install::<Stop>()
        .install::<Sync>();
}

/// The name by which containers of this session reach it. Equal services have equal names, in every session.
#[derive(Args)]
struct Hostname {}

impl Op for Hostname {
    type Parent = Service;
    type Output = String;
    const NAME: &'static str = "hostname";

    async fn run(&self, service: &Service, _: &Context) -> Result<String, Error> {
        Ok(if service.is_tunnel() { HERE } else { service.hostname() }.to_owned())
    }
}

/// Gives it a name of your own, by which every container of this session reaches it while it runs.
#[derive(Args)]
struct WithHostname {
    /// The name.
    hostname: String,
}

impl Op for WithHostname {
    type Parent = Service;
    type Output = Service;
    const NAME: &'static str = "withHostname";

    async fn run(&self, service: &Service, _: &Context) -> Result<Service, Error> {
        check_name(&self.hostname)?;
        Ok(service.named(&self.hostname))
    }
}

/// Where it is reached: `host:port`, with a scheme before it if you say one.
#[derive(Args)]
struct Endpoint {
    /// The port; without a word the first one that it listens on.
    port: Option<i64>,
    /// What comes before `://`.
    #[arg(default = "\"\"")]
    scheme: String,
}

impl Op for Endpoint {
    type Parent = Service;
    type Output = String;
    const NAME: &'static str = "endpoint";
    const SCOPE: Scope = Scope::Request;

    async fn run(&self, service: &Service, cx: &Context) -> Result<String, Error> {
        let (host, ports) = service.reached(cx)?;
        let port = match self.port {
            Some(port) => port,
            None => i64::from(ports.first().ok_or_else(no_ports)?.number),
        };
        let scheme = &self.scheme;
        let before = if scheme.is_empty() { String::new() } else { format!("{scheme}://") };
        Ok(format!("{before}{host}:{port}"))
    }
}

fn no_ports() -> Error {
    Error::user("the service has no ports exposed")
        .with_hint("say which port it listens on with `withExposedPort`, or give `port`")
}

/// The ports that it listens on.
#[derive(Args)]
struct Ports {}

impl Op for Ports {
    type Parent = Service;
    type Output = Vec<ExposedPort>;
    const NAME: &'static str = "ports";
    const SCOPE: Scope = Scope::Request;

    async fn run(&self, service: &Service, cx: &Context) -> Result<Vec<ExposedPort>, Error> {
        Ok(service.reached(cx)?.1)
    }
}

/// Starts it and waits until it is ready: until its ports take connections and its health check succeeds. It runs
/// until it is stopped, or the session ends.
#[derive(Args)]
struct Start {}

impl Op for Start {
    type Parent = Service;
    type Output = OwnId;
    const NAME: &'static str = "start";
    const SCOPE: Scope = Scope::Request;

    async fn run(&self, service: &Service, cx: &Context) -> Result<OwnId, Error> {
        service.start(cx).await?.keep();
        Ok(OwnId)
    }
}

/// Stops it and waits until it has ended. One that does not run is left alone.
#[derive(Args)]
struct Stop {
    /// Kill it at once, instead of asking it to end.
    #[arg(default = "false")]
    kill: bool,
}

impl Op for Stop {
    type Parent = Service;
    type Output = OwnId;
    const NAME: &'static str = "stop";
    const SCOPE: Scope = Scope::Request;

    async fn run(&self, service: &Service, cx: &Context) -> Result<OwnId, Error> {
        if let Some(instance) = cx.get::<RunningServices>()?.find(service.identity()) {
            instance.wish(if self.kill { Wish::Kill } else { Wish::End });
            instance.ended().await;
        }
        Ok(OwnId)
    }
}

/// Evaluates all that it is made of, without starting it.
#[derive(Args)]
struct Sync {}

impl Op for Sync {
    type Parent = Service;
    type Output = OwnId;
    const NAME: &'static str = "sync";

    async fn run(&self, _: &Service, _: &Context) -> Result<OwnId, Error> {
        Ok(OwnId)
    }
}

impl Service {
    /// The name and the ports under which it is reached.
    fn reached(&self, cx: &Context) -> Result<(String, Vec<ExposedPort>), Error> {
        if !self.is_tunnel() {
            return Ok((self.hostname().to_owned(), self.ports().to_vec()));
        }
        // Ports of a tunnel are chosen when it is opened.
        let instance = cx.get::<RunningServices>()?.find(self.identity());
        let place = instance.and_then(|instance| instance.place());
        let place = place
            .ok_or_else(|| Error::user("the tunnel is not open").with_hint("start it first"))?;
        Ok((HERE.to_owned(), place.ports))
    }
}
