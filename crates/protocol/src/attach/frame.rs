//! Frames: how the contents of files travel on a stream.

/// Longest payload of one frame.
pub const MAX_FRAME_BYTES: usize = 1 << 20;

/// Kinds of frames in a [`super::READ_PATH`] answer and a [`super::WRITE_PATH`] request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// JSON of an [`super::Entry`]; a regular file's `Data` frames follow.
    Entry = 1,
    /// Bytes of the file whose entry came last.
    Data = 2,
    /// The file whose entry came last is complete.
    EndOfFile = 3,
    /// Everything was sent.
    End = 4,
    /// JSON of a [`crate::Error`]; nothing follows.
    Failed = 5,
    /// The file whose entry came last changed while it was sent: what came of it is void, and it
    /// comes again from its start. JSON of its new [`super::Entry`].
    Again = 6,
    /// The next bytes of the file whose entry came last are so many zeros that take no room: their
    /// number in eight bytes, little-endian.
    Hole = 7,
    /// A path that is to be removed. Only in writes.
    Remove = 8,
}

impl FrameKind {
    /// The kind with this byte.
    pub fn from_byte(byte: u8) -> Option<Self> {
        let known = [Self::Entry, Self::Data, Self::EndOfFile, Self::End, Self::Failed];
        known
            .into_iter()
            .chain([Self::Again, Self::Hole, Self::Remove])
            .find(|kind| *kind as u8 == byte)
    }
}

/// The bytes of one frame.
pub fn frame(kind: FrameKind, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(payload.len() + 5);
    bytes.push(kind as u8);
    bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// Takes frames out of bytes that arrive in pieces of any size.
#[derive(Debug, Default)]
pub struct FrameDecoder {
    buffer: Vec<u8>,
    start: usize,
}

/// Bytes that are no frame.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// No frame begins with this byte.
    #[error("a frame begins with the unknown byte {0}")]
    UnknownKind(u8),
    /// More than [`MAX_FRAME_BYTES`].
    #[error("a frame of {0} bytes is too long")]
    TooLong(usize),
}

impl FrameDecoder {
    /// Adds bytes that arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame; none when more bytes are needed.
    pub fn next_frame(&mut self) -> Result<Option<(FrameKind, &[u8])>, FrameError> {
        let pending = &self.buffer[self.start..];
        let [kind, a, b, c, d, rest @ ..] = pending else { return Ok(None) };
        let length = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
        let kind = FrameKind::from_byte(*kind).ok_or(FrameError::UnknownKind(*kind))?;
        if length > MAX_FRAME_BYTES {
            return Err(FrameError::TooLong(length));
        }
        if rest.len() < length {
            return Ok(None);
        }
        let from = self.start + 5;
        self.start = from + length;
        Ok(Some((kind, &self.buffer[from..self.start])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_however_the_bytes_are_cut() {
        let mut bytes = frame(FrameKind::Entry, b"{}");
        bytes.extend(frame(FrameKind::Data, b"hello"));
        bytes.extend(frame(FrameKind::End, b""));
        for step in 1..=bytes.len() {
            let mut decoder = FrameDecoder::default();
            let mut found = vec![];
            for piece in bytes.chunks(step) {
                decoder.push(piece);
                while let Some((kind, payload)) = decoder.next_frame().unwrap() {
                    found.push((kind, payload.to_vec()));
                }
            }
            let expected = [
                (FrameKind::Entry, b"{}".to_vec()),
                (FrameKind::Data, b"hello".to_vec()),
                (FrameKind::End, vec![]),
            ];
            assert_eq!(found, expected, "pieces of {step}");
        }
    }

    #[test]
    fn bytes_that_are_no_frame_are_refused() {
        let mut decoder = FrameDecoder::default();
        decoder.push(&[9, 0, 0, 0, 0]);
        assert_eq!(decoder.next_frame(), Err(FrameError::UnknownKind(9)));
        let mut decoder = FrameDecoder::default();
        decoder.push(&[2, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(decoder.next_frame(), Err(FrameError::TooLong(u32::MAX as usize)));
    }
}
