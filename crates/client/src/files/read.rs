//! Reading a tree or a file of the host, as a stream of frames.
//!
//! Entries come parents first, the names of a directory in byte order, so that equal trees give
//! equal streams. A directory that is there only for what is below it is sent when the first such
//! entry is. Every file is looked at before and after it is read: one that changed meanwhile is an
//! error, because half of each version is what nobody has written. An entry that vanishes before it
//! is read was simply not there. Nothing is held in memory but the names of one branch.

use super::filter::{Filter, State, Verdict};
use super::gitignore::{Rules, Scope};
use super::{named, text};
use bytes::Bytes;
use protocol::Error;
use protocol::attach::{Entry, EntryKind, FrameKind, ReadRequest, frame};
use rustix::fs::OFlags;
use std::collections::HashMap;
use std::fs::{DirEntry, File, FileType, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use tokio::sync::mpsc;

/// Frames are gathered to about this size before they are sent.
const CHUNK: usize = 256 << 10;

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
enum Stop {
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
    let rules = match request.gitignore.then(|| Rules::above(&root)).transpose()? {
        None | Some(Scope::NoRepository) => None,
        Some(Scope::Rules(rules)) => Some(rules),
        Some(Scope::Ignored) => {
            return Err(Error::user(format!("{typed}: no such file or directory")).into());
        }
    };
    let filter = Filter::new(&request.include, &request.exclude)?;
    let state = filter.root();
    out.entry(&entry("", EntryKind::Directory, &metadata))?;
    let mut walk = Walk { typed, filter, rules, pending: vec![], links: HashMap::new(), out };
    walk.directory(&root, "", &state)
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
    contents(typed, "", file, out)
}

struct Walk<'a> {
    typed: &'a str,
    filter: Filter,
    rules: Option<Rules>,
    /// Directories on the way here that are sent only if something below them is.
    pending: Vec<Entry>,
    /// First names of files that have several.
    links: HashMap<(u64, u64), String>,
    out: &'a mut Output,
}

impl Walk<'_> {
    fn directory(&mut self, path: &Path, relative: &str, state: &State) -> Result<(), Stop> {
        let mut entries =
            match std::fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>) {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(error) => return Err(named(&self.shown(relative), &error).into()),
            };
        entries.sort_by_key(DirEntry::file_name);
        if let Some(rules) = &mut self.rules {
            rules.enter(path)?;
        }
        for entry in entries {
            self.entry(&entry, relative, state)?;
        }
        if let Some(rules) = &mut self.rules {
            rules.leave();
        }
        Ok(())
    }

    fn entry(&mut self, entry: &DirEntry, parent: &str, state: &State) -> Result<(), Stop> {
        let path = entry.path();
        let name = text(Path::new(&entry.file_name()));
        let relative = match &name {
            Ok(name) if parent.is_empty() => name.clone(),
            Ok(name) => format!("{parent}/{name}"),
            Err(_) => entry.file_name().to_string_lossy().into_owned(),
        };
        let kind = entry.file_type().map_err(|error| named(&self.shown(&relative), &error))?;
        if self.rules.as_ref().is_some_and(|rules| rules.ignores(&path, kind.is_dir())) {
            return Ok(());
        }
        let (verdict, state) = self.filter.check(&relative, kind.is_dir(), state);
        if verdict == Verdict::Skip {
            return Ok(());
        }
        name?;
        if kind.is_dir() {
            return self.subdirectory(&path, &relative, verdict, &state);
        }
        match self.leaf(&path, &relative, kind) {
            Err(Reading::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(Reading::Io(error)) => Err(named(&self.shown(&relative), &error).into()),
            Err(Reading::Stop(stop)) => Err(stop),
            Ok(()) => Ok(()),
        }
    }

    fn subdirectory(
        &mut self,
        path: &Path,
        relative: &str,
        verdict: Verdict,
        state: &State,
    ) -> Result<(), Stop> {
        let metadata = match path.symlink_metadata() {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(named(&self.shown(relative), &error).into()),
        };
        self.pending.push(entry(relative, EntryKind::Directory, &metadata));
        let depth = self.pending.len();
        if verdict == Verdict::Take {
            self.send_pending()?;
        }
        self.directory(path, relative, state)?;
        // Nothing below it was sent, so it is not either.
        self.pending.truncate(depth - 1);
        Ok(())
    }

    fn send_pending(&mut self) -> Result<(), Stop> {
        self.pending.drain(..).try_for_each(|entry| self.out.entry(&entry))
    }

    fn leaf(&mut self, path: &Path, relative: &str, kind: FileType) -> Result<(), Reading> {
        if kind.is_symlink() {
            let metadata = path.symlink_metadata()?;
            let target = text(&path.read_link()?)?;
            self.send_pending()?;
            let link = Entry { target, ..entry(relative, EntryKind::Symlink, &metadata) };
            return Ok(self.out.entry(&link)?);
        }
        if !kind.is_file() {
            return Err(Reading::Stop(special(&self.shown(relative), kind).into()));
        }
        let file = open(path)?;
        let metadata = file.metadata()?;
        self.send_pending()?;
        if metadata.nlink() > 1 {
            let inode = (metadata.dev(), metadata.ino());
            if let Some(first) = self.links.get(&inode) {
                let target = first.clone();
                let link = Entry { target, ..entry(relative, EntryKind::HardLink, &metadata) };
                return Ok(self.out.entry(&link)?);
            }
            self.links.insert(inode, relative.to_owned());
        }
        Ok(contents(&self.shown(relative), relative, file, self.out)?)
    }

    /// A path as the user would write it.
    fn shown(&self, relative: &str) -> String {
        Path::new(self.typed).join(relative).display().to_string()
    }
}

/// Why one entry cannot be read.
enum Reading {
    Io(io::Error),
    Stop(Stop),
}

impl From<io::Error> for Reading {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Stop> for Reading {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

impl From<Error> for Reading {
    fn from(error: Error) -> Self {
        Self::Stop(Stop::Failed(error))
    }
}

/// Opens without following a link and without waiting: what was a file may have become a pipe.
fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    OpenOptions::new().read(true).custom_flags(flags as i32).open(path)
}

/// Sends the entry and the bytes of a regular file.
fn contents(shown: &str, relative: &str, mut file: File, out: &mut Output) -> Result<(), Stop> {
    let fail = |error: io::Error| named(shown, &error);
    let before = file.metadata().map_err(fail)?;
    if !before.is_file() {
        return Err(changed(shown).into());
    }
    out.entry(&entry(relative, EntryKind::File, &before))?;
    let mut buffer = vec![0; CHUNK.min(before.len() as usize + 1)];
    let mut total = 0;
    loop {
        let count = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(fail(error).into()),
        };
        total += count as u64;
        out.frame(FrameKind::Data, &buffer[..count])?;
    }
    let after = file.metadata().map_err(fail)?;
    // Files that the kernel makes up have no size and still have bytes.
    let whole = total == before.len() || before.len() == 0;
    if !whole || stamp(&before) != stamp(&after) {
        return Err(changed(shown).into());
    }
    out.frame(FrameKind::EndOfFile, &[])
}

fn stamp(metadata: &Metadata) -> (u64, i64, i64, i64, i64) {
    let (modified, changed) = (metadata.mtime(), metadata.ctime());
    (metadata.len(), modified, metadata.mtime_nsec(), changed, metadata.ctime_nsec())
}

fn changed(shown: &str) -> Error {
    Error::environment(format!("{shown}: the file changed while it was read"))
        .with_hint("run again when nothing writes to it, or leave it out with an exclude pattern")
}

fn special(shown: &str, kind: FileType) -> Error {
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

fn entry(path: &str, kind: EntryKind, metadata: &Metadata) -> Entry {
    Entry {
        path: path.to_owned(),
        kind,
        mode: metadata.mode() & 0o7777,
        modified: metadata
            .mtime()
            .saturating_mul(1_000_000_000)
            .saturating_add(metadata.mtime_nsec()),
        size: if metadata.is_file() { metadata.len() } else { 0 },
        target: String::new(),
    }
}

/// Frames on their way out, gathered to chunks.
struct Output {
    sender: mpsc::Sender<Bytes>,
    chunk: Vec<u8>,
}

impl Output {
    fn entry(&mut self, entry: &Entry) -> Result<(), Stop> {
        let json = serde_json::to_vec(entry).expect("plain data has a JSON form");
        self.frame(FrameKind::Entry, &json)
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
