//! Answers the names that containers ask for, at the gateway's address.
//!
//! Names of ours come from a table ([`Names`]) that knows who may learn them, everything else from the resolvers of the host, asked from the
//! host's own network: so a resolver on the host's loopback serves containers too. There is no IPv6
//! in containers, so every question for an address of IPv6 is answered with none.
//!
//! Questions come from whatever runs in containers: all that they make us hold is bounded.

mod names;
mod question;
mod relay;
mod resolvers;

pub(crate) use names::{Asking, DOMAIN, Name, Names};
pub(crate) use resolvers::{Resolvers, SETTINGS as RESOLVER_SETTINGS, parse as parse_resolvers};

use names::Found;
use question::{Outcome, Question};
use relay::{LONGEST, Relay};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Questions that are passed on at a time. What is more is not answered, and asked again.
const MOST_QUESTIONS: usize = 512;
/// Connections with questions at a time. What is more waits.
const MOST_CONNECTIONS: usize = 64;
/// How long a connection may be silent.
const SILENCE: Duration = Duration::from_secs(10);
/// How long nothing is taken when there are no descriptors left.
const PAUSE: Duration = Duration::from_millis(50);
/// The kind of question for an address of IPv4.
const ADDRESS: u16 = 1;
/// The kind of question for an address of IPv6.
const ADDRESS6: u16 = 28;

/// What answers; it stops when this is dropped.
#[derive(Debug)]
pub(crate) struct Responder(#[expect(dead_code, reason = "tasks end with their set")] JoinSet<()>);

struct Answering {
    names: Names,
    relay: Relay,
    waiting: Arc<Semaphore>,
}

impl Responder {
    /// Begins to answer. Must be called inside a tokio runtime.
    pub(crate) fn start(
        short: std::net::UdpSocket,
        long: std::net::TcpListener,
        names: Names,
        resolvers: Resolvers,
    ) -> io::Result<Responder> {
        let short = Arc::new(UdpSocket::from_std(short)?);
        let long = TcpListener::from_std(long)?;
        let waiting = Arc::new(Semaphore::new(MOST_QUESTIONS));
        let answering = Arc::new(Answering { names, relay: Relay::new(resolvers), waiting });
        let mut tasks = JoinSet::new();
        tasks.spawn(answer_packets(short, answering.clone()));
        tasks.spawn(answer_connections(long, answering));
        Ok(Responder(tasks))
    }
}

impl Answering {
    /// The answer to a question that needs nobody else, or the question to be passed on.
    fn at_once(&self, packet: &[u8], asker: SocketAddr) -> Result<Option<Vec<u8>>, Question> {
        let question = match question::parse(packet) {
            Ok(question) => question,
            Err(outcome) => return Ok(question::refusal(packet, outcome)),
        };
        let asker = match asker.ip() {
            IpAddr::V4(address) => address,
            IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
        };
        let outcome = match (question.kind, self.names.find(asker, &question.name)) {
            (ADDRESS, Found::Ours(addresses)) => Outcome::Addresses(addresses),
            (_, Found::Nobody) => Outcome::Unknown,
            (_, Found::Ours(_)) | (ADDRESS6, Found::NotOurs) => Outcome::Addresses(Vec::new()),
            (_, Found::NotOurs) => return Err(question),
        };
        Ok(Some(question.answer(packet, &outcome)))
    }
}

async fn answer_packets(socket: Arc<UdpSocket>, answering: Arc<Answering>) {
    let mut buffer = vec![0; LONGEST];
    let mut asked = JoinSet::new();
    loop {
        while asked.try_join_next().is_some() {}
        let Ok((length, asker)) = socket.recv_from(&mut buffer).await else {
            // What an earlier answer ran into is told here; a container that is gone is no trouble.
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let packet = &buffer[..length];
        match answering.at_once(packet, asker) {
            Ok(Some(answer)) => reply(&socket, &answer, asker).await,
            Ok(None) => {}
            Err(question) => {
                let Ok(permit) = answering.waiting.clone().try_acquire_owned() else { continue };
                let (packet, socket, answering) =
                    (packet.to_vec(), socket.clone(), answering.clone());
                asked.spawn(async move {
                    let answer = answering.relay.ask(&packet, &question).await;
                    reply(&socket, &answer, asker).await;
                    drop(permit);
                });
            }
        }
    }
}

async fn reply(socket: &UdpSocket, answer: &[u8], asker: SocketAddr) {
    // Who has asked may be gone by now.
    let _ = socket.send_to(answer, asker).await;
}

async fn answer_connections(listener: TcpListener, answering: Arc<Answering>) {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut served = JoinSet::new();
    loop {
        while served.try_join_next().is_some() {}
        let Ok(permit) = room.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, asker)) => {
                let answering = answering.clone();
                served.spawn(async move {
                    // A connection that breaks off has nobody at its other end to tell.
                    let _ = answer_connection(stream, asker, &answering).await;
                    drop(permit);
                });
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

async fn answer_connection(
    mut stream: TcpStream,
    asker: SocketAddr,
    answering: &Answering,
) -> io::Result<()> {
    loop {
        let packet = tokio::time::timeout(SILENCE, read_packet(&mut stream)).await??;
        let answer = match answering.at_once(&packet, asker) {
            Ok(answer) => answer,
            Err(question) => Some(answering.relay.ask_long(&packet, &question).await),
        };
        let Some(answer) = answer else { return Ok(()) };
        tokio::time::timeout(SILENCE, write_packet(&mut stream, &answer)).await??;
    }
}

/// Reads one message of a connection: its length, then itself.
async fn read_packet(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let length = stream.read_u16().await?;
    let mut packet = vec![0; usize::from(length)];
    stream.read_exact(&mut packet).await?;
    Ok(packet)
}

async fn write_packet(stream: &mut TcpStream, packet: &[u8]) -> io::Result<()> {
    let length = u16::try_from(packet.len()).map_err(io::Error::other)?;
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend_from_slice(packet);
    stream.write_all(&bytes).await
}

#[cfg(test)]
mod tests;
