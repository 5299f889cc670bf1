//! The work of a merge, path by path.

use super::base::Base;
use super::entry::Entry;
use super::{ChangesetMergeConflict as Policy, Input};
use crate::changeset::changes::{Change, Done};
use patch::{Labels, Merged};
use protocol::Error;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use store::{Editor, Meta, Snapshot, Store, View};

/// What stands at the marks of a conflict.
const LABELS: Labels<'static> = Labels { ours: "ours", theirs: "theirs" };
/// Most paths that one message names.
const MOST_SHOWN: usize = 100;

/// Refuses changesets of which two change a path in different ways.
pub(super) fn refuse_common_files(inputs: &[Input], store: &Store) -> Result<(), Error> {
    let views: Vec<View> = inputs.iter().map(|input| store.view(&input.after)).collect();
    let mut changed: BTreeMap<&[u8], Vec<usize>> = BTreeMap::new();
    for (index, input) in inputs.iter().enumerate() {
        for change in input.changes.iter() {
            changed.entry(&change.path).or_default().push(index);
        }
    }
    let mut conflicts = BTreeSet::new();
    for (path, by) in &changed {
        let Some((first, others)) = by.split_first() else { continue };
        for other in others {
            if !Entry::of(&views[*first], path)?.is(&Entry::of(&views[*other], path)?) {
                conflicts.insert(path.to_vec());
            }
        }
        // What one puts in a directory, another may have made something else.
        for (above, by_above) in ancestors(path).filter_map(|above| changed.get_key_value(above)) {
            let came = by.iter().any(|index| inputs[*index].has(path, true));
            let blocked = |index: &usize| !by.contains(index) && inputs[*index].has(above, false);
            if came && by_above.iter().any(blocked) {
                conflicts.insert(above.to_vec());
            }
        }
    }
    refuse(conflicts, Policy::FailEarly)
}

impl Input {
    /// Whether the changes put something at a path; with `anything` unset, something that is no
    /// directory.
    fn has(&self, path: &[u8], anything: bool) -> bool {
        let found = self.changes.binary_search_by(|change| change.path.as_slice().cmp(path));
        let after = found.ok().and_then(|index| self.changes[index].after);
        after.is_some_and(|after| anything || !after.is_directory())
    }
}

fn ancestors(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    ends.map(|end| &path[..end])
}

/// Does all changes to the base.
pub(super) fn merge(
    inputs: &[Input],
    base: &Base,
    policy: Policy,
    store: &Store,
    goes_on: &dyn Fn() -> bool,
) -> Result<Snapshot, Error> {
    let ours = &inputs[0];
    let mut editor = match base.snapshot == ours.before {
        true => store.edit(&ours.after)?,
        false => {
            let mut editor = store.edit(&base.snapshot)?;
            Done::of(&ours.changes).apply(&mut editor, b"", &store.view(&ours.after))?;
            editor
        }
    };
    let mut touched: HashSet<Vec<u8>> = ours.changes.iter().map(|one| one.path.clone()).collect();
    let mut conflicts = BTreeSet::new();
    for (theirs, elsewhere) in inputs.iter().zip(&base.others).skip(1) {
        let mut merging = Merging {
            editor: &mut editor,
            before: store.view(&theirs.before),
            after: store.view(&theirs.after),
            touched: &touched,
            elsewhere,
            policy,
            conflicts: &mut conflicts,
        };
        merging.run(&theirs.changes, goes_on)?;
        touched.extend(theirs.changes.iter().map(|one| one.path.clone()));
    }
    refuse(conflicts, policy)?;
    Ok(editor.commit()?)
}

fn refuse(conflicts: BTreeSet<Vec<u8>>, policy: Policy) -> Result<(), Error> {
    if conflicts.is_empty() {
        return Ok(());
    }
    let more = conflicts.len().saturating_sub(MOST_SHOWN);
    let shown = conflicts.iter().take(MOST_SHOWN);
    let shown: Vec<String> =
        shown.map(|path| format!("`{}`", String::from_utf8_lossy(path))).collect();
    let mut message = format!("the changesets conflict at {}", shown.join(", "));
    if more > 0 {
        message.push_str(&format!(" and {more} more"));
    }
    let hint = match policy {
        Policy::FailEarly => "`onConflict: FAIL` merges changes of different lines",
        Policy::LeaveConflictMarkers => {
            "these hold no lines that marks could stand between: `onConflict: PREFER_OURS` or \
             `PREFER_THEIRS` takes one side"
        }
        _ => {
            "`onConflict` says what becomes of them: `LEAVE_CONFLICT_MARKERS`, `PREFER_OURS` or \
             `PREFER_THEIRS`"
        }
    };
    Err(Error::user(message).with_hint(hint))
}

/// Brings the changes of one changeset into a tree that has others.
struct Merging<'a> {
    editor: &'a mut Editor,
    before: View,
    after: View,
    /// What was changed before.
    touched: &'a HashSet<Vec<u8>>,
    /// Where the tree was something else to begin with.
    elsewhere: &'a HashSet<Vec<u8>>,
    policy: Policy,
    conflicts: &'a mut BTreeSet<Vec<u8>>,
}

impl Merging<'_> {
    fn run(&mut self, changes: &[Change], goes_on: &dyn Fn() -> bool) -> Result<(), Error> {
        let is_directory = |change: &Change| change.before.is_some_and(|one| one.is_directory());
        // What goes makes room for what comes, and a directory goes after what was in it.
        for change in changes.iter().rev().filter(|change| change.after.is_none()) {
            match is_directory(change) {
                true => self.editor.remove_empty_directory(&change.path)?,
                false => self.entry(change)?,
            }
        }
        for change in changes.iter().filter(|change| change.after.is_some()) {
            if !goes_on() {
                return Err(Error::environment("nobody waits for the merge any more"));
            }
            if is_directory(change) {
                self.editor.remove_empty_directory(&change.path)?;
            }
            self.entry(change)?;
        }
        Ok(())
    }

    fn entry(&mut self, change: &Change) -> Result<(), Error> {
        let path = change.path.as_slice();
        let was_directory = change.before.is_some_and(|one| one.is_directory());
        let is_file = change.after.is_some_and(|one| !one.is_directory());
        let left = |there: &Entry| was_directory && is_file && there.is_directory();
        let blocked = change.after.is_some() && self.editor.is_blocked(path)?;
        let is_same = |set: &HashSet<Vec<u8>>| !set.contains(path);
        if is_same(self.touched) && is_same(self.elsewhere) && !blocked && !was_directory {
            return self.take_theirs(change);
        }
        let ours = Entry::now(self.editor, path)?;
        let base = Entry::of(&self.before, path)?;
        let theirs = Entry::of(&self.after, path)?;
        if ours.is(&theirs) && !blocked {
            return Ok(());
        }
        if (ours.is(&base) || was_directory && ours.is_missing()) && !blocked && !left(&ours) {
            return self.take_theirs(change);
        }
        let texts = || ours.is_text() && theirs.is_text() && (base.is_text() || base.is_missing());
        // One made it executable and the other wrote to it: whatever it holds, that is no conflict.
        let apart = || {
            let files = [&base, &ours, &theirs].iter().all(|entry| entry.is_file());
            files && (base.contents == ours.contents || base.contents == theirs.contents)
        };
        if !blocked && (texts() || apart()) {
            return self.files(change, &base, &ours, &theirs);
        }
        if blocked && self.policy == Policy::LeaveConflictMarkers {
            self.conflicts.insert(path.to_vec());
            return Ok(());
        }
        self.conflict(change, &ours, &theirs)
    }

    fn files(
        &mut self,
        change: &Change,
        base: &Entry,
        ours: &Entry,
        theirs: &Entry,
    ) -> Result<(), Error> {
        let merged = match (ours.contents == base.contents, theirs.contents == base.contents) {
            (true, _) => Merged::Clean(theirs.contents.clone()),
            (_, true) => Merged::Clean(ours.contents.clone()),
            _ => patch::merge(&base.contents, &ours.contents, &theirs.contents, &LABELS),
        };
        let contents = match merged {
            Merged::Clean(contents) => contents,
            Merged::Conflicts(contents) if self.policy == Policy::LeaveConflictMarkers => contents,
            Merged::Conflicts(_) => return self.conflict(change, ours, theirs),
        };
        let Some(metadata) = &ours.metadata else { return Ok(()) };
        let changed = ours.is_executable() != base.is_executable();
        let executable = if changed { ours.is_executable() } else { theirs.is_executable() };
        let mode = match executable {
            true => metadata.mode | (metadata.mode & 0o444) >> 2,
            false => metadata.mode & !0o111,
        };
        let meta = Meta { mode, ..Editor::new_meta(mode, metadata.owner()) };
        Ok(self.editor.put_file(&change.path, &contents, &meta)?)
    }

    fn conflict(&mut self, change: &Change, ours: &Entry, theirs: &Entry) -> Result<(), Error> {
        match self.policy {
            Policy::PreferOurs => Ok(()),
            Policy::PreferTheirs => self.take_theirs(change),
            // What one side removed and the other changed is kept.
            Policy::LeaveConflictMarkers if theirs.is_missing() => Ok(()),
            Policy::LeaveConflictMarkers if ours.is_missing() => self.take_theirs(change),
            _ => {
                self.conflicts.insert(change.path.clone());
                Ok(())
            }
        }
    }

    fn take_theirs(&mut self, change: &Change) -> Result<(), Error> {
        let path = change.path.as_slice();
        match change.after {
            Some(_) => self.editor.bring(&self.after, b"", [path])?,
            None => self.editor.remove_entry(path)?,
        }
        Ok(())
    }
}
