//! What changes that are brought together were made to.
//!
//! As a rule all of them began with the same directory. Where they did not, the base is the first
//! one's with all that only the others' have; where they differ, the first one's counts.

use super::Input;
use protocol::Error;
use std::collections::HashSet;
use store::{Difference, Snapshot, Store};

/// What all changes are made to.
pub(super) struct Base {
    pub(super) snapshot: Snapshot,
    /// For each changeset, paths at which the base is not as it was before those changes.
    pub(super) others: Vec<HashSet<Vec<u8>>>,
}

/// The base of some changesets.
pub(super) fn common(
    inputs: &[Input],
    store: &Store,
    goes_on: &(dyn Fn() -> bool + Sync),
) -> Result<Base, Error> {
    let mut snapshot = inputs[0].before.clone();
    for input in &inputs[1..] {
        // Nothing at all, as `changeset` is, takes what the others have.
        if snapshot.layers().is_empty() {
            snapshot = input.before.clone();
            continue;
        }
        let differences = store.compare(&snapshot, &input.before, goes_on)?;
        let missing = only_after(&differences);
        if missing.is_empty() {
            continue;
        }
        let mut editor = store.edit(&snapshot)?;
        editor.bring(&store.view(&input.before), b"", missing)?;
        snapshot = editor.commit()?;
    }
    let other = |input: &Input| -> Result<HashSet<Vec<u8>>, Error> {
        let differences = store.compare(&snapshot, &input.before, goes_on)?;
        Ok(differences.into_iter().map(|one| one.path).collect())
    };
    let others = inputs.iter().map(other).collect::<Result<_, Error>>()?;
    Ok(Base { snapshot, others })
}

/// Paths that only the second tree has, but not below something that is a directory only there.
fn only_after(differences: &[Difference]) -> Vec<&[u8]> {
    let swapped: HashSet<&[u8]> = differences
        .iter()
        .filter(|one| one.before.is_some() && one.after.is_some_and(|after| after.is_directory()))
        .filter(|one| one.before.is_some_and(|before| !before.is_directory()))
        .map(|one| one.path.as_slice())
        .collect();
    let is_below_swapped = |path: &[u8]| {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        ends.into_iter().any(|end| swapped.contains(&path[..end]))
    };
    let missing = differences.iter().filter(|one| one.before.is_none());
    missing.map(|one| one.path.as_slice()).filter(|path| !is_below_swapped(path)).collect()
}
