//! [`Outcome`]: what a command left behind besides files, and the record an exec is remembered by.

use protocol::Error;
use serde::{Deserialize, Serialize};
use std::io::Read;
use store::{BlobId, BlobPin, BlobWriter, Needs, Snapshot, Store};

/// Longest stream that is kept; past it the exec succeeds and reading the stream is an error.
pub(super) const MAX_STREAM_BYTES: u64 = 128 << 20;
/// Longest stream that is kept inside the record; longer ones become blobs.
const MAX_INLINE_BYTES: usize = 16 << 10;
/// How much of a stream an error carries.
pub(super) const MAX_ERROR_BYTES: usize = 102_400;

/// Streams and exit code of a command.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Outcome {
    pub(super) exit_code: i32,
    pub(super) stdout: Stream,
    pub(super) stderr: Stream,
    pub(super) combined: Combined,
    /// Keeps long streams on disk.
    #[serde(skip)]
    pub(super) pins: Vec<BlobPin>,
}

/// What an exec is remembered by.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) rootfs: Snapshot,
    /// Trees of the mounted directories and files, in the order of the mounts that have one.
    pub(super) mounts: Vec<Snapshot>,
    pub(super) outcome: Outcome,
}

impl Record {
    /// The record with all it names kept on disk; none if something is gone.
    pub(super) fn pinned(mut self, store: &Store) -> Option<Self> {
        self.rootfs = store.pin(&self.rootfs)?;
        self.mounts = self.mounts.iter().map(|tree| store.pin(tree)).collect::<Option<_>>()?;
        self.outcome = self.outcome.pinned(store)?;
        Some(self)
    }

    /// What the record is worth nothing without.
    pub(super) fn needs(&self) -> Needs {
        let trees = self.mounts.iter().fold(Needs::new().snapshot(&self.rootfs), Needs::snapshot);
        let streams = [&self.outcome.stdout, &self.outcome.stderr];
        streams.into_iter().filter_map(Stream::blob).fold(trees, Needs::blob)
    }
}

impl Outcome {
    /// The same with long streams kept on disk; none if one is gone.
    pub(super) fn pinned(mut self, store: &Store) -> Option<Self> {
        let streams = [&self.stdout, &self.stderr];
        let blobs = streams.into_iter().filter_map(Stream::blob).map(|id| store.pin_blob(id));
        self.pins = blobs.collect::<Option<_>>()?;
        Some(self)
    }

    /// Whether a stream was found missing or damaged.
    pub(super) fn is_lost(&self, store: &Store) -> bool {
        let streams = [&self.stdout, &self.stderr];
        streams.into_iter().filter_map(Stream::blob).any(|id| store.is_lost_blob(id))
    }
}

/// One captured stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Stream {
    /// Short: here it is.
    Inline(Vec<u8>),
    /// Long: a blob.
    Blob(BlobId),
    /// Longer than [`MAX_STREAM_BYTES`]: this many bytes, not kept.
    TooLong(u64),
}

/// Both streams in the order their pieces came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Combined {
    Inline(Vec<u8>),
    /// Too long to keep twice: read as standard output followed by standard error.
    Parts,
}

/// Collects one stream while a command runs: in memory while short, then in a blob.
pub(super) struct Capture {
    store: Store,
    head: Vec<u8>,
    blob: Option<BlobWriter>,
    tail: Tail,
    total: u64,
    failed: Option<Error>,
    /// Whether only the end of it matters.
    ending: bool,
}

/// The last bytes of a stream, for errors.
#[derive(Default)]
struct Tail(Vec<u8>);

impl Stream {
    /// The blob that it is in.
    pub(super) fn blob(&self) -> Option<&BlobId> {
        match self {
            Self::Blob(id) => Some(id),
            _ => None,
        }
    }

    /// The text of the stream; `name` and `redirect` are for the error.
    pub(super) fn read(&self, store: &Store, name: &str, redirect: &str) -> Result<String, Error> {
        let bytes = match self {
            Self::Inline(bytes) => bytes.clone(),
            Self::Blob(id) => {
                let mut bytes = Vec::new();
                let read = store.read_blob(id)?.read_to_end(&mut bytes);
                read.map_err(store::Error::from_read(name))?;
                bytes
            }
            Self::TooLong(size) => {
                return Err(Error::user(format!(
                    "{name} is {size} bytes long, more than the {MAX_STREAM_BYTES} that are kept: \
                     write it to a file with `{redirect}` and read that"
                )));
            }
        };
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }
}

impl Capture {
    pub(super) fn new(store: &Store) -> Self {
        Self {
            store: store.clone(),
            head: vec![],
            blob: None,
            tail: Tail::default(),
            total: 0,
            failed: None,
            ending: false,
        }
    }

    /// One of which only the end is kept.
    pub(super) fn ending(store: &Store) -> Self {
        Self { ending: true, ..Self::new(store) }
    }

    /// Takes the next piece. A full disk does not stop the command: it fails the exec at its end.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        self.tail.push(bytes);
        if self.ending {
            return;
        }
        if self.total > MAX_STREAM_BYTES {
            self.head = vec![];
            self.blob = None;
        } else if self.failed.is_none()
            && let Err(error) = self.keep(bytes)
        {
            self.failed = Some(error);
        }
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.blob.is_none() && self.head.len() + bytes.len() <= MAX_INLINE_BYTES {
            self.head.extend_from_slice(bytes);
            return Ok(());
        }
        if self.blob.is_none() {
            let mut blob = self.store.blob_writer()?;
            write(&mut blob, &self.head)?;
            self.head = vec![];
            self.blob = Some(blob);
        }
        match &mut self.blob {
            Some(blob) => write(blob, bytes),
            None => Ok(()),
        }
    }

    /// The captured stream.
    pub(super) fn finish(self) -> Result<Stream, Error> {
        match (self.failed, self.blob) {
            (Some(error), _) => Err(error),
            _ if self.total > MAX_STREAM_BYTES => Ok(Stream::TooLong(self.total)),
            (None, Some(blob)) => Ok(Stream::Blob(blob.finish()?)),
            (None, None) => Ok(Stream::Inline(self.head)),
        }
    }

    /// The end of the stream as an error shows it: trimmed, and cut to a fixed length with a mark
    /// that says how much is missing.
    pub(super) fn excerpt(&self) -> String {
        self.cut(String::from_utf8_lossy(&self.tail.0).trim())
    }

    /// The same with the white space around it.
    pub(super) fn untrimmed(&self) -> String {
        self.cut(&String::from_utf8_lossy(&self.tail.0))
    }

    fn cut(&self, text: &str) -> String {
        let hidden = self.total.saturating_sub(MAX_ERROR_BYTES as u64);
        if hidden == 0 {
            return text.to_owned();
        }
        let mark = format!("[omitting {hidden} bytes]...");
        let mut start = text.len().saturating_sub(MAX_ERROR_BYTES - mark.len());
        while !text.is_char_boundary(start) {
            start += 1;
        }
        format!("{mark}{}", &text[start..])
    }
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(MAX_ERROR_BYTES)..];
        self.0.extend_from_slice(bytes);
        // Cut only now and then, so that a long stream of short pieces is not moved every time.
        if self.0.len() > 2 * MAX_ERROR_BYTES {
            self.0.drain(..self.0.len() - MAX_ERROR_BYTES);
        }
    }
}

fn write(blob: &mut BlobWriter, bytes: &[u8]) -> Result<(), Error> {
    use std::io::Write;
    blob.write_all(bytes).map_err(|error| {
        let told = Error::environment(format!("cannot keep the output: {error}"));
        match error.kind() {
            std::io::ErrorKind::StorageFull => told.with_hint(store::Full::HINT),
            _ => told,
        }
    })
}
