//! [`Frames`]: a tree or a file as the frames of a write.

use super::progress::Progress;
use protocol::Error;
use protocol::attach::{Entry, EntryKind, FrameKind, Name, frame};
use std::sync::Arc;
use store::{Outlet, OutletFile, Part, Piece, Watch};
use tokio::sync::mpsc;

/// Frames are gathered to about this size before they are sent.
const CHUNK: usize = 256 << 10;

/// Sends frames. When nobody takes them any more it does nothing: who should have taken them says why.
pub(super) struct Frames {
    sender: mpsc::Sender<Vec<u8>>,
    chunk: Vec<u8>,
    progress: Arc<Progress>,
    gone: bool,
}

impl Frames {
    pub(super) fn new(sender: mpsc::Sender<Vec<u8>>, progress: Arc<Progress>) -> Self {
        Self { sender, chunk: vec![], progress, gone: false }
    }

    /// Paths that are to go.
    pub(super) fn remove(&mut self, paths: &[Vec<u8>]) {
        for path in paths {
            self.frame(FrameKind::Remove, path);
        }
    }

    /// All entries of a directory.
    pub(super) fn tree(&mut self, outlet: &Outlet) -> Result<(), Error> {
        let mut failed = Ok(());
        outlet.parts(&mut |part| {
            failed = self.part(part);
            failed.is_ok() && self.goes_on()
        })?;
        failed
    }

    /// One file, which has no name of its own.
    pub(super) fn file(&mut self, file: &OutletFile) -> Result<(), Error> {
        self.contents(vec![], file)
    }

    /// Everything was sent.
    pub(super) fn end(mut self) {
        if self.goes_on() {
            self.frame(FrameKind::End, &[]);
            self.flush();
        }
    }

    fn part(&mut self, part: Part) -> Result<(), Error> {
        match part {
            Part::Directory { path, meta } => self.entry(path, EntryKind::Directory, meta.into()),
            Part::Symlink { path, meta, target } => {
                self.entry(path, EntryKind::Symlink, Facts { target, ..meta.into() });
                self.progress.passed(1, 0);
            }
            Part::HardLink { path, first } => {
                self.entry(path, EntryKind::HardLink, Facts { target: first, ..Facts::default() });
                self.progress.passed(1, 0);
            }
            Part::File { path, file } => self.contents(path, &file)?,
        }
        Ok(())
    }

    fn contents(&mut self, path: Vec<u8>, file: &OutletFile) -> Result<(), Error> {
        self.entry(path, EntryKind::File, Facts { size: file.size(), ..file.meta().into() });
        file.pieces(&mut |piece| {
            match piece {
                Piece::Data(bytes) => {
                    self.frame(FrameKind::Data, bytes);
                    self.progress.passed(0, bytes.len() as u64);
                }
                Piece::Hole(length) => self.frame(FrameKind::Hole, &length.to_le_bytes()),
            }
            self.goes_on()
        })?;
        self.frame(FrameKind::EndOfFile, &[]);
        self.progress.passed(1, 0);
        Ok(())
    }

    fn entry(&mut self, path: Vec<u8>, kind: EntryKind, facts: Facts) {
        let entry = Entry {
            path: Name(path),
            kind,
            mode: facts.mode,
            modified: facts.modified,
            size: facts.size,
            target: Name(facts.target),
        };
        let json = serde_json::to_vec(&entry).expect("plain data has a JSON form");
        self.frame(FrameKind::Entry, &json);
    }

    fn frame(&mut self, kind: FrameKind, payload: &[u8]) {
        self.chunk.extend(frame(kind, payload));
        if self.chunk.len() >= CHUNK {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let chunk = std::mem::take(&mut self.chunk);
        self.gone |= !chunk.is_empty() && self.sender.blocking_send(chunk).is_err();
    }

    fn goes_on(&self) -> bool {
        !self.gone && !self.progress.is_stopped()
    }
}

/// What an entry has beside path and kind.
#[derive(Default)]
struct Facts {
    mode: u32,
    modified: i64,
    size: u64,
    target: Vec<u8>,
}

impl From<store::HostMeta> for Facts {
    fn from(meta: store::HostMeta) -> Self {
        let (seconds, nanoseconds) = meta.modified;
        let modified = seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds.into());
        Self { mode: meta.mode, modified, ..Self::default() }
    }
}
