//! A tree that the client sends, entry by entry.

use super::progress::Progress;
use super::{Host, TreePart};
use crate::paths;
use crate::services::Services;
use protocol::attach::{Entry, EntryKind, ReadRequest};
use protocol::{Digest, Error};
use std::sync::Arc;
use store::{Inflow, IntakeWatch, Meta, Snapshot, Store, Timestamp};
use tokio::sync::mpsc;

/// Parts of a tree that may wait to be written.
const PARTS_IN_FLIGHT: usize = 64;

/// Reads what `request` names.
pub(super) async fn receive(
    host: &Host,
    request: ReadRequest,
    services: &Services,
    progress: &Arc<Progress>,
) -> Result<(Digest, Snapshot), Error> {
    let name = if request.directory { "" } else { paths::name(&request.path) };
    let (sender, parts) = mpsc::channel(PARTS_IN_FLIGHT);
    let writer = Writer {
        store: services.store.clone(),
        name: name.as_bytes().to_vec(),
        parts,
        progress: progress.clone(),
    };
    let written = services.blocking(move || writer.run());
    let (read, written) = futures::join!(host.files().read(request, sender), written);
    // The reader's error is the cause when both failed.
    read?;
    let (snapshot, identity) = written?;
    Ok((identity, snapshot))
}

/// Writes the parts of a tree into a layer, on a thread of its own.
struct Writer {
    store: Store,
    /// Name for the one file of a file import.
    name: Vec<u8>,
    parts: mpsc::Receiver<TreePart>,
    progress: Arc<Progress>,
}

impl Writer {
    fn run(mut self) -> Result<(Snapshot, Digest), Error> {
        let mut tree = self.store.inflow()?;
        loop {
            match self.next()? {
                TreePart::Entry(entry) => self.write(&mut tree, &entry)?,
                TreePart::End => return Ok(tree.finish()?),
                TreePart::Data(_) | TreePart::EndOfFile | TreePart::Again(_) => {
                    return Err(Error::internal("bytes of an import came without their file"));
                }
            }
            self.progress.saw(1);
        }
    }

    fn next(&mut self) -> Result<TreePart, Error> {
        let gone = || Error::environment("the client went away during an import");
        self.parts.blocking_recv().ok_or_else(gone)
    }

    fn write(&mut self, tree: &mut Inflow, entry: &Entry) -> Result<(), Error> {
        let path = match &self.name[..] {
            [] => entry.path.as_bytes(),
            name => name,
        };
        let target = entry.target.as_bytes();
        match entry.kind {
            EntryKind::Directory => tree.directory(path, &meta(entry))?,
            EntryKind::Symlink => tree.symlink(path, target, &meta(entry))?,
            EntryKind::HardLink => tree.hard_link(target, path)?,
            EntryKind::File => {
                let path = path.to_vec();
                self.write_file(tree, &path, meta(entry))?;
            }
        }
        Ok(())
    }

    fn write_file(&mut self, tree: &mut Inflow, path: &[u8], meta: Meta) -> Result<(), Error> {
        let mut meta = meta;
        let mut file = tree.file(path)?;
        loop {
            match self.next()? {
                TreePart::Data(bytes) => {
                    file.write(&bytes)?;
                    self.progress.read(bytes.len() as u64);
                }
                TreePart::Again(entry) => {
                    file.restart()?;
                    meta = self::meta(&entry);
                }
                TreePart::EndOfFile => return Ok(file.finish(&meta)?),
                TreePart::Entry(_) | TreePart::End => {
                    return Err(Error::internal("a file of an import came without its end"));
                }
            }
        }
    }
}

fn meta(entry: &Entry) -> Meta {
    const SECOND: i64 = 1_000_000_000;
    let mtime = Timestamp {
        seconds: entry.modified.div_euclid(SECOND),
        nanoseconds: entry.modified.rem_euclid(SECOND) as u32,
    };
    Meta { mode: entry.mode & 0o7777, uid: 0, gid: 0, mtime }
}
