//! What the engine asks of a client, on the stream that the client serves.
//!
//! Every request is an HTTP/2 `POST` with a JSON head. File contents travel as frames: one byte of
//! [`FrameKind`], four bytes of little-endian length, then that many bytes. Secrets, sockets,
//! terminals, prompts and git credentials will be further paths beside these.

use serde::{Deserialize, Serialize};

/// `POST` a [`ReadRequest`]: the answer is a stream of frames.
pub const READ_PATH: &str = "/files/read";
/// `POST` frames of one file after a [`WriteRequest`] in a header: the answer is a [`WriteReply`].
pub const WRITE_PATH: &str = "/files/write";
/// `POST` a [`FindUpRequest`]: the answer is a [`FindUpReply`].
pub const FIND_UP_PATH: &str = "/files/find-up";
/// Header that carries the JSON of a [`WriteRequest`], percent-encoding nothing: JSON is ASCII here.
pub const WRITE_HEADER: &str = "x-ci-tool-write";

/// Longest payload of one frame.
pub const MAX_FRAME_BYTES: usize = 1 << 20;

/// Asks for a tree or one file of the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadRequest {
    /// Absolute, or relative to the client's working directory, or beginning with `~`.
    pub path: String,
    /// Whether a directory or a file is wanted; the other is an error.
    pub directory: bool,
    /// Patterns of what to take; empty takes all.
    pub include: Vec<String>,
    /// Patterns of what to leave out; these win.
    pub exclude: Vec<String>,
    /// Whether `.gitignore` files apply.
    pub gitignore: bool,
}

/// Kinds of frames in a [`READ_PATH`] answer and a [`WRITE_PATH`] request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// JSON of an [`Entry`]; a regular file's `Data` frames follow.
    Entry = 1,
    /// Bytes of the file whose entry came last.
    Data = 2,
    /// The file whose entry came last is complete.
    EndOfFile = 3,
    /// Everything was sent.
    End = 4,
    /// JSON of a [`crate::Error`]; nothing follows.
    Failed = 5,
}

impl FrameKind {
    /// The kind with this byte.
    pub fn from_byte(byte: u8) -> Option<Self> {
        [Self::Entry, Self::Data, Self::EndOfFile, Self::End, Self::Failed]
            .into_iter()
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

/// One entry of a tree, parents before children, names of one directory in byte order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Path below the root of the request, `/` between parts; empty for the root itself.
    pub path: String,
    /// What it is.
    pub kind: EntryKind,
    /// Permission bits, set-id and sticky bits included.
    pub mode: u32,
    /// Modification time in nanoseconds since the Unix epoch.
    pub modified: i64,
    /// Size of a regular file when it was listed.
    pub size: u64,
    /// Target of a symbolic link; path of the first name of a hard link.
    pub target: String,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EntryKind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link.
    Symlink,
    /// Another name of a file sent before.
    HardLink,
}

/// Asks to write one file to the host, atomically.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WriteRequest {
    /// Absolute, or relative to the client's working directory, or beginning with `~`.
    pub path: String,
    /// Name to use when `path` is an existing directory; empty makes that an error.
    pub name_in_directory: String,
    /// Permission bits.
    pub mode: u32,
}

impl WriteRequest {
    /// The value of [`WRITE_HEADER`]: JSON with everything beyond ASCII escaped.
    pub fn to_header(&self) -> String {
        let json = serde_json::to_string(self).expect("plain data has a JSON form");
        let mut header = String::with_capacity(json.len());
        for character in json.chars() {
            if character.is_ascii() {
                header.push(character);
                continue;
            }
            for unit in character.encode_utf16(&mut [0; 2]) {
                header.push_str(&format!("\\u{unit:04x}"));
            }
        }
        header
    }
}

/// Where a file was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WriteReply {
    /// Absolute path.
    pub path: String,
}

/// Asks for the nearest entry of a name, upwards from the working directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FindUpRequest {
    /// File or directory name.
    pub name: String,
}

/// The nearest entry, relative to the working directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FindUpReply {
    /// None when there is none.
    pub path: Option<String>,
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

    #[test]
    fn a_write_header_is_ascii_and_reads_back() {
        let request = WriteRequest {
            path: "/tmp/\u{e4}\u{1f600}\"\n".into(),
            name_in_directory: String::new(),
            mode: 0o644,
        };
        let header = request.to_header();
        assert!(header.is_ascii(), "{header}");
        assert_eq!(serde_json::from_str::<WriteRequest>(&header).unwrap(), request);
    }
}
