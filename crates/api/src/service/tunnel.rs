//! A service on the caller's machine: the client listens there, and the engine passes every connection on
//! to the container: to its loopback first, so that a server which trusts nobody else, or listens for nobody else,
//! is reached as well.

use super::forwards::{Forwarded, PortForward};
use super::instance::{Life, Place};
use super::{Kind, Lease, Service};
use crate::container::{ExposedPort, NetworkProtocol};
use crate::host::{Host, HostObject, HostPort};
use crate::relay::{relay, relay_packets};
use crate::service::RunningServices;
use futures::StreamExt as _;
use graph::{Args, Builder, Context, LogStream, Op, Ref, Scope, Span};
use protocol::attach::ListenRequest;
use protocol::{Digest, Error};
use sandbox::Process;
use sandbox::network::Party;
use std::io;
use std::net::SocketAddrV4;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Where a tunnel is reached.
pub(super) const HERE: &str = "localhost";

pub(super) fn install(builder: &mut Builder) {
    builder.install::<MakeTunnel>().install::<Up>();
}

/// A service that is reached on the caller's machine.
#[derive(Clone)]
pub(super) struct Tunnel {
    service: Service,
    ports: Vec<Forwarded>,
}

/// A service of containers, reached on your machine while it is started.
#[derive(Args)]
struct MakeTunnel {
    /// Listen on the same ports as the service.
    #[arg(default = "false")]
    native: bool,
    /// Ports to listen on; without any, one is chosen for each port of the service.
    #[arg(default = "[]")]
    ports: Vec<PortForward>,
    /// The service.
    service: Ref<Service>,
}

impl Op for MakeTunnel {
    type Parent = HostObject;
    type Output = Service;
    const NAME: &'static str = "tunnel";
    const SCOPE: Scope = Scope::Session;
    const EAGER: bool = true;

    async fn run(&self, _: &HostObject, cx: &Context) -> Result<Service, Error> {
        let tunnel = Tunnel::new(&self.service, &self.ports, self.native)?;
        let mut identity = Digest::builder("service:tunnel");
        identity.text(cx.session_id()).digest(tunnel.service.identity());
        tunnel.ports.iter().for_each(|port| port.digest_into(&mut identity));
        Ok(Service::new(Kind::Tunnel(tunnel), identity.finish(), vec![]))
    }
}

/// Makes the service reachable on your machine, and runs until you interrupt it.
#[derive(Args)]
struct Up {
    /// Ports to listen on; without any, those of the service.
    #[arg(default = "[]")]
    ports: Vec<PortForward>,
    /// Listen on ports that are chosen for you.
    #[arg(default = "false")]
    random: bool,
}

impl Op for Up {
    type Parent = Service;
    type Output = ();
    const NAME: &'static str = "up";
    const SCOPE: Scope = Scope::Request;

    async fn run(&self, service: &Service, cx: &Context) -> Result<(), Error> {
        up(service, &self.ports, self.random, cx).await
    }
}

/// Makes a service reachable on the caller's machine until nobody waits for this any more.
pub(crate) async fn up(
    service: &Service,
    ports: &[PortForward],
    random: bool,
    cx: &Context,
) -> Result<(), Error> {
    let tunnel = Tunnel::new(service, ports, !random && ports.is_empty())?;
    let running = cx.get::<RunningServices>()?;
    let open = tunnel.open(running, cx, cx.span()).await?;
    Err(open.ended().await)
}

impl Tunnel {
    fn new(service: &Service, ports: &[PortForward], native: bool) -> Result<Self, Error> {
        if service.background().is_none() {
            return Err(Error::user("only the service of a container can be tunnelled"));
        }
        let mut forwards =
            ports.iter().map(PortForward::checked).collect::<Result<Vec<_>, Error>>()?;
        if native || ports.is_empty() {
            let own = |port: &ExposedPort| Forwarded::of(port, native.then_some(port.number));
            forwards.extend(service.ports().iter().map(own));
        }
        if forwards.is_empty() {
            return Err(Error::user("there are no ports to listen on").with_hint(
                "say which port the service listens on with `withExposedPort`, or give `ports`",
            ));
        }
        Ok(Self { service: service.clone(), ports: forwards })
    }

    /// Starts the service and opens the ports.
    async fn open(
        &self,
        running: &RunningServices,
        cx: &Context,
        span: &Span,
    ) -> Result<Open, Error> {
        let party = running.need_party()?;
        let lease = self.service.start(cx).await?;
        let address = lease.address().ok_or_else(|| Error::internal("a service is nowhere"))?;
        let host = cx.get::<Host>()?.clone();
        let mut open = Open { ports: vec![], lease, host, serving: JoinSet::new() };
        for forward in &self.ports {
            let way = Way {
                party: party.clone(),
                target: SocketAddrV4::new(address, forward.backend),
                protocol: forward.protocol,
                host: open.host.clone(),
                process: open.lease.process().cloned(),
            };
            if let Err(error) = open.add(forward, way, span).await {
                open.close().await;
                return Err(error);
            }
        }
        Ok(open)
    }

    /// Listens until the service is to end, and has closed its ports then.
    pub(super) async fn run(&self, life: &Life<'_>) -> Result<Error, Error> {
        let open = self.open(life.running, life.cx, life.span).await?;
        life.ready(Place { address: None, ports: open.ports.clone(), inside: None });
        let why = tokio::select! {
            error = open.ended() => error,
            () = life.instance.wished() => Error::user("it was stopped"),
        };
        open.close().await;
        Ok(why)
    }
}

/// A tunnel that is open, for as long as this lives. Its ports may be open a moment longer, unless they are
/// closed.
struct Open {
    ports: Vec<ExposedPort>,
    lease: Lease,
    host: Arc<Host>,
    /// Ends with this.
    serving: JoinSet<()>,
}

impl Open {
    /// Opens a port and passes on who connects there.
    async fn add(&mut self, forward: &Forwarded, way: Way, span: &Span) -> Result<(), Error> {
        let request =
            ListenRequest { port: forward.frontend.unwrap_or_default(), udp: forward.is_udp() };
        let open = self.host.files().listen(request).await?;
        let target = ExposedPort { number: forward.backend, ..forward.exposed(open.port) };
        let word = format!("{HERE}:{} -> {}:{target}\n", open.port, self.lease.hostname());
        span.log(LogStream::Notice, word);
        self.ports.push(forward.exposed(open.port));
        self.serving.spawn(serve(open, way));
        Ok(())
    }

    /// Waits until the service behind it has ended, and gives what that means.
    async fn ended(&self) -> Error {
        let mut error = self.lease.ended().await;
        error.message = format!("service {} exited: {}", self.lease.hostname(), error.message);
        error
    }

    /// Closes the ports. Those of a client that has gone are closed anyway.
    async fn close(&self) {
        for port in &self.ports {
            let udp = port.protocol == NetworkProtocol::Udp;
            let closing = self.host.files().close(ListenRequest { port: port.number, udp });
            if let Err(error) = closing.await {
                tracing::debug!(%error, port = port.number, "a port is not closed in order");
            }
        }
    }
}

/// Where connections go.
#[derive(Clone)]
struct Way {
    party: Party,
    target: SocketAddrV4,
    protocol: NetworkProtocol,
    host: Arc<Host>,
    /// The container.
    process: Option<Process>,
}

impl Way {
    async fn connect(&self) -> io::Result<TcpStream> {
        match &self.process {
            Some(process) => self.party.connect_within(process, self.target).await,
            None => self.party.connect(self.target).await,
        }
    }
}

async fn serve(open: HostPort, way: Way) {
    let HostPort { mut connections, .. } = open;
    let mut passing = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = passing.join_next() => {}
            connection = connections.next() => {
                let Some(number) = connection else { return };
                passing.spawn(pass(number, way.clone()));
            }
        }
    }
}

/// Passes one connection on. One that the service refuses is closed.
async fn pass(number: u64, way: Way) {
    let Ok(channel) = way.host.files().accept(number).await else { return };
    let refused = match way.protocol {
        NetworkProtocol::Tcp => match way.connect().await {
            Ok(stream) => return relay(stream, channel).await,
            Err(error) => error,
        },
        NetworkProtocol::Udp => match way.party.connect_udp(way.target).await {
            Ok(socket) => return relay_packets(socket, channel).await,
            Err(error) => error,
        },
    };
    tracing::debug!(%refused, target = %way.target, "a service takes no connection");
}
