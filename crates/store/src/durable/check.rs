//! Compares a layer with its manifest.
//!
//! By `stat` alone: that takes about a microsecond an entry and finds what is missing, cut short,
//! replaced or written to. An entry too many shows in the time of its directory. Bytes that changed
//! behind the back of the file system are found when they are read, or by the scrub.

use super::manifest::{self, Directory};
use crate::metadata::Metadata;
use crate::snapshot::LayerId;
use crate::state::{self, StateDir};
use crate::view::join;
use protocol::Digest;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use rustix::fs::{AtFlags, fstat, statat};
use rustix::io::Errno;

/// Directories compared at once.
const AT_ONCE: usize = 512;
/// Fewer entries are compared faster by one thread.
const WORTH_SHARING: usize = 256;

/// Compares; an error says what is wrong.
pub(crate) fn check(state: &StateDir, layer: LayerId, digest: &Digest) -> Result<(), String> {
    let directories = manifest::read(state.path(), layer, digest);
    let mut directories = directories.map_err(|error| format!("its manifest: {error}"))?;
    let root = state::layer_path(layer).into_bytes();
    loop {
        let some: Result<Vec<Directory>, _> = directories.by_ref().take(AT_ONCE).collect();
        let some = some.map_err(|error| format!("its manifest: {error}"))?;
        if some.is_empty() {
            return Ok(());
        }
        let compare = |directory: &Directory| compare(state, &root, directory);
        let entries: usize = some.iter().map(|directory| directory.entries.len()).sum();
        match entries < WORTH_SHARING {
            true => some.iter().try_for_each(compare)?,
            false => some.par_iter().try_for_each(compare)?,
        }
    }
}

fn compare(state: &StateDir, layer: &[u8], directory: &Directory) -> Result<(), String> {
    let shown =
        |name: &[u8]| crate::view::shorten(&String::from_utf8_lossy(&join(&directory.path, name)));
    let unread = |name: &[u8], errno: Errno| format!("`/{}`: {errno}", shown(name));
    let open = state.open_directory(&join(layer, &directory.path));
    let open = open.map_err(|errno| unread(b"", errno))?;
    let found = Metadata::from(&fstat(&open).map_err(|errno| unread(b"", errno))?);
    if !directory.facts.agree(&found) {
        return Err(format!("`/{}` has changed", shown(b"")));
    }
    for entry in &directory.entries {
        let Some(facts) = &entry.facts else { continue };
        let found = statat(&open, &entry.name[..], AtFlags::SYMLINK_NOFOLLOW);
        let found = found.map_err(|errno| unread(&entry.name, errno))?;
        if !facts.agree(&Metadata::from(&found)) {
            return Err(format!("`/{}` has changed", shown(&entry.name)));
        }
    }
    Ok(())
}
