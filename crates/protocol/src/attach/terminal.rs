//! The terminal that a client's user sits at, lent to a command.
//!
//! One request is one loan. Its body is what is to be shown, byte by byte; the body of the answer is what
//! the user does, as frames, the size of the terminal first. The loan ends with the request's body: the
//! client then puts the terminal back as it was and ends its answer. An answer with an error means that
//! there is no terminal to lend.
//!
//! ```text
//! 1  length (two bytes)          so many bytes of keys
//! 2  columns (two bytes)  rows (two bytes)
//! ```
//!
//! Numbers are little-endian.

/// Longest run of keys in one frame.
const MAX_KEYS: usize = u16::MAX as usize;
const KEYS: u8 = 1;
const SIZE: u8 = 2;

/// What a user does at a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TerminalInput {
    /// Presses keys.
    Keys(Vec<u8>),
    /// Makes it so large.
    Size {
        /// Columns.
        columns: u16,
        /// Rows.
        rows: u16,
    },
}

impl TerminalInput {
    /// The bytes of it on the wire.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Keys(keys) => {
                let mut bytes = Vec::with_capacity(keys.len() + 3);
                for run in keys.chunks(MAX_KEYS) {
                    bytes.push(KEYS);
                    bytes.extend_from_slice(&(run.len() as u16).to_le_bytes());
                    bytes.extend_from_slice(run);
                }
                bytes
            }
            Self::Size { columns, rows } => {
                let ([a, b], [c, d]) = (columns.to_le_bytes(), rows.to_le_bytes());
                vec![SIZE, a, b, c, d]
            }
        }
    }
}

/// Takes [`TerminalInput`] out of bytes that arrive in pieces of any size.
#[derive(Debug, Default)]
pub struct TerminalDecoder {
    buffer: Vec<u8>,
    start: usize,
}

/// Bytes that no terminal sends.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("what a user does at a terminal begins with the unknown byte {0}")]
pub struct UnknownInput(u8);

impl TerminalDecoder {
    /// Adds bytes that arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// What the user did next; none when more bytes are needed.
    pub fn next_input(&mut self) -> Result<Option<TerminalInput>, UnknownInput> {
        let (input, taken) = match &self.buffer[self.start..] {
            [KEYS, a, b, rest @ ..] => {
                let length = usize::from(u16::from_le_bytes([*a, *b]));
                let Some(keys) = rest.get(..length) else { return Ok(None) };
                (TerminalInput::Keys(keys.to_vec()), 3 + length)
            }
            [SIZE, a, b, c, d, ..] => {
                let (columns, rows) = (u16::from_le_bytes([*a, *b]), u16::from_le_bytes([*c, *d]));
                (TerminalInput::Size { columns, rows }, 5)
            }
            [] | [KEYS | SIZE, ..] => return Ok(None),
            [unknown, ..] => return Err(UnknownInput(*unknown)),
        };
        self.start += taken;
        Ok(Some(input))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_user_does_is_found_however_the_bytes_are_cut() {
        let inputs = [
            TerminalInput::Size { columns: 300, rows: 2 },
            TerminalInput::Keys(b"ls\r\x03".to_vec()),
            TerminalInput::Keys(vec![]),
            TerminalInput::Size { columns: 0, rows: u16::MAX },
        ];
        // Nothing typed is nothing sent.
        let expected = [&inputs[0], &inputs[1], &inputs[3]].map(Clone::clone);
        let bytes: Vec<u8> = inputs.iter().flat_map(TerminalInput::encode).collect();
        for step in 1..=bytes.len() {
            let mut decoder = TerminalDecoder::default();
            let mut found = vec![];
            for piece in bytes.chunks(step) {
                decoder.push(piece);
                while let Some(input) = decoder.next_input().unwrap() {
                    found.push(input);
                }
            }
            assert_eq!(found, expected, "pieces of {step}");
        }
    }

    #[test]
    fn long_keys_are_several_frames_and_other_bytes_are_refused() {
        let mut decoder = TerminalDecoder::default();
        decoder.push(&TerminalInput::Keys(vec![b'x'; MAX_KEYS + 1]).encode());
        let mut lengths = vec![];
        while let Some(TerminalInput::Keys(keys)) = decoder.next_input().unwrap() {
            lengths.push(keys.len());
        }
        assert_eq!(lengths, [MAX_KEYS, 1]);
        decoder.push(&[9]);
        assert_eq!(decoder.next_input(), Err(UnknownInput(9)));
    }
}
