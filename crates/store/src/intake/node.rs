//! [`Node`]: a directory of the host on its way into the store.

use super::contents::Old;
use super::host::Seen;
use super::index::{BLOCK_HEAD, Index, Row, What, begin_block};
use crate::metadata::{Kind, Meta};
use protocol::Digest;
use selection::{Ignores, Matched};
use std::cmp::Ordering;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex};

/// A directory. It is finished when all its files and all directories in it are.
pub(super) struct Node {
    /// Path from the root of the walk.
    pub(super) path: Vec<u8>,
    /// The directory it is in, and which entry of it.
    pub(super) parent: Option<(Arc<Node>, usize)>,
    pub(super) seen: Seen,
    /// Whether it is in the tree even if nothing below it is.
    pub(super) wanted: bool,
    pub(super) matched: Matched,
    pub(super) ignores: Ignores,
    /// The block that an older import has for it, and its mode there.
    pub(super) old: Option<(u64, u32)>,
    /// How much of it is not finished: itself being listed, runs of files, directories.
    pub(super) pending: AtomicUsize,
    /// Whether the layer has it.
    pub(super) made: AtomicBool,
    pub(super) entries: Mutex<Entries>,
}

/// What is in a directory.
#[derive(Default)]
pub(super) struct Entries {
    /// All names, one after the other.
    names: Vec<u8>,
    pub(super) items: Vec<Item>,
    /// Names that an older import has and this one has not.
    pub(super) removed: Vec<Vec<u8>>,
    /// Whether the older import saw the directory on another device.
    moved: bool,
}

/// One entry that is wanted.
#[derive(Clone, Copy)]
pub(super) struct Item {
    start: u32,
    length: u8,
    /// Whether an older import has something of this name.
    pub(super) had: bool,
    pub(super) seen: Seen,
    pub(super) state: State,
}

/// How far an entry is.
#[derive(Clone, Copy)]
pub(super) enum State {
    /// A file or a link that must be read.
    Unread(Option<Old>),
    /// A file or a link; `same` if the older import's row says all of it.
    Leaf { digest: Digest, same: bool },
    /// A directory: what the older import has, and once it is finished the place of its block.
    Directory { old: Option<(u64, u32)>, place: Option<u64>, same: bool },
    /// It is not in the tree.
    Gone,
}

/// What a finished directory is to the one it is in.
pub(super) enum Finished {
    /// Nothing in it is in the tree, so it is not either.
    Absent,
    /// As the older import has it, block and all.
    Same(u64),
    /// It has a new block.
    New(u64),
}

impl Node {
    pub(super) fn meta(&self) -> Meta {
        Meta { mode: self.seen.mode, uid: 0, gid: 0, mtime: self.seen.mtime() }
    }
}

impl Item {
    /// The same entry, further on.
    pub(super) fn turned(self, seen: Seen, state: State) -> Self {
        Self { seen, state, ..self }
    }

    /// Notes what became of a directory.
    pub(super) fn settle(&mut self, finished: &Finished) {
        let State::Directory { old, .. } = self.state else { return };
        let same_mode = old.is_some_and(|(_, mode)| mode == self.seen.mode);
        self.state = match *finished {
            Finished::Absent => State::Gone,
            Finished::Same(place) => State::Directory { old, place: Some(place), same: same_mode },
            Finished::New(place) => State::Directory { old, place: Some(place), same: false },
        };
    }
}

impl Entries {
    pub(super) fn add(&mut self, name: &[u8], seen: Seen) {
        let start = self.names.len() as u32;
        self.names.extend_from_slice(name);
        let state = match seen.kind {
            Kind::Directory => State::Directory { old: None, place: None, same: false },
            _ => State::Unread(None),
        };
        self.items.push(Item { start, length: name.len() as u8, had: false, seen, state });
    }

    pub(super) fn name(&self, item: &Item) -> &[u8] {
        &self.names[item.start as usize..][..item.length.into()]
    }

    pub(super) fn sort(&mut self) {
        let names = &self.names;
        let name = |item: &Item| &names[item.start as usize..][..usize::from(item.length)];
        self.items.sort_unstable_by(|one, other| name(one).cmp(name(other)));
    }

    /// Compares with what an older import has, and says how many entries look the same but may have
    /// changed after they were read.
    pub(super) fn compare(&mut self, index: &Index, place: u64, device: u64) -> usize {
        let Some((old_device, rows)) = index.block(place) else { return 0 };
        self.moved = device != old_device;
        let mut doubtful = 0;
        let mut at = 0;
        'rows: for row in rows {
            while let Some(item) = self.items.get(at) {
                match self.name(item).cmp(row.name) {
                    Ordering::Less => at += 1,
                    Ordering::Equal => {
                        let seen = self.items[at].seen;
                        let known = !self.moved && seen.device == device;
                        let trusted = known && index.trusts(&seen.stamp);
                        self.items[at].had = true;
                        self.items[at].state = state(&seen, &row, trusted, &mut doubtful);
                        at += 1;
                        continue 'rows;
                    }
                    Ordering::Greater => break,
                }
            }
            self.removed.push(row.name.to_vec());
        }
        doubtful
    }

    /// Leaves out what is not in the tree. What the older import had of it counts as removed.
    pub(super) fn drop_gone(&mut self) {
        let is_gone = |item: &Item| matches!(item.state, State::Gone);
        let gone = self.items.iter().filter(|item| is_gone(item) && item.had);
        let removed: Vec<Vec<u8>> = gone.map(|item| self.name(item).to_vec()).collect();
        self.removed.extend(removed);
        self.items.retain(|item| !is_gone(item));
    }

    /// Whether all is as the older import has it.
    pub(super) fn is_same(&self) -> bool {
        let same = |item: &Item| match item.state {
            State::Leaf { same, .. } | State::Directory { same, .. } => item.had && same,
            State::Unread(_) | State::Gone => false,
        };
        !self.moved && self.removed.is_empty() && self.items.iter().all(same)
    }

    /// Bytes that the block takes.
    pub(super) fn length(&self) -> usize {
        BLOCK_HEAD + self.rows().map(|row| row.length()).sum::<usize>()
    }

    /// Adds the block of the directory.
    pub(super) fn write(&self, device: u64, bytes: &mut Vec<u8>) {
        begin_block(bytes, device, self.rows().count() as u32);
        self.rows().for_each(|row| row.write(bytes));
    }

    fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.items.iter().filter_map(|item| {
            let what = match item.state {
                State::Leaf { digest, .. } => What::Leaf(item.seen.stamp, digest),
                State::Directory { place, .. } => What::Directory(place?),
                State::Unread(_) | State::Gone => return None,
            };
            let Seen { kind, mode, .. } = item.seen;
            Some(Row { name: self.name(item), kind, mode, what })
        })
    }
}

/// What is known of an entry from the row of the same name.
fn state(seen: &Seen, row: &Row<'_>, trusted: bool, doubtful: &mut usize) -> State {
    match (row.what, seen.kind) {
        (What::Directory(place), Kind::Directory) => {
            State::Directory { old: Some((place, row.mode)), place: None, same: false }
        }
        (_, Kind::Directory) => State::Directory { old: None, place: None, same: false },
        (What::Directory(_), _) => State::Unread(None),
        (What::Leaf(stamp, digest), kind) => {
            let same = (row.kind, row.mode, stamp) == (kind, seen.mode, seen.stamp);
            if same && trusted {
                return State::Leaf { digest, same: true };
            }
            *doubtful += usize::from(same);
            State::Unread(Some(Old { kind: row.kind, mode: row.mode, stamp, digest }))
        }
    }
}
