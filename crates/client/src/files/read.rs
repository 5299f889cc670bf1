//! Reading a tree or a file of the host, as a stream of frames.
//!
//! Every file is looked at before and after it is read: half of each of two versions is what nobody
//! has written. One that changed meanwhile is sent again, a few times; then it is an error.

use super::walk::Walk;
use super::{gitignore, named};
use bytes::Bytes;
use protocol::Error;
use protocol::attach::{Entry, EntryKind, FrameKind, Name, ReadRequest, frame};
use rustix::fs::OFlags;
use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io::{self, Read, Seek};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;

/// Frames are gathered to about this size before they are sent.
const CHUNK: usize = 256 << 10;
/// How often a file is sent that changes while it is read.
const TRIES: usize = 8;
/// How long ago a file must have changed: a tick of the kernel's clock and a bit.
const YOUNG: Duration = Duration::from_millis(20);

/// Sends what `request` asks for, found at `root`, and a last frame that says whether that is all.
/// Blocks while nobody takes the chunks; ends when nobody will.
pub(super) fn send(request: &ReadRequest, root: &Path, sender: mpsc::Sender<Bytes>) {
    let mut out = Output { sender, chunk: vec![] };
    let done = match start(request, root, &mut out) {
        Ok(()) => out.frame(FrameKind::End, &[]),
        Err(Stop::Gone) => return,
        Err(Stop::Failed(error)) => {
            let json = serde_json::to_vec(&error).expect("plain data has a JSON form");
            out.frame(FrameKind::Failed, &json)
        }
    };
    // Whoever has gone needs no last frame.
    let _ = done.and_then(|()| out.flush());
}

/// Why a read ends early.
pub(super) enum Stop {
    /// Nobody takes the frames.
    Gone,
    /// Something cannot be read.
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

fn start(request: &ReadRequest, root: &Path, out: &mut Output) -> Result<(), Stop> {
    let typed = request.path.as_str();
    let root = root.canonicalize().map_err(|error| named(typed, &error))?;
    let metadata = root.metadata().map_err(|error| named(typed, &error))?;
    if !request.directory {
        return single_file(typed, &root, &metadata, out);
    }
    if !metadata.is_dir() {
        return Err(Error::user(format!("path {typed} is a file, not a directory")).into());
    }
    let above = match request.gitignore {
        true => gitignore::files_above(typed, &root)?,
        false => None,
    };
    out.entry(&entry(b"", EntryKind::Directory, &metadata))?;
    Walk::run(request, &root, above, out)
}

fn single_file(
    typed: &str,
    path: &Path,
    metadata: &Metadata,
    out: &mut Output,
) -> Result<(), Stop> {
    if metadata.is_dir() {
        return Err(Error::user(format!("path {typed} is a directory, not a file")).into());
    }
    if !metadata.is_file() {
        return Err(special(typed, metadata.file_type()).into());
    }
    let file = open(path).map_err(|error| named(typed, &error))?;
    contents(typed, b"", file, out)
}

/// Opens without following a link and without waiting: what was a file may have become a pipe.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    OpenOptions::new().read(true).custom_flags(flags as i32).open(path)
}

/// Sends the entry and the bytes of a regular file.
pub(super) fn contents(
    shown: &str,
    relative: &[u8],
    mut file: File,
    out: &mut Output,
) -> Result<(), Stop> {
    let fail = |error: io::Error| named(shown, &error);
    for attempt in 0..TRIES {
        let before = settled(&file).map_err(fail)?;
        if !before.is_file() {
            break;
        }
        let head = entry(relative, EntryKind::File, &before);
        match attempt {
            0 => out.entry(&head)?,
            _ => out.entry_again(&head)?,
        }
        file.rewind().map_err(fail)?;
        let total = send_bytes(shown, &mut file, before.len(), out)?;
        let after = file.metadata().map_err(fail)?;
        // Files that the kernel makes up have no size and still have bytes.
        let whole = total == before.len() || before.len() == 0;
        if whole && stamp(&before) == stamp(&after) {
            return out.frame(FrameKind::EndOfFile, &[]);
        }
    }
    let error = Error::environment(format!("{shown}: the file changed while it was read"));
    let hint = "run again when nothing writes to it, or leave it out with an exclude pattern";
    Err(error.with_hint(hint).into())
}

/// What the file looks like. One that changed just now is left alone for a moment: times move in
/// ticks, and a write sets them when it begins, so half a write could pass for a whole.
fn settled(file: &File) -> io::Result<Metadata> {
    let metadata = file.metadata()?;
    let changed = Duration::new(metadata.ctime().max(0) as u64, metadata.ctime_nsec() as u32);
    let age = SystemTime::now().duration_since(UNIX_EPOCH + changed);
    match age.ok().and_then(|age| YOUNG.checked_sub(age)) {
        Some(left) => {
            std::thread::sleep(left);
            file.metadata()
        }
        None => Ok(metadata),
    }
}

/// Sends all bytes of a file and says how many there were.
fn send_bytes(shown: &str, file: &mut File, size: u64, out: &mut Output) -> Result<u64, Stop> {
    let mut buffer = vec![0; CHUNK.min(size as usize + 1)];
    let mut total = 0;
    loop {
        let count = match file.read(&mut buffer) {
            Ok(0) => return Ok(total),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(named(shown, &error).into()),
        };
        total += count as u64;
        out.frame(FrameKind::Data, &buffer[..count])?;
    }
}

fn stamp(metadata: &Metadata) -> (u64, i64, i64, i64, i64) {
    let (modified, changed) = (metadata.mtime(), metadata.ctime());
    (metadata.len(), modified, metadata.mtime_nsec(), changed, metadata.ctime_nsec())
}

pub(super) fn special(shown: &str, kind: FileType) -> Error {
    let what = if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    Error::user(format!("{shown}: is {what}, which cannot be imported"))
        .with_hint("leave it out with an exclude pattern")
}

pub(super) fn entry(path: &[u8], kind: EntryKind, metadata: &Metadata) -> Entry {
    Entry {
        path: Name::from(path),
        kind,
        mode: metadata.mode() & 0o7777,
        modified: metadata
            .mtime()
            .saturating_mul(1_000_000_000)
            .saturating_add(metadata.mtime_nsec()),
        size: if metadata.is_file() { metadata.len() } else { 0 },
        target: Name::default(),
    }
}

/// The bytes of a path.
pub(super) fn bytes(path: &Path) -> Name {
    Name::from(path.as_os_str().as_bytes())
}

/// Frames on their way out, gathered to chunks.
pub(super) struct Output {
    sender: mpsc::Sender<Bytes>,
    chunk: Vec<u8>,
}

impl Output {
    pub(super) fn entry(&mut self, entry: &Entry) -> Result<(), Stop> {
        self.json(FrameKind::Entry, entry)
    }

    fn entry_again(&mut self, entry: &Entry) -> Result<(), Stop> {
        self.json(FrameKind::Again, entry)
    }

    fn json(&mut self, kind: FrameKind, entry: &Entry) -> Result<(), Stop> {
        let json = serde_json::to_vec(entry).expect("plain data has a JSON form");
        self.frame(kind, &json)
    }

    fn frame(&mut self, kind: FrameKind, payload: &[u8]) -> Result<(), Stop> {
        self.chunk.extend_from_slice(&frame(kind, payload));
        if self.chunk.len() < CHUNK {
            return Ok(());
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<(), Stop> {
        let chunk = Bytes::from(std::mem::take(&mut self.chunk));
        self.sender.blocking_send(chunk).map_err(|_| Stop::Gone)
    }
}
