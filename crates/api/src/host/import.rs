//! Takes a tree of the host into the store: one layer, known by its content.

use super::{Host, TreePart};
use crate::paths;
use crate::services::Services;
use crate::tree::Tree;
use graph::{Context, Span};
use protocol::attach::{Entry, EntryKind, ReadRequest};
use protocol::{Error, SpanKind, Unit};
use std::io::{self, Read};
use store::{LayerBuilder, LayerRef, Meta, Snapshot, Store, Timestamp};
use tokio::sync::mpsc;

/// How many entries pass between two reports.
const REPORT_EVERY: u64 = 256;
/// Parts of a tree that may wait to be written.
const PARTS_IN_FLIGHT: usize = 64;

/// Reads what `request` names; a single file becomes a tree with just that file.
pub(super) async fn import(host: &Host, request: ReadRequest, cx: &Context) -> Result<Tree, Error> {
    let services = cx.get::<Services>()?;
    let span = cx.span().child(format!("import {}", request.path), SpanKind::Work);
    let name = if request.directory { "" } else { paths::name(&request.path) };
    let (sender, receiver) = mpsc::channel(PARTS_IN_FLIGHT);
    let writer = Writer {
        store: services.store.clone(),
        name: name.to_owned(),
        parts: Parts { receiver, complete: false },
        span: span.clone(),
    };
    let written = services.blocking(move || writer.run());
    let (read, written) = futures::join!(host.files().read(request, sender), written);
    // The reader's error is the cause when both failed.
    read?;
    let (identity, snapshot) = written?;
    span.done();
    Ok(Tree::settled(identity, snapshot))
}

/// Writes the parts of a tree into a layer, on a thread of its own.
struct Writer {
    store: Store,
    /// Name for the one file of a file import.
    name: String,
    parts: Parts,
    span: Span,
}

struct Parts {
    receiver: mpsc::Receiver<TreePart>,
    complete: bool,
}

impl Writer {
    fn run(mut self) -> Result<(protocol::Digest, Snapshot), Error> {
        let mut layer = self.store.new_layer()?;
        let mut entries = 0u64;
        while let Some(part) = self.parts.receiver.blocking_recv() {
            match part {
                TreePart::Entry(entry) => self.write(&mut layer, entry)?,
                TreePart::End => {
                    self.parts.complete = true;
                    break;
                }
                TreePart::Data(_) | TreePart::EndOfFile => {
                    return Err(Error::internal("bytes of an import came without their file"));
                }
            }
            entries += 1;
            if entries.is_multiple_of(REPORT_EVERY) {
                self.span.progress(entries, None, Unit::Items);
            }
        }
        if !self.parts.complete {
            return Err(Error::environment("the client went away during an import"));
        }
        let snapshot = Snapshot::empty().push(LayerRef::whole(layer.commit()?));
        Ok((self.store.tree_digest(&snapshot)?, snapshot))
    }

    fn write(&mut self, layer: &mut LayerBuilder, entry: Entry) -> Result<(), Error> {
        let path = paths::join(&self.name, &entry.path);
        let mtime = timestamp(entry.modified);
        let meta = Meta { mode: entry.mode & 0o7777, uid: 0, gid: 0, mtime };
        match entry.kind {
            EntryKind::Directory => layer.directory(&path, &meta)?,
            EntryKind::Symlink => layer.symlink(&path, &entry.target, &meta)?,
            EntryKind::HardLink => layer.hard_link(&entry.target, &path)?,
            EntryKind::File => {
                let mut contents =
                    Contents { parts: &mut self.parts, rest: vec![], at: 0, end: false };
                layer.file(&path, &meta, &mut contents)?;
                if !contents.end {
                    return Err(Error::environment("the client went away during an import"));
                }
            }
        }
        Ok(())
    }
}

/// The bytes of one file, as they come.
struct Contents<'a> {
    parts: &'a mut Parts,
    rest: Vec<u8>,
    at: usize,
    end: bool,
}

impl Read for Contents<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.rest.len() && !self.end {
            match self.parts.receiver.blocking_recv() {
                Some(TreePart::Data(bytes)) => (self.rest, self.at) = (bytes, 0),
                Some(TreePart::EndOfFile) => self.end = true,
                _ => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        let count = buffer.len().min(self.rest.len() - self.at);
        buffer[..count].copy_from_slice(&self.rest[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

fn timestamp(nanoseconds: i64) -> Timestamp {
    const SECOND: i64 = 1_000_000_000;
    Timestamp {
        seconds: nanoseconds.div_euclid(SECOND),
        nanoseconds: nanoseconds.rem_euclid(SECOND) as u32,
    }
}
