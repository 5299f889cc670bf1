//! The caller's machine as a service: containers connect to an address of the engine's in their network, and
//! the client connects to the port of its machine, one stream for each.

use super::forwards::{Forwarded, PortForward};
use super::instance::{Life, Place};
use super::{Kind, Service};
use crate::host::{Channel, Host, HostObject};
use crate::relay::relay;
use bytes::Bytes;
use futures::StreamExt as _;
use graph::{Args, Builder, Context, LogStream, Op, Scope, Span, Value};
use protocol::attach::{PacketDecoder, SocketAddress, packet};
use protocol::{Digest, Error};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// How long to wait when no connection can be taken, e.g. because no descriptor is free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Packets of one sender that may wait. What is more is lost, as packets may be.
const WAITING_PACKETS: usize = 64;
/// A sender that is silent for so long is forgotten.
const SILENCE: Duration = Duration::from_secs(60);

pub(super) fn install(builder: &mut Builder) {
    builder.install::<HostService>();
}

/// Ports that the client's machine reaches.
#[derive(Clone)]
pub(super) struct HostPorts {
    host: String,
    ports: Vec<Forwarded>,
}

/// Ports of your machine, or that it reaches, as a service for containers.
#[derive(Args)]
struct HostService {
    /// The machine whose ports they are, as yours knows it.
    #[arg(default = "\"localhost\"")]
    host: String,
    /// The ports: containers connect to `frontend`, or to the same number, and reach `backend`.
    ports: Vec<PortForward>,
}

impl Op for HostService {
    type Parent = HostObject;
    type Output = Service;
    const NAME: &'static str = "service";
    const SCOPE: Scope = Scope::Session;
    const EAGER: bool = true;

    fn check(args: &[(Box<str>, Value)]) -> Result<(), Error> {
        let none = |(name, value): &(Box<str>, Value)| {
            &**name == "ports" && matches!(value, Value::List(items) if items.is_empty())
        };
        if args.iter().any(none) { Err(no_ports()) } else { Ok(()) }
    }

    async fn run(&self, _: &HostObject, cx: &Context) -> Result<Service, Error> {
        let ports = self.ports.iter().map(PortForward::checked).collect::<Result<Vec<_>, _>>()?;
        Service::of_host(&self.host, ports, cx)
    }
}

fn no_ports() -> Error {
    Error::user("a service of the host needs at least one port")
}

impl Service {
    fn of_host(host: &str, ports: Vec<Forwarded>, cx: &Context) -> Result<Self, Error> {
        if ports.is_empty() {
            return Err(no_ports());
        }
        // It is this session's: another one is on another machine, or knows other things of this one.
        let mut identity = Digest::builder("service:host");
        identity.text(cx.session_id()).text(host);
        ports.iter().for_each(|port| port.digest_into(&mut identity));
        let exposed = ports.iter().map(|it| it.exposed(it.frontend.unwrap_or(it.backend)));
        let exposed = exposed.collect();
        let kind = Kind::Host(HostPorts { host: host.to_owned(), ports });
        Ok(Self::new(kind, identity.finish(), exposed))
    }

    /// The service at an address: `tcp://host:port` or `udp://host:port`, as the client's machine reaches it.
    pub(crate) fn at(text: &str, cx: &Context) -> Result<Self, Error> {
        let refused = || {
            let message = format!("service `{text}` is not of the form tcp://host:port");
            Error::user(message).with_hint("`udp://host:port` is one for packets")
        };
        let (scheme, rest) = text.split_once("://").ok_or_else(refused)?;
        let protocol = match scheme {
            "tcp" => crate::container::NetworkProtocol::Tcp,
            "udp" => crate::container::NetworkProtocol::Udp,
            _ => return Err(refused()),
        };
        let (host, port) = rest.trim_end_matches('/').rsplit_once(':').ok_or_else(refused)?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = port.parse().ok().filter(|port: &u16| *port > 0).ok_or_else(refused)?;
        if host.is_empty() {
            return Err(refused());
        }
        let forwarded = Forwarded { frontend: Some(port), backend: port, protocol };
        Self::of_host(host, vec![forwarded], cx)
    }
}

impl HostPorts {
    /// Takes connections of containers until the service is to end.
    pub(super) async fn run(&self, life: &Life<'_>) -> Result<Error, Error> {
        let party = life.running.need_party()?;
        let failed = |error: sandbox::Error| Error::environment(error.to_string());
        let stand = party.stand().map_err(failed)?;
        let mut listening = JoinSet::new();
        for port in &self.ports {
            let number = port.frontend.unwrap_or(port.backend);
            let busy = |error: std::io::Error| {
                Error::user(format!("port {number} of a service of the host: {error}"))
            };
            let line = Line {
                host: life.cx.get::<Host>()?.clone(),
                address: match port.is_udp() {
                    true => SocketAddress::Udp(self.host.clone(), port.backend),
                    false => SocketAddress::Tcp(self.host.clone(), port.backend),
                },
                span: life.span.clone(),
                told: Arc::default(),
            };
            match port.is_udp() {
                true => {
                    let socket = stand.bind(number).await.map_err(busy)?;
                    listening.spawn(receive(socket, line));
                }
                false => {
                    let listener = stand.listen(number).await.map_err(busy)?;
                    listening.spawn(accept(listener, line));
                }
            }
        }
        let offered = party.offer(&[life.instance.hostname()], stand.address());
        let _offer = offered.map_err(failed)?;
        let address = Some(stand.address());
        life.ready(Place { address, ports: life.instance.ports().to_vec(), inside: None });
        life.instance.wished().await;
        Ok(Error::user("it was stopped"))
    }
}

/// What containers connect to, and how the client is reached for it.
#[derive(Clone)]
struct Line {
    host: Arc<Host>,
    address: SocketAddress,
    /// Hears of connections that fail.
    span: Span,
    /// Whether somebody was told already: whoever tries again and again is told once.
    told: Arc<AtomicBool>,
}

impl Line {
    async fn connect(&self) -> Option<Channel> {
        match self.host.files().connect(self.address.clone()).await {
            Ok(channel) => Some(channel),
            Err(error) => {
                let told = self.told.swap(true, Ordering::Relaxed);
                let stream = if told { LogStream::Engine } else { LogStream::Notice };
                self.span.log(stream, format!("{}\n", error.message));
                None
            }
        }
    }
}

async fn accept(listener: TcpListener, line: Line) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let line = line.clone();
                    connections.spawn(async move {
                        // Questions and answers are short; waiting for more would slow them down.
                        let _ = stream.set_nodelay(true);
                        if let Some(channel) = line.connect().await {
                            relay(stream, channel).await;
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot take a connection of a container");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
}

/// Passes packets on, by who sends them.
async fn receive(socket: UdpSocket, line: Line) {
    let socket = Arc::new(socket);
    let mut senders: HashMap<SocketAddr, mpsc::Sender<Vec<u8>>> = HashMap::new();
    let mut passing = JoinSet::new();
    let mut buffer = vec![0; usize::from(u16::MAX)];
    loop {
        while passing.try_join_next().is_some() {}
        let Ok((length, sender)) = socket.recv_from(&mut buffer).await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        senders.retain(|_, sender| !sender.is_closed());
        let arrived = senders.entry(sender).or_insert_with(|| {
            let (arrived, packets) = mpsc::channel(WAITING_PACKETS);
            passing.spawn(pass(socket.clone(), sender, packets, line.clone()));
            arrived
        });
        // Full means that packets are lost.
        let _ = arrived.try_send(buffer[..length].to_vec());
    }
}

/// Passes the packets of one sender on, and the answers back, until it is silent for long.
async fn pass(
    socket: Arc<UdpSocket>,
    sender: SocketAddr,
    mut packets: mpsc::Receiver<Vec<u8>>,
    line: Line,
) {
    let Some(Channel { mut incoming, outgoing }) = line.connect().await else { return };
    let mut decoder = PacketDecoder::default();
    loop {
        tokio::select! {
            arrived = packets.recv() => {
                let Some(bytes) = arrived else { return };
                if outgoing.send(Bytes::from(packet(&bytes))).await.is_err() {
                    return;
                }
            }
            piece = incoming.next() => {
                let Some(piece) = piece else { return };
                decoder.push(&piece);
                while let Some(bytes) = decoder.next_packet() {
                    // Packets may be lost, and whoever sent them finds out.
                    let _ = socket.send_to(&bytes, sender).await;
                }
            }
            () = tokio::time::sleep(SILENCE) => return,
        }
    }
}
