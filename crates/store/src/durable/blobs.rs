//! The scrub of blobs: what lies at rest is compared with its name, one blob after the other.
//!
//! A blob's name is the digest of its bytes, so nothing else needs to be known of it. The time of its file is when it
//! was last seen whole, at first by who wrote it: where the scrub was survives a restart, and no table grows with it.
//! One that has changed is lost, as if somebody had read it.

use super::inspector::Inspector;
use super::scrub::{AGAIN_AFTER, PIECE, Trouble};
use crate::blob::{self, BlobId};
use sha2::{Digest as _, Sha256};
use std::fs::{self, DirEntry, File};
use std::io::{self, Read};
use std::path::Path;
use std::time::SystemTime;

/// Blobs that were not seen whole for long, in one pass over all.
#[derive(Default)]
pub(crate) struct DueBlobs {
    /// The one that was seen longest ago is last.
    ids: Vec<BlobId>,
}

impl DueBlobs {
    /// Reads the blob that was read longest ago. `pace` is told of bytes that were read, may take its time, and says
    /// whether to go on. False when there is nothing to do.
    pub(crate) fn step(
        &mut self,
        inspector: &Inspector,
        pace: &mut dyn FnMut(usize) -> bool,
    ) -> bool {
        if self.ids.is_empty() {
            self.ids = due(inspector.state.path(), SystemTime::now());
        }
        let Some(id) = self.ids.pop() else { return false };
        match read(inspector, &id, pace) {
            Ok(()) => {}
            Err(Trouble::Damage(reason)) => inspector.lose_blob(id, &reason),
            Err(Trouble::Stopped) => self.ids.push(id),
            // It went meanwhile.
            Err(Trouble::Io(error)) if error.kind() == io::ErrorKind::NotFound => {}
            Err(Trouble::Io(error)) => tracing::warn!("blob {id} cannot be read again: {error}"),
        }
        true
    }
}

/// Reads a blob, and notes that it is whole.
fn read(
    inspector: &Inspector,
    id: &BlobId,
    pace: &mut dyn FnMut(usize) -> bool,
) -> Result<(), Trouble> {
    let mut file = File::open(blob::place(&inspector.state, id)).map_err(Trouble::Io)?;
    let (mut hasher, mut piece) = (Sha256::new(), vec![0; PIECE]);
    loop {
        let count = file.read(&mut piece).map_err(Trouble::Io)?;
        hasher.update(&piece[..count]);
        if !pace(count) {
            return Err(Trouble::Stopped);
        }
        if count == 0 {
            break;
        }
    }
    if hasher.finalize()[..] != id.as_bytes()[..] {
        return Err(Trouble::Damage("its bytes have changed".to_owned()));
    }
    file.set_modified(SystemTime::now()).map_err(Trouble::Io)
}

/// Blobs that were last seen whole too long ago, or at a time that is yet to come.
fn due(state: &Path, now: SystemTime) -> Vec<BlobId> {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries(&state.join("blobs/sha256"));
    let blobs = folders.flat_map(|folder| entries(&folder.path()));
    let mut due: Vec<(SystemTime, BlobId)> =
        blobs.filter_map(|blob| seen(&blob)).filter(|(seen, _)| is_due(*seen, now)).collect();
    due.sort_unstable_by(|one, other| other.cmp(one));
    due.into_iter().map(|(_, id)| id).collect()
}

/// When a blob was last seen whole.
fn seen(entry: &DirEntry) -> Option<(SystemTime, BlobId)> {
    let id = entry.file_name().to_str()?.parse().ok()?;
    Some((entry.metadata().and_then(|found| found.modified()).ok()?, id))
}

fn is_due(seen: SystemTime, now: SystemTime) -> bool {
    now.duration_since(seen).map_or(true, |age| age > AGAIN_AFTER)
}
