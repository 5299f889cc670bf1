//! Taking a directory of the host into the store.
//!
//! The directory is open; nothing here knows its path but for showing it. It is walked by a few
//! threads, which stat every entry and compare it with the index of the last import of the same
//! directory and selection. What is the same is not read, what is new is read, hashed and written
//! at once. Nothing changed: the very snapshot of the last import. Something changed: one more layer
//! on top of it, with the changed files and with whiteouts for what is gone, unless too much of the
//! older layers is hidden by then: then all become one.
//!
//! Everything belongs to user and group 0. Times are the host's, with one exception: a file that was
//! touched and is otherwise the same keeps the time of the last import, because times are no part
//! of what a tree is. Extended attributes stay behind: access lists and labels are the host's.

mod contents;
mod error;
mod host;
mod identity;
mod index;
mod inflow;
mod layer;
mod list;
mod node;
mod pool;
mod walk;

pub use error::{IntakeError, Problem as IntakeProblem};
pub use inflow::{Inflow, InflowFile};

use crate::draft::failed;
use crate::needs::Needs;
use crate::{BlobId, Error, Remembered, Snapshot, Store};
use host::Seen;
use index::{Blocks, Head, Index};
use layer::Layer;
use node::{Finished, Node};
use pool::Pool;
use protocol::Digest;
use rustix::io::Errno;
use selection::{Ignores, Selection};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use walk::{Found, Walk, lock, unreadable};

/// Part of the key of an index: raised when an older index must not be used.
const VERSION: u64 = 1;
/// Threads of one import a core, because some wait for the disk, and at most.
const THREADS_PER_CORE: usize = 2;
const MOST_THREADS: usize = 8;
/// Hidden entries and bytes that are not worth a merge.
const FEW_ENTRIES: u64 = 1_000;
const FEW_BYTES: u64 = 64 << 20;
/// Bytes of unused blocks that are not worth a new index.
const FEW_BLOCKS: u64 = 256 << 10;

/// A directory of the host and what of it is wanted.
#[derive(Debug)]
pub struct HostDirectory {
    /// The directory, open for reading.
    pub directory: OwnedFd,
    /// Its absolute path, which names the index.
    pub path: String,
    /// Patterns of what to take; empty takes all.
    pub include: Vec<String>,
    /// Patterns of what to leave out; these win.
    pub exclude: Vec<String>,
    /// Set when `.gitignore` files apply: those above the directory, the farthest first, each with
    /// the path from its own directory down to this one.
    pub ignores: Option<Vec<(String, String)>>,
}

/// What came of taking a directory in.
#[derive(Clone, Debug)]
pub struct TakenIn {
    /// The tree.
    pub snapshot: Snapshot,
    /// Its digest, the same that `Store::tree_digest` gives.
    pub digest: Digest,
    /// Whether it is the tree of the last import.
    pub unchanged: bool,
}

/// Who waits for an import. Called from several threads.
pub trait IntakeWatch: Sync {
    /// So many more entries were looked at.
    fn saw(&self, entries: u64);
    /// A file of so many bytes was read.
    fn read(&self, bytes: u64);
    /// Whether nobody waits any more.
    fn is_cancelled(&self) -> bool;
}

impl Store {
    /// Takes a directory of the host in.
    pub fn take_in(
        &self,
        source: &HostDirectory,
        watch: &dyn IntakeWatch,
    ) -> Result<TakenIn, IntakeError> {
        let key = source.key();
        let index = self.last_index(&key).unwrap_or_else(Index::empty);
        // Before the first look at the host.
        let trusted_before = host::trusted_before(&source.directory);
        let seen = host::look_at(&source.directory).map_err(|errno| unreadable(b"", errno))?;
        let found = self.walk(source, seen, &index, watch)?;
        Next { store: self, key, source, index, trusted_before, mode: seen.mode }.finish(found)
    }

    /// The index of the last import and its snapshot, pinned; none if one of the two is gone.
    fn last_index(&self, key: &Digest) -> Option<Index> {
        let blob = BlobId::from_bytes(self.action(key)?.try_into().ok()?);
        let _pin = self.pin_blob(&blob)?;
        let mut bytes = vec![];
        self.open_blob(&blob).ok()?.read_to_end(&mut bytes).ok()?;
        let mut index = Index::read(bytes)?;
        index.head.snapshot = self.pin(&index.head.snapshot)?;
        Some(index)
    }

    fn walk(
        &self,
        source: &HostDirectory,
        seen: Seen,
        index: &Index,
        watch: &dyn IntakeWatch,
    ) -> Result<Found, IntakeError> {
        let state = &self.0.state;
        let own = host::look_at(state.fd()).map_err(|errno| failed("read", b"", errno))?;
        let selection = Selection::new(&source.include, &source.exclude).map_err(Error::from)?;
        let matched = selection.root();
        let above = source.ignores.iter().flatten();
        let ignores = above
            .fold(Ignores::default(), |ignores, (below, text)| ignores.with_above(below, text));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let walk = Walk {
            root: &source.directory,
            selection,
            gitignore: source.ignores.is_some(),
            index,
            state,
            own: (own.device, own.stamp.inode),
            watch,
            pool: Pool::new((cores * THREADS_PER_CORE).min(MOST_THREADS)),
            found: Found::default(),
        };
        walk.run(Node {
            path: vec![],
            parent: None,
            seen,
            wanted: true,
            matched,
            ignores,
            old: index.head.digest.map(|_| (index.head.root, index.head.mode)),
            pending: AtomicUsize::new(1),
            made: AtomicBool::new(false),
            entries: Mutex::default(),
        });
        match walk.found.take_failure() {
            Some(error) => Err(error),
            None => Ok(walk.found),
        }
    }
}

impl HostDirectory {
    /// What names the index.
    fn key(&self) -> Digest {
        let mut key = Digest::builder("import");
        key.number(VERSION).text(&self.path).number(self.ignores.is_some().into());
        for list in [&self.include, &self.exclude] {
            key.number(list.len() as u64);
            list.iter().for_each(|pattern| {
                key.text(pattern);
            });
        }
        key.finish()
    }
}

/// What is stored of an import that found something new.
struct Next<'a> {
    store: &'a Store,
    key: Digest,
    source: &'a HostDirectory,
    /// The index of the last import.
    index: Index,
    trusted_before: i64,
    /// Permission bits of the root.
    mode: u32,
}

impl Next<'_> {
    fn finish(self, mut found: Found) -> Result<TakenIn, IntakeError> {
        let gone = || unreadable(b"", Errno::NOENT);
        let root = match lock(&found.root).take() {
            Some(Finished::Same(root) | Finished::New(root)) => root,
            Some(Finished::Absent) | None => return Err(gone()),
        };
        let Head { snapshot, digest, .. } = self.index.head.clone();
        let layer = found.take_layer();
        let new = std::mem::take(found.blocks.get_mut().unwrap_or_else(|all| all.into_inner()));
        if let Some(digest) = digest
            && layer.is_none()
            && new.is_empty()
            && *found.doubtful.get_mut() == 0
        {
            return Ok(TakenIn { snapshot, digest, unchanged: true });
        }
        let blocks = self.index.with(&new);
        let mut head = Head {
            trusted_before: self.trusted_before,
            mode: self.mode,
            root,
            entries: *found.entries.get_mut(),
            size: *found.size.get_mut(),
            used: *found.used.get_mut(),
            ..self.index.head.clone()
        };
        let unchanged = match layer {
            None => true,
            Some(layer) => {
                let written = *found.written_size.get_mut();
                let now = identity::of_tree(&head, blocks).ok_or_else(gone)?;
                self.add_layer(&mut head, layer, (now, written))?
            }
        };
        let taken = TakenIn {
            snapshot: head.snapshot.clone(),
            digest: head.digest.ok_or_else(gone)?,
            unchanged,
        };
        self.remember(head, blocks, unchanged)?;
        Ok(taken)
    }

    /// Puts the layer on the last snapshot, unless the tree is the same without it; says whether it
    /// is.
    fn add_layer(
        &self,
        head: &mut Head,
        layer: Layer,
        (digest, written): (Digest, u64),
    ) -> Result<bool, IntakeError> {
        if head.digest == Some(digest) {
            return Ok(true);
        }
        let inner = &self.store.0;
        let (layer, entries) = layer.finish()?;
        head.digest = Some(digest);
        head.stored += entries;
        head.stored_size += written;
        head.snapshot = inner.commit(&head.snapshot, layer, Some(entries));
        if head.is_mostly_hidden() {
            let whole = inner.merge(head.snapshot.layers(), 1)?;
            head.snapshot = Snapshot::empty().push(whole);
            (head.stored, head.stored_size) = (head.entries, head.size);
        }
        crate::digest::remember(inner, &head.snapshot, digest);
        Ok(false)
    }

    /// Stores the index for the next import. Of a tree that is what it was, one is stored already.
    fn remember(
        &self,
        mut head: Head,
        blocks: Blocks<'_>,
        unchanged: bool,
    ) -> Result<(), IntakeError> {
        let few = head.used * 2 + FEW_BLOCKS;
        let compact = match blocks.len() as u64 > few {
            true => blocks.compacted(&mut head),
            false => None,
        };
        let blocks = match &compact {
            Some(compact) => Blocks { old: compact, new: &[] },
            None => blocks,
        };
        let mut blob = self.store.blob_writer()?;
        let written = blocks.write(&head, &mut blob);
        written.map_err(Error::io("write the index of", &self.source.path))?;
        let blob = blob.finish()?;
        let needs = Needs::new().snapshot(&head.snapshot).blob(&blob).encode();
        let label = format!("import {}", self.source.path);
        let value = blob.as_bytes().to_vec();
        let remembered = Remembered { value, kind: "import", label, needs };
        match unchanged {
            true => self.store.put_shortcut(self.key, remembered),
            false => self.store.put_action(self.key, remembered),
        }
        Ok(())
    }
}

impl Head {
    /// Whether more of the layers is hidden by newer ones than is seen.
    fn is_mostly_hidden(&self) -> bool {
        self.snapshot.layers().len() > 1
            && (self.stored > self.entries * 2 + FEW_ENTRIES
                || self.stored_size > self.size * 2 + FEW_BYTES)
    }
}
