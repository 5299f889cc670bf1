//! Gets a file from a web server into the store, or finds that it has it already.

use super::way::Way;
use crate::services::Services;
use bytes::Bytes;
use fetch::{Fetcher, Piece, Request, Validators};
use graph::{Context, SpanOutcome};
use protocol::{Digest, Error, ErrorKind, SpanKind, Unit};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use store::{Meta, Needs, Remembered, Snapshot, Store, Timestamp};
use tokio::sync::{OnceCell, mpsc};

/// Name of the file in its tree.
pub(super) const CONTENTS: &str = "contents";
/// Its permission bits.
pub(super) const MODE: u32 = 0o600;
/// Raised when what is remembered of a file changes.
const FORMAT: u64 = 1;
/// Pieces of a file that may wait to be written.
const PIECES_IN_FLIGHT: usize = 64;

/// How web servers are reached.
pub struct Web(Fetcher);

impl Web {
    /// Does nothing yet.
    pub fn new(fetcher: Fetcher) -> Self {
        Self(fetcher)
    }
}

/// What a session has asked web servers for. Every session has one.
#[derive(Default)]
pub struct Downloads(Mutex<HashMap<Digest, Arc<OnceCell<Vec<u8>>>>>);

/// What is asked for.
#[derive(Clone)]
pub(super) struct Wanted {
    pub(super) url: String,
    pub(super) authorization: Option<String>,
    /// Sha256 of the file.
    pub(super) checksum: Option<[u8; 32]>,
    /// The service that serves it.
    pub(super) way: Option<Arc<Way>>,
}

/// What is remembered of a file.
#[derive(Clone, Serialize, Deserialize)]
struct Record {
    etag: Option<String>,
    last_modified: Option<String>,
    sha256: [u8; 32],
    identity: [u8; 32],
    snapshot: Snapshot,
}

impl Record {
    fn decode(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }

    fn encode(&self) -> Result<Vec<u8>, Error> {
        let failed = |error| Error::internal(format!("a download cannot be recorded: {error}"));
        postcard::to_stdvec(self).map_err(failed)
    }

    /// The record with its file kept on disk.
    fn pinned(self, store: &Store) -> Option<Self> {
        Some(Self { snapshot: store.pin(&self.snapshot)?, ..self })
    }

    fn validators(&self) -> Validators {
        Validators { etag: self.etag.clone(), last_modified: self.last_modified.clone() }
    }
}

/// The file: its identity and the tree that it is in.
pub(super) async fn get(wanted: Wanted, cx: &Context) -> Result<(Digest, Snapshot), Error> {
    let services = cx.get::<Services>()?;
    let key = key(&wanted, cx);
    let asked = cx.get::<Downloads>()?;
    let record = loop {
        let cell = {
            let mut asked = asked.0.lock().unwrap_or_else(PoisonError::into_inner);
            asked.entry(key).or_default().clone()
        };
        let bytes = cell.get_or_try_init(|| ask(&wanted, key, cx)).await?;
        match Record::decode(bytes).and_then(|record| record.pinned(&services.store)) {
            Some(record) => break record,
            // It was found damaged, or had to go: the session asks again.
            None => forget(asked, key, &cell),
        }
    };
    if let Some(expected) = wanted.checksum
        && expected != record.sha256
    {
        let (found, expected) = (hex::encode(record.sha256), hex::encode(expected));
        let message = format!(
            "http checksum mismatch: `{}` is sha256:{found}, expected sha256:{expected}",
            wanted.url
        );
        return Err(Error::user(message));
    }
    Ok((Digest::from_bytes(record.identity), record.snapshot))
}

fn forget(asked: &Downloads, key: Digest, cell: &Arc<OnceCell<Vec<u8>>>) {
    let mut asked = asked.0.lock().unwrap_or_else(PoisonError::into_inner);
    if asked.get(&key).is_some_and(|known| Arc::ptr_eq(known, cell)) {
        asked.remove(&key);
    }
}

/// What a file is remembered under. Who shows other credentials may be given another file.
fn key(wanted: &Wanted, cx: &Context) -> Digest {
    let mut key = Digest::builder("http");
    key.number(FORMAT).text(&wanted.url);
    if let Some(way) = &wanted.way {
        key.text("service").digest(way.service());
    }
    if let Some(authorization) = &wanted.authorization {
        key.digest(&cx.sealed(authorization.as_bytes()));
    }
    key.finish()
}

/// Asks the server, unless what is known is what is wanted.
async fn ask(wanted: &Wanted, key: Digest, cx: &Context) -> Result<Vec<u8>, Error> {
    let services = cx.get::<Services>()?;
    let known = services.store.action(&key).and_then(|bytes| Record::decode(&bytes));
    let known = known.and_then(|record| record.pinned(&services.store));
    if let (Some(known), Some(checksum)) = (&known, wanted.checksum)
        && known.sha256 == checksum
    {
        cx.span().mark_cached();
        return known.encode();
    }
    let span = cx.span().child(format!("download {}", wanted.url), SpanKind::Work);
    let request = Request {
        url: wanted.url.clone(),
        authorization: wanted.authorization.clone(),
        known: known.as_ref().map(Record::validators).unwrap_or_default(),
        elsewhere: wanted.way.as_ref().map(|way| way.elsewhere()),
    };
    let progress = span.clone();
    let downloaded = async {
        let Some(stream) = services.web.0.stream(request).await.map_err(of_server)? else {
            return Ok(None);
        };
        receive(stream, services, move |(done, total)| progress.progress(done, total, Unit::Bytes))
            .await
            .map(Some)
    };
    let record = downloaded
        .await
        .inspect_err(|error: &Error| span.end(SpanOutcome::Failed(error.message.clone())))?;
    let Some(record) = record else {
        span.mark_cached();
        span.done();
        let known = known.ok_or_else(|| {
            let url = &wanted.url;
            Error::environment(format!("`{url}`: the server says that nobody has a newer version"))
        })?;
        return known.encode();
    };
    span.done();
    let value = record.encode()?;
    let needs = Needs::new().snapshot(&record.snapshot).encode();
    let label = format!("download of {}", wanted.url);
    let remembered = Remembered { value: value.clone(), kind: "http", label, needs };
    services.store.put_action(key, remembered);
    Ok(value)
}

/// What goes to the thread that writes.
enum Part {
    Data(Bytes),
    Restart,
    End(Option<SystemTime>),
}

/// Writes a download into the store while it arrives.
async fn receive(
    mut stream: fetch::Stream,
    services: &Services,
    progress: impl Fn((u64, Option<u64>)),
) -> Result<Record, Error> {
    let (sender, parts) = mpsc::channel(PIECES_IN_FLIGHT);
    let store = services.store.clone();
    let writing = services.blocking(move || write(&store, parts));
    let reading = async {
        loop {
            let part = match stream.next().await.map_err(of_server)? {
                Piece::Data(bytes) => Part::Data(bytes),
                Piece::Restart => Part::Restart,
                Piece::End => Part::End(stream.modified()),
            };
            progress(stream.progress());
            let last = matches!(part, Part::End(_));
            if sender.send(part).await.is_err() || last {
                break;
            }
        }
        // Who writes has its end, or sees that there is none.
        drop(sender);
        Ok::<_, Error>((stream.validators().clone(), stream.sha256()))
    };
    let (read, written) = futures::join!(reading, writing);
    // What became of the bytes is the consequence when they did not arrive.
    let (version, sha256) = read?;
    let (identity, snapshot) = written?;
    let Validators { etag, last_modified } = version;
    Ok(Record { etag, last_modified, sha256, identity: *identity.as_bytes(), snapshot })
}

fn write(store: &Store, mut parts: mpsc::Receiver<Part>) -> Result<(Digest, Snapshot), Error> {
    let mut tree = store.inflow()?;
    let root = Meta { mode: 0o755, uid: 0, gid: 0, mtime: Timestamp::default() };
    tree.directory(b"", &root)?;
    let mut file = tree.file(CONTENTS.as_bytes())?;
    let modified = loop {
        match parts.blocking_recv() {
            Some(Part::Data(bytes)) => file.write(&bytes)?,
            Some(Part::Restart) => file.restart()?,
            Some(Part::End(modified)) => break modified,
            None => return Err(Error::new(ErrorKind::Cancelled, "a download was given up")),
        }
    };
    file.finish(&Meta { mode: MODE, uid: 0, gid: 0, mtime: timestamp(modified) })?;
    let (snapshot, identity) = tree.finish()?;
    Ok((identity, snapshot))
}

/// A time of the server's; without one it is always the same, so that equal files are equal.
fn timestamp(modified: Option<SystemTime>) -> Timestamp {
    let since = modified.and_then(|at| at.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    Timestamp { seconds: since.as_secs() as i64, nanoseconds: 0 }
}

/// A failure of a server, as the caller reads it.
fn of_server(error: fetch::Error) -> Error {
    let kind = match &error {
        fetch::Error::Status { status, .. } if *status < 500 => ErrorKind::User,
        fetch::Error::Address { .. } => ErrorKind::User,
        _ => ErrorKind::Environment,
    };
    let converted = Error::new(kind, error.to_string());
    match &error {
        fetch::Error::Status { status: 401 | 403, .. } => {
            converted.with_hint("give what the server wants to see as `authHeader`, a secret")
        }
        fetch::Error::Connect { .. } => converted.with_hint(
            "the engine connects, not your program: if it needs a proxy, set `proxy` in engine.toml",
        ),
        _ => converted,
    }
}
