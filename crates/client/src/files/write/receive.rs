//! From frames to files: a tree, or one file, written entry by entry.

use super::target::Target;
use crate::files::HostPaths;
use bytes::Bytes;
use landing::{Landing, Made, Meta, Others, Place, Unfinished};
use protocol::Error;
use protocol::attach::{
    Entry, EntryKind, FrameDecoder, FrameKind, WriteReply, WriteRequest, Writing,
};
use std::collections::{HashMap, HashSet};
use std::os::unix::fs::FileExt;
use std::path::Path;
use tokio::sync::mpsc;

/// Writes what the frames hold. Blocks.
pub(super) fn receive(
    host: &HostPaths,
    asked: &WriteRequest,
    pieces: mpsc::Receiver<Bytes>,
) -> Result<WriteReply, Error> {
    let target = Target::open(host, &asked.path, &asked.what)?;
    let reply = WriteReply { path: target.path.clone() };
    let mut frames = Frames { pieces, decoder: FrameDecoder::default() };
    match &asked.what {
        Writing::Directory { wipe } => {
            let others = if *wipe { Others::Remove } else { Others::Keep };
            let landing = Landing::new(target.directory, &target.path, others);
            let mut tree = Tree::new(&landing, target.made);
            let received = tree.receive(&mut frames);
            // After a failure too, so that no directory is left that only we can use.
            let finished = tree.finish_directories();
            received.and(finished)?;
        }
        Writing::File { .. } => {
            let path = Path::new(&target.path);
            let above = path.parent().unwrap_or(Path::new("/"));
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            let landing = Landing::new(target.directory, above, Others::Keep);
            single(&landing, name, &mut frames)?;
        }
    }
    Ok(reply)
}

/// Frames out of the pieces of a request.
struct Frames {
    pieces: mpsc::Receiver<Bytes>,
    decoder: FrameDecoder,
}

impl Frames {
    /// Hands the next frame to `take`.
    fn next<T>(
        &mut self,
        take: impl FnOnce(FrameKind, &[u8]) -> Result<T, Error>,
    ) -> Result<T, Error> {
        loop {
            if let Some((kind, payload)) = self.decoder.next_frame().map_err(garbled)? {
                return take(kind, payload);
            }
            let Some(piece) = self.pieces.blocking_recv() else {
                return Err(garbled("it ended too early"));
            };
            self.decoder.push(&piece);
        }
    }
}

/// One step of what is sent.
enum Step {
    Entry(Entry),
    Remove(Vec<u8>),
    End,
}

fn step(kind: FrameKind, payload: &[u8]) -> Result<Step, Error> {
    match kind {
        FrameKind::Entry => serde_json::from_slice(payload).map(Step::Entry).map_err(garbled),
        FrameKind::Remove => Ok(Step::Remove(payload.to_vec())),
        FrameKind::End => Ok(Step::End),
        other => Err(garbled(format!("a frame of kind {other:?} came"))),
    }
}

/// Takes the bytes of one file, to its end.
fn contents(frames: &mut Frames, unfinished: &Unfinished<'_>) -> Result<u64, Error> {
    let file = unfinished.file();
    let failed = |error| Error::from(unfinished.not_written(error));
    let mut at = 0;
    loop {
        let more = frames.next(|kind, payload| match kind {
            FrameKind::Data => {
                file.write_all_at(payload, at).map_err(failed)?;
                Ok(Some(payload.len() as u64))
            }
            FrameKind::Hole => {
                let length = payload.try_into().map(u64::from_le_bytes);
                length.map(Some).map_err(garbled)
            }
            FrameKind::EndOfFile => Ok(None),
            other => Err(garbled(format!("a frame of kind {other:?} came"))),
        })?;
        match more {
            Some(more) => at += more,
            None => break,
        }
    }
    file.set_len(at).map_err(failed)?;
    Ok(at)
}

fn file(frames: &mut Frames, place: &Place<'_>, name: &[u8], entry: &Entry) -> Result<(), Error> {
    let unfinished = place.begin(name)?;
    if contents(frames, &unfinished)? != entry.size {
        return Err(garbled(format!("`{}` is not as long as it was said to be", entry.path)));
    }
    Ok(unfinished.finish(&meta(entry))?)
}

fn single(landing: &Landing, name: &[u8], frames: &mut Frames) -> Result<(), Error> {
    let Step::Entry(entry) = frames.next(step)? else { return Err(garbled("no file came")) };
    let place = landing.place(b"")?;
    file(frames, &place, name, &entry)
}

/// A tree that is being written.
struct Tree<'a> {
    landing: &'a Landing,
    /// The directory used last.
    place: Option<(Vec<u8>, Place<'a>)>,
    /// In the order they came, parents first.
    directories: Vec<(Vec<u8>, Meta)>,
    /// Names that came for directories which were there before, where all others are to go.
    taken: HashMap<Vec<u8>, HashSet<Vec<u8>>>,
    /// Whether the top is new.
    made: bool,
}

impl<'a> Tree<'a> {
    fn new(landing: &'a Landing, made: bool) -> Self {
        let mut taken = HashMap::new();
        if !made {
            taken.insert(vec![], HashSet::new());
        }
        Self { landing, place: None, directories: vec![], taken, made }
    }

    fn receive(&mut self, frames: &mut Frames) -> Result<(), Error> {
        loop {
            match frames.next(step)? {
                Step::Remove(path) => self.landing.remove(&path)?,
                Step::Entry(entry) => self.entry(entry, frames)?,
                Step::End => return self.remove_others(),
            }
        }
    }

    fn entry(&mut self, entry: Entry, frames: &mut Frames) -> Result<(), Error> {
        let path = entry.path.as_bytes();
        if path.is_empty() {
            if self.made {
                self.directories.push((vec![], meta(&entry)));
            }
            return Ok(());
        }
        let (above, name) = split(path);
        if let Some(taken) = self.taken.get_mut(above) {
            taken.insert(name.to_vec());
        }
        let place = self.place(above)?;
        match entry.kind {
            EntryKind::File => file(frames, place, name, &entry)?,
            EntryKind::Symlink => place.symlink(name, entry.target.as_bytes(), &meta(&entry))?,
            EntryKind::HardLink => {
                let (first_above, first) = split(entry.target.as_bytes());
                let from = self.landing.place(first_above)?;
                self.place(above)?.hard_link(name, &from, first)?;
            }
            EntryKind::Directory => {
                let before = place.directory(name)? == Made::Before;
                self.directories.push((path.to_vec(), meta(&entry)));
                if before && self.landing.others() == Others::Remove {
                    self.taken.insert(path.to_vec(), HashSet::new());
                }
            }
        }
        Ok(())
    }

    fn place(&mut self, path: &[u8]) -> Result<&Place<'a>, Error> {
        let place = match self.place.take() {
            Some((last, place)) if last == path => place,
            _ => self.landing.place(path)?,
        };
        Ok(&self.place.insert((path.to_vec(), place)).1)
    }

    fn remove_others(&mut self) -> Result<(), Error> {
        if self.landing.others() == Others::Keep {
            return Ok(());
        }
        for (path, taken) in &self.taken {
            let place = self.landing.place(path)?;
            let names = place.names()?;
            names.iter().filter(|name| !taken.contains(*name)).try_for_each(|n| place.remove(n))?;
        }
        Ok(())
    }

    /// The deepest first: a finished directory may not be entered any more.
    fn finish_directories(&mut self) -> Result<(), Error> {
        self.place = None;
        let directories = std::mem::take(&mut self.directories);
        let mut result = Ok(());
        for (path, meta) in directories.iter().rev() {
            let finished = self.landing.finish_directory(path, meta);
            result = result.and(finished.map_err(Error::from));
        }
        result
    }
}

fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&[], path),
    }
}

fn meta(entry: &Entry) -> Meta {
    const SECOND: i64 = 1_000_000_000;
    let nanoseconds = entry.modified.rem_euclid(SECOND) as u32;
    Meta { mode: entry.mode & 0o7777, modified: (entry.modified.div_euclid(SECOND), nanoseconds) }
}

fn garbled(what: impl std::fmt::Display) -> Error {
    Error::internal(format!("what was sent to be written cannot be read: {what}"))
}
