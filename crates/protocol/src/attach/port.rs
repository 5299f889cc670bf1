//! Ports that a client listens on for the engine, and packets on a stream.
//!
//! One request is one port, until another one closes it or nobody reads its answer any more. The answer is
//! [`ListenEvent`]s, each a line of JSON: first the port, then every connection by a number. A second request with
//! that number is the connection, as with a socket: its body is what is written to it and the body of the answer
//! what is read. Who only stops reading cannot know when the port is closed; who asks for it is answered then.
//!
//! What packets have instead of a connection is everything that comes from one sender. On a stream, each packet
//! is its length in two bytes, little-endian, and then itself.

use serde::{Deserialize, Serialize};

/// A port that a client is to listen on, or to close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListenRequest {
    /// Its number; zero lets the client's machine choose one to listen on.
    pub port: u16,
    /// Whether it is for packets.
    pub udp: bool,
}

/// What happens on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ListenEvent {
    /// It is open, under this number.
    Open(u16),
    /// Somebody connects, and is known by this number.
    Connection(u64),
}

impl ListenEvent {
    /// The line of it.
    pub fn to_line(self) -> Vec<u8> {
        let mut line = serde_json::to_vec(&self).expect("plain data has a JSON form");
        line.push(b'\n');
        line
    }
}

/// Takes lines out of bytes that arrive in pieces of any size.
#[derive(Debug, Default)]
pub struct ListenDecoder(Vec<u8>);

impl ListenDecoder {
    /// Adds bytes that arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// What happened next; none when more bytes are needed.
    pub fn next_event(&mut self) -> Result<Option<ListenEvent>, serde_json::Error> {
        let Some(end) = self.0.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
        let line: Vec<u8> = self.0.drain(..=end).collect();
        serde_json::from_slice(&line).map(Some)
    }
}

/// The bytes of one packet on a stream. What is longer than a packet can be is cut.
pub fn packet(bytes: &[u8]) -> Vec<u8> {
    let length = bytes.len().min(usize::from(u16::MAX));
    let mut framed = Vec::with_capacity(length + 2);
    framed.extend_from_slice(&(length as u16).to_le_bytes());
    framed.extend_from_slice(&bytes[..length]);
    framed
}

/// Takes packets out of bytes that arrive in pieces of any size.
#[derive(Debug, Default)]
pub struct PacketDecoder(Vec<u8>);

impl PacketDecoder {
    /// Adds bytes that arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// The next whole packet; none when more bytes are needed.
    pub fn next_packet(&mut self) -> Option<Vec<u8>> {
        let [a, b, rest @ ..] = &self.0[..] else { return None };
        let length = usize::from(u16::from_le_bytes([*a, *b]));
        let packet = rest.get(..length)?.to_vec();
        self.0.drain(..length + 2);
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_and_packets_are_found_however_the_bytes_are_cut() {
        let events = [ListenEvent::Open(8080), ListenEvent::Connection(7)];
        let lines: Vec<u8> = events.into_iter().flat_map(ListenEvent::to_line).collect();
        let packets = [b"one".to_vec(), vec![], vec![7; 300]];
        let framed: Vec<u8> = packets.iter().flat_map(|bytes| packet(bytes)).collect();
        for step in 1..20 {
            let mut decoder = ListenDecoder::default();
            let mut found = vec![];
            for piece in lines.chunks(step) {
                decoder.push(piece);
                while let Some(event) = decoder.next_event().unwrap() {
                    found.push(event);
                }
            }
            assert_eq!(found, events, "pieces of {step}");
            let (mut decoder, mut found) = (PacketDecoder::default(), vec![]);
            for piece in framed.chunks(step) {
                decoder.push(piece);
                while let Some(packet) = decoder.next_packet() {
                    found.push(packet);
                }
            }
            assert_eq!(found, packets, "pieces of {step}");
        }
        let mut decoder = ListenDecoder::default();
        decoder.push(b"nonsense\n");
        assert!(decoder.next_event().is_err());
    }
}
