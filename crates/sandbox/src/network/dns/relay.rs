//! Passes questions on to the host's resolvers, one after the other until one answers.

use super::question::{Outcome, Question, is_failure};
use super::resolvers::Resolvers;
use super::{read_packet, write_packet};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

/// Longest packet that is taken.
pub(super) const LONGEST: usize = 65_535;
/// How long one resolver may take before the next is asked.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often each is asked.
const ROUNDS: usize = 2;

/// Asks the host's resolvers.
pub(super) struct Relay {
    resolvers: Resolvers,
}

impl Relay {
    pub(super) fn new(resolvers: Resolvers) -> Relay {
        Relay { resolvers }
    }

    /// The answer to a question that came in a packet.
    pub(super) async fn ask(&self, packet: &[u8], question: &Question) -> Vec<u8> {
        let mut failure = None;
        for server in self.in_turn(ROUNDS) {
            match timeout(PATIENCE, ask_by_packet(server, packet, question)).await {
                Ok(Ok(answer)) if is_failure(&answer) => failure = Some(answer),
                Ok(Ok(answer)) => return answer,
                Ok(Err(_)) | Err(_) => {}
            }
        }
        failure.unwrap_or_else(|| question.answer(packet, &Outcome::Failed))
    }

    /// The answer to a question that came over a connection, however long it is.
    pub(super) async fn ask_long(&self, packet: &[u8], question: &Question) -> Vec<u8> {
        for server in self.in_turn(1) {
            let asked = timeout(PATIENCE * 2, ask_by_connection(server, packet)).await;
            if let Ok(Ok(answer)) = asked
                && question.is_answered_by(packet, &answer)
            {
                return answer;
            }
        }
        question.answer(packet, &Outcome::Failed)
    }

    fn in_turn(&self, rounds: usize) -> impl Iterator<Item = SocketAddr> + use<> {
        let servers = self.resolvers.servers();
        (0..rounds).flat_map(move |_| servers.clone())
    }
}

/// Each question has a socket, and so a port, of its own: an answer that was not asked for is not
/// easily slipped in.
async fn ask_by_packet(
    server: SocketAddr,
    packet: &[u8],
    question: &Question,
) -> io::Result<Vec<u8>> {
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(server).await?;
    socket.send(packet).await?;
    let mut buffer = vec![0; LONGEST];
    loop {
        let length = socket.recv(&mut buffer).await?;
        if question.is_answered_by(packet, &buffer[..length]) {
            buffer.truncate(length);
            buffer.shrink_to_fit();
            return Ok(buffer);
        }
    }
}

async fn ask_by_connection(server: SocketAddr, packet: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(server).await?;
    write_packet(&mut stream, packet).await?;
    read_packet(&mut stream).await
}
