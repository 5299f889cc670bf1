//! Packets as streams: what comes from one sender is one stream, each packet with its length before it.

use super::Door;
use crate::sockets::{Reading, Writing};
use protocol::attach::{PacketDecoder, packet};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Longest packet.
const LONGEST: usize = 65_535;
/// Bytes of packets that may wait on a stream.
const ROOM: usize = 256 << 10;
/// Packets of one sender that may wait. What is more is lost, as packets may be.
const WAITING: usize = 64;
/// A sender that is silent for so long is forgotten.
const SILENCE: Duration = Duration::from_secs(60);

/// A stream of the packets that a connected socket sends and gets.
pub(crate) fn over_packets(socket: UdpSocket) -> (Reading, Writing) {
    let socket = Arc::new(socket);
    let (arrived, packets) = mpsc::channel(WAITING);
    let receiving = socket.clone();
    let (ours, stream) = stream();
    tokio::spawn(pass(ours, socket, None, packets));
    tokio::spawn(async move {
        let mut buffer = vec![0; LONGEST];
        while !arrived.is_closed() {
            let received = tokio::select! {
                received = receiving.recv(&mut buffer) => received,
                () = arrived.closed() => return,
            };
            match received {
                // Full means that packets are lost.
                Ok(length) => drop(arrived.try_send(buffer[..length].to_vec())),
                // Nobody listens there now; somebody may later.
                Err(_) => tokio::time::sleep(super::ACCEPT_PAUSE).await,
            }
        }
    });
    stream
}

/// Tells the engine of everybody who sends packets to a socket.
pub(super) async fn receive(socket: &Arc<UdpSocket>, door: &mut Door, passing: &mut JoinSet<()>) {
    let mut senders: HashMap<SocketAddr, mpsc::Sender<Vec<u8>>> = HashMap::new();
    let mut buffer = vec![0; LONGEST];
    loop {
        let received = tokio::select! {
            received = socket.recv_from(&mut buffer) => received,
            () = door.events.closed() => return,
        };
        let Ok((length, sender)) = received else {
            tokio::time::sleep(super::ACCEPT_PAUSE).await;
            continue;
        };
        senders.retain(|_, sender| !sender.is_closed());
        while passing.try_join_next().is_some() {}
        let arrived = match senders.entry(sender) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let (arrived, packets) = mpsc::channel(WAITING);
                let (ours, (reading, writing)) = stream();
                passing.spawn(pass(ours, socket.clone(), Some(sender), packets));
                if !door.tell(reading, writing).await {
                    return;
                }
                new.insert(arrived)
            }
        };
        // Full means that packets are lost.
        let _ = arrived.try_send(buffer[..length].to_vec());
    }
}

/// A stream, and the end of it that packets go in and come out at.
fn stream() -> (DuplexStream, (Reading, Writing)) {
    let (ours, theirs) = tokio::io::duplex(ROOM);
    let (reading, writing) = tokio::io::split(theirs);
    (ours, (Box::new(reading), Box::new(writing)))
}

/// Passes packets from and to one sender, until it is silent for long or the stream ends.
async fn pass(
    mut ours: DuplexStream,
    socket: Arc<UdpSocket>,
    sender: Option<SocketAddr>,
    mut packets: mpsc::Receiver<Vec<u8>>,
) {
    let (mut decoder, mut piece) = (PacketDecoder::default(), vec![0; LONGEST]);
    loop {
        tokio::select! {
            arrived = packets.recv() => match arrived {
                Some(bytes) if ours.write_all(&packet(&bytes)).await.is_ok() => {}
                _ => return,
            },
            read = ours.read(&mut piece) => match read {
                Ok(length @ 1..) => {
                    decoder.push(&piece[..length]);
                    while let Some(bytes) = decoder.next_packet() {
                        // Packets may be lost, and whoever sent them finds out.
                        let _ = match sender {
                            Some(address) => socket.send_to(&bytes, address).await,
                            None => socket.send(&bytes).await,
                        };
                    }
                }
                Ok(_) | Err(_) => return,
            },
            () = tokio::time::sleep(SILENCE) => return,
        }
    }
}
