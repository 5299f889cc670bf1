//! What differs between two trees, and doing the same to a third.

use super::Waiting;
use crate::services::Services;
use protocol::{DigestBuilder, Error};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use store::{Difference, Editor, Kind, Metadata, Snapshot, View};

/// What counts as a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// What version control tracks.
    Tracked,
    /// Modes, owners and attributes too.
    Everything,
}

impl Rule {
    fn counts(self, difference: &Difference) -> bool {
        if self == Self::Everything || !difference.same_contents {
            return true;
        }
        match (&difference.before, &difference.after) {
            (Some(before), Some(after)) => is_executable(before) != is_executable(after),
            _ => true,
        }
    }
}

/// Whether an entry is a file that can be run.
pub(crate) fn is_executable(metadata: &Metadata) -> bool {
    metadata.kind == Kind::File && metadata.mode & 0o100 != 0
}

/// One path that was changed.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// Below the directories that are compared.
    pub(super) path: Vec<u8>,
    /// What was there.
    pub(super) before: Option<Metadata>,
    /// What is there.
    pub(super) after: Option<Metadata>,
}

/// A change as lists of paths tell it. A directory that becomes something else is removed, and what
/// takes its place is added.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) added: bool,
    pub(super) modified: bool,
    pub(super) removed: bool,
}

impl Change {
    pub(super) fn told(&self) -> Told {
        let swapped = matches!((&self.before, &self.after), (Some(before), Some(after))
            if before.is_directory() != after.is_directory());
        Told {
            added: self.before.is_none() || swapped,
            modified: self.before.is_some() && self.after.is_some() && !swapped,
            removed: self.after.is_none() || swapped,
        }
    }

    /// The path as it was: that of a directory ends with a slash.
    pub(super) fn old_name(&self) -> String {
        name(&self.path, self.before.as_ref())
    }

    /// The path as it is: that of a directory ends with a slash.
    pub(super) fn new_name(&self) -> String {
        name(&self.path, self.after.as_ref())
    }
}

fn name(path: &[u8], metadata: Option<&Metadata>) -> String {
    let slash = if metadata.is_some_and(Metadata::is_directory) { "/" } else { "" };
    format!("{}{slash}", String::from_utf8_lossy(path))
}

/// What differs between two trees and counts.
pub(super) async fn between(
    before: &Snapshot,
    after: &Snapshot,
    rule: Rule,
    services: &Services,
) -> Result<Arc<[Change]>, Error> {
    let waiting = Waiting::default();
    let (store, before, after, goes_on) =
        (services.store.clone(), before.clone(), after.clone(), waiting.watch());
    let compared = move || {
        let differences = store.compare(&before, &after, &goes_on)?;
        let counted = differences.into_iter().filter(|one| rule.counts(one));
        let change =
            |Difference { path, before, after, .. }: Difference| Change { path, before, after };
        Ok::<_, store::Error>(counted.map(change).collect())
    };
    services.blocking(compared).await
}

/// Removed entries of which no directory above was removed too.
pub(super) fn topmost_removed(changes: &[Change]) -> Vec<String> {
    let removed = |change: &&Change| change.told().removed;
    let directories: HashSet<&[u8]> = changes
        .iter()
        .filter(removed)
        .filter(|change| change.before.as_ref().is_some_and(Metadata::is_directory))
        .map(|change| change.path.as_slice())
        .collect();
    let is_topmost = |change: &&Change| !directories.contains(parent(&change.path));
    changes.iter().filter(removed).filter(is_topmost).map(Change::old_name).collect()
}

/// The path without its last name.
pub(super) fn parent(path: &[u8]) -> &[u8] {
    path.iter().rposition(|byte| *byte == b'/').map_or(b"", |slash| &path[..slash])
}

/// Joins two relative paths, of which the first may be empty.
pub(super) fn join(base: &[u8], path: &[u8]) -> Vec<u8> {
    if base.is_empty() { path.to_vec() } else { [base, b"/", path].concat() }
}

/// What comes and goes, by path.
pub(crate) struct Done {
    /// Entries that are there afterwards, parents first.
    came: Vec<Vec<u8>>,
    /// Entries that are not, parents first, and whether each was a directory.
    gone: Vec<(Vec<u8>, bool)>,
}

impl Done {
    pub(super) fn of(changes: &[Change]) -> Self {
        let is_directory = |change: &Change| change.before.is_some_and(|one| one.is_directory());
        let came = changes.iter().filter(|change| change.after.is_some());
        let gone = changes.iter().filter(|change| change.after.is_none());
        Self {
            came: came.map(|change| change.path.clone()).collect(),
            gone: gone.map(|change| (change.path.clone(), is_directory(change))).collect(),
        }
    }

    /// Some files and links come, each with the directories above it; others go, and so do directories that nothing is
    /// left in.
    pub(crate) fn new(
        came: Vec<Vec<u8>>,
        gone: BTreeSet<Vec<u8>>,
        mut folders: BTreeSet<Vec<u8>>,
    ) -> Self {
        let whole = folders.clone();
        for path in gone.iter().chain(&whole) {
            let mut above = parent(path);
            while !above.is_empty() && folders.insert(above.to_vec()) {
                above = parent(above);
            }
        }
        let folders = folders.into_iter().map(|path| (path, true));
        Self { came, gone: folders.chain(gone.into_iter().map(|path| (path, false))).collect() }
    }

    /// Feeds the identity of a tree to which this is done.
    pub(crate) fn digest_into(&self, digest: &mut DigestBuilder) {
        digest.number(self.came.len() as u64);
        self.came.iter().for_each(|path| {
            digest.bytes(path);
        });
        self.gone.iter().for_each(|(path, is_directory)| {
            digest.bytes(path).number(u64::from(*is_directory));
        });
    }

    /// Does the same below an exact path of an edited tree, with entries of `source`. What is to go
    /// and is not there is fine; a directory goes if nothing is left in it; what is not named stays.
    pub(crate) fn apply(
        &self,
        editor: &mut Editor,
        base: &[u8],
        source: &View,
    ) -> Result<(), store::Error> {
        for (path, is_directory) in self.gone.iter().rev() {
            let path = join(base, path);
            match is_directory {
                true => editor.remove_empty_directory(&path)?,
                false => editor.remove_entry(&path)?,
            }
        }
        editor.bring(source, base, self.came.iter().map(Vec::as_slice))
    }
}
