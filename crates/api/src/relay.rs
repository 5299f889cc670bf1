//! Bytes and packets between something in a container and something on the caller's machine.

use crate::host::Channel;
use bytes::Bytes;
use futures::StreamExt as _;
use protocol::attach::{PacketDecoder, packet};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UdpSocket;

/// Most bytes that are taken from a connection at once.
const PIECE: usize = 64 << 10;

/// Passes bytes both ways until both sides have ended. Each side ends by itself.
pub(crate) async fn relay(stream: impl AsyncRead + AsyncWrite + Send, channel: Channel) {
    let Channel { mut incoming, outgoing } = channel;
    let (mut reading, mut writing) = tokio::io::split(stream);
    let up = async move {
        let mut piece = Vec::with_capacity(PIECE);
        while let Ok(1..) = reading.read_buf(&mut piece).await {
            let next = Vec::with_capacity(PIECE);
            let piece = std::mem::replace(&mut piece, next);
            if outgoing.send(Bytes::from(piece)).await.is_err() {
                break;
            }
        }
    };
    let down = async move {
        while let Some(piece) = incoming.next().await {
            if writing.write_all(&piece).await.is_err() {
                return;
            }
        }
        // Whoever has closed its end needs no word about it.
        let _ = writing.shutdown().await;
    };
    futures::join!(up, down);
}

/// Passes packets both ways until the channel ends.
pub(crate) async fn relay_packets(socket: UdpSocket, channel: Channel) {
    let Channel { mut incoming, outgoing } = channel;
    let (mut decoder, mut buffer) = (PacketDecoder::default(), vec![0; usize::from(u16::MAX)]);
    loop {
        tokio::select! {
            piece = incoming.next() => {
                let Some(piece) = piece else { return };
                decoder.push(&piece);
                while let Some(bytes) = decoder.next_packet() {
                    // Packets may be lost, and whoever sent them finds out.
                    let _ = socket.send(&bytes).await;
                }
            }
            Ok(length) = socket.recv(&mut buffer) => {
                let framed = Bytes::from(packet(&buffer[..length]));
                if outgoing.send(framed).await.is_err() {
                    return;
                }
            }
        }
    }
}
