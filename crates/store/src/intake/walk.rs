//! The walk: directories are listed and compared with the index, what is new is taken, and each
//! directory is finished when all below it is.

use super::contents::{PIECE, Taken, Target, Wanted};
use super::error::{IntakeError, Problem};
use super::host::{self, Seen};
use super::index::Index;
use super::layer::Layer;
use super::node::{Entries, Finished, Item, Node, State};
use super::pool::Pool;
use super::{IntakeWatch, list};
use crate::metadata::Kind;
use crate::state::StateDir;
use crate::view::join;
use protocol::Digest;
use rustix::io::Errno;
use selection::Selection;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Files that one job takes; a directory with more is shared among threads.
const RUN: usize = 128;

/// A part of the walk.
pub(super) enum Job {
    /// Lists a directory.
    Directory(Arc<Node>),
    /// Takes these entries of a directory.
    Files(Arc<Node>, Vec<usize>),
}

/// A walk and what it has found so far.
pub(super) struct Walk<'a> {
    pub(super) root: &'a OwnedFd,
    pub(super) selection: Selection,
    /// Whether `.gitignore` files in the tree apply.
    pub(super) gitignore: bool,
    pub(super) index: &'a Index,
    pub(super) state: &'a Arc<StateDir>,
    /// Device and inode of the state folder.
    pub(super) own: (u64, u64),
    pub(super) watch: &'a dyn IntakeWatch,
    pub(super) pool: Pool<Job>,
    pub(super) found: Found,
}

/// What a walk has found and made so far.
#[derive(Default)]
pub(super) struct Found {
    layer: OnceLock<Layer>,
    layer_begun: Mutex<()>,
    /// Blocks that come after those of the index.
    pub(super) blocks: Mutex<Vec<u8>>,
    /// Files with several names, by device and inode.
    links: Mutex<HashMap<(u64, u64), Slot>>,
    pub(super) root: Mutex<Option<Finished>>,
    failure: Mutex<Option<IntakeError>>,
    failed: AtomicBool,
    pub(super) entries: AtomicU64,
    pub(super) size: AtomicU64,
    pub(super) used: AtomicU64,
    pub(super) written_size: AtomicU64,
    /// Entries that look the same as in the index and had to be read again.
    pub(super) doubtful: AtomicUsize,
}

/// Where the threads that meet names of one file find what the first of them has done.
type Slot = Arc<Mutex<Option<First>>>;

/// The first name of a file that has several.
struct First {
    path: Vec<u8>,
    seen: Seen,
    digest: Digest,
}

impl Found {
    /// The layer, if anything was written.
    pub(super) fn take_layer(&mut self) -> Option<Layer> {
        self.layer.take()
    }

    /// What went wrong first.
    pub(super) fn take_failure(&self) -> Option<IntakeError> {
        lock(&self.failure).take()
    }
}

impl Walk<'_> {
    /// Walks everything below the root.
    pub(super) fn run(&self, root: Node) {
        self.pool.run(Job::Directory(Arc::new(root)), &|| {
            let mut room = vec![0; PIECE + 1];
            move |job| {
                let done = match job {
                    Job::Directory(node) => self.directory(&node, &mut room),
                    Job::Files(node, run) => self.files(&node, &run, &mut room),
                };
                if let Err(error) = done {
                    self.fail(error);
                }
            }
        });
    }

    fn fail(&self, error: IntakeError) {
        lock(&self.found.failure).get_or_insert(error);
        self.found.failed.store(true, Ordering::Relaxed);
        self.pool.stop();
    }

    fn check_cancelled(&self) -> Result<(), IntakeError> {
        match self.watch.is_cancelled() {
            true => Err(IntakeError::Cancelled),
            false => Ok(()),
        }
    }

    fn directory(&self, node: &Arc<Node>, room: &mut [u8]) -> Result<(), IntakeError> {
        self.check_cancelled()?;
        let source = match host::open_directory(self.root, &node.path) {
            Ok(source) => source,
            // As if it had never been there.
            Err(errno) if is_gone(errno) && node.parent.is_some() => {
                return self.finish(node.clone(), Some(Finished::Absent));
            }
            Err(errno) => return Err(unreadable(&node.path, errno)),
        };
        let mut listed = list::list(self, node, &source)?;
        if let Some((place, _)) = node.old {
            let doubtful = listed.entries.compare(self.index, place, node.seen.device);
            self.found.doubtful.fetch_add(doubtful, Ordering::Relaxed);
        }
        let unread = unread(&listed.entries);
        let below = list::below(node, &listed);
        self.watch.saw(listed.entries.items.len() as u64);
        *lock(&node.entries) = listed.entries;
        let (mine, others) = unread.split_at(unread.len().min(RUN));
        let runs: Vec<Job> =
            others.chunks(RUN).map(|run| Job::Files(node.clone(), run.to_vec())).collect();
        node.pending.fetch_add(below.len() + runs.len(), Ordering::AcqRel);
        self.pool.add(runs.into_iter().chain(below.into_iter().map(Job::Directory)));
        self.take(node, &source, mine, room)?;
        self.finish(node.clone(), None)
    }

    fn files(&self, node: &Arc<Node>, run: &[usize], room: &mut [u8]) -> Result<(), IntakeError> {
        self.check_cancelled()?;
        match host::open_directory(self.root, &node.path) {
            Ok(source) => self.take(node, &source, run, room)?,
            Err(errno) if is_gone(errno) => {
                let mut entries = lock(&node.entries);
                for place in run {
                    let item = entries.items[*place];
                    entries.items[*place] = item.turned(item.seen, State::Gone);
                }
            }
            Err(errno) => return Err(unreadable(&node.path, errno)),
        }
        self.finish(node.clone(), None)
    }

    /// Takes some entries of a directory.
    fn take(
        &self,
        node: &Arc<Node>,
        source: &OwnedFd,
        run: &[usize],
        room: &mut [u8],
    ) -> Result<(), IntakeError> {
        if run.is_empty() {
            return Ok(());
        }
        let wanted: Vec<(Item, Vec<u8>)> = {
            let entries = lock(&node.entries);
            let wanted = run.iter().map(|place| entries.items[*place]);
            wanted.map(|item| (item, entries.name(&item).to_vec())).collect()
        };
        let target = InLayer { walk: self, node, open: OnceLock::new() };
        let mut taken = Vec::with_capacity(run.len());
        for (item, name) in &wanted {
            if self.found.failed.load(Ordering::Relaxed) {
                return Ok(());
            }
            taken.push(self.one(item, name, source, &target, room)?);
        }
        let mut entries = lock(&node.entries);
        for (place, taken) in run.iter().zip(taken) {
            entries.items[*place] = taken;
        }
        Ok(())
    }

    fn one(
        &self,
        item: &Item,
        name: &[u8],
        source: &OwnedFd,
        target: &InLayer<'_>,
        room: &mut [u8],
    ) -> Result<Item, IntakeError> {
        let State::Unread(old) = item.state else { return Ok(*item) };
        let directory = &target.node.path;
        let wanted = Wanted { source, directory, name, seen: item.seen, old };
        let taken = match item.seen.kind == Kind::File && item.seen.links > 1 {
            true => self.one_of_several(wanted, target, room)?,
            false => wanted.take(target, room)?,
        };
        let Taken::Here { seen, digest, written } = taken else {
            return Ok(item.turned(item.seen, State::Gone));
        };
        if written {
            self.found.written_size.fetch_add(seen.stamp.size, Ordering::Relaxed);
        }
        self.watch.read(seen.stamp.size);
        // It was read only because it was in doubt.
        let same = !written && old.is_some_and(|old| old.stamp == seen.stamp);
        Ok(item.turned(seen, State::Leaf { digest, same }))
    }

    /// Takes one name of a file that has several: the first is written, the others are linked to it.
    fn one_of_several(
        &self,
        wanted: Wanted<'_>,
        target: &InLayer<'_>,
        room: &mut [u8],
    ) -> Result<Taken, IntakeError> {
        let key = (wanted.seen.device, wanted.seen.stamp.inode);
        let slot = lock(&self.found.links).entry(key).or_default().clone();
        let mut first = lock(&slot);
        if let Some(first) = first.as_ref().filter(|first| first.seen.stamp == wanted.seen.stamp) {
            let (layer, directory) = target.place()?;
            if layer.link(&first.path, directory, wanted.name)? {
                return Ok(Taken::Here { seen: first.seen, digest: first.digest, written: true });
            }
        }
        let path = join(wanted.directory, wanted.name);
        let taken = wanted.take(target, room)?;
        if let Taken::Here { seen, digest, .. } = &taken {
            *first = Some(First { path, seen: *seen, digest: *digest });
        }
        Ok(taken)
    }

    /// One part of a directory is done. When it was the last the directory is finished, and that is
    /// one part of the directory above it.
    fn finish(&self, node: Arc<Node>, absent: Option<Finished>) -> Result<(), IntakeError> {
        let (mut node, mut finished) = (node, absent);
        loop {
            if node.pending.fetch_sub(1, Ordering::AcqRel) > 1 {
                return Ok(());
            }
            let done = match finished.take() {
                Some(absent) => absent,
                None => self.finished(&node)?,
            };
            let Some((parent, place)) = &node.parent else {
                *lock(&self.found.root) = Some(done);
                return Ok(());
            };
            lock(&parent.entries).items[*place].settle(&done);
            node = parent.clone();
        }
    }

    /// Finishes a directory in the layer and in the index.
    fn finished(&self, node: &Arc<Node>) -> Result<Finished, IntakeError> {
        let mut entries = std::mem::take(&mut *lock(&node.entries));
        entries.drop_gone();
        if entries.items.is_empty() && !node.wanted {
            // A file in it was begun and then vanished.
            if node.made.load(Ordering::Acquire) {
                self.layer()?.remove_directory(&node.path)?;
            }
            return Ok(Finished::Absent);
        }
        let is_other = node.old.is_none_or(|(_, mode)| mode != node.seen.mode);
        if is_other || !entries.removed.is_empty() {
            self.make(node)?;
        }
        if node.made.load(Ordering::Acquire) {
            let layer = self.layer()?;
            if !entries.removed.is_empty() {
                layer.hide(&node.path, &entries.removed)?;
            }
            layer.finish_directory(&node.path, &node.meta())?;
        }
        self.count(&entries);
        if let Some((place, _)) = node.old.filter(|_| entries.is_same()) {
            return Ok(Finished::Same(place));
        }
        let mut blocks = lock(&self.found.blocks);
        let place = (self.index.end() + blocks.len()) as u64;
        entries.write(node.seen.device, &mut blocks);
        Ok(Finished::New(place))
    }

    fn count(&self, entries: &Entries) {
        let files = entries.items.iter().filter(|item| item.seen.kind == Kind::File);
        let size = files.map(|item| item.seen.stamp.size).sum::<u64>();
        self.found.size.fetch_add(size, Ordering::Relaxed);
        self.found.entries.fetch_add(entries.items.len() as u64, Ordering::Relaxed);
        self.found.used.fetch_add(entries.length() as u64, Ordering::Relaxed);
    }

    /// Makes the directory in the layer, and those it is in.
    fn make(&self, node: &Arc<Node>) -> Result<(), IntakeError> {
        let layer = self.layer()?;
        let mut missing = vec![node];
        while let Some(last) = missing.last()
            && let Some((parent, _)) = &last.parent
            && !parent.made.load(Ordering::Acquire)
        {
            missing.push(parent);
        }
        for node in missing.into_iter().rev() {
            if !node.path.is_empty() {
                layer.make_directory(&node.path)?;
            }
            node.made.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// The layer, begun if nothing was written so far.
    fn layer(&self) -> Result<&Layer, IntakeError> {
        let _begun = lock(&self.found.layer_begun);
        if let Some(layer) = self.found.layer.get() {
            return Ok(layer);
        }
        let layer = Layer::new(self.state)?;
        Ok(self.found.layer.get_or_init(|| layer))
    }
}

/// The directory of the layer that a node's entries go to.
struct InLayer<'a> {
    walk: &'a Walk<'a>,
    node: &'a Arc<Node>,
    open: OnceLock<OwnedFd>,
}

impl Target for InLayer<'_> {
    fn place(&self) -> Result<(&Layer, &OwnedFd), IntakeError> {
        let layer = self.walk.layer()?;
        if let Some(open) = self.open.get() {
            return Ok((layer, open));
        }
        self.walk.make(self.node)?;
        let open = layer.open(&self.node.path)?;
        Ok((layer, self.open.get_or_init(|| open)))
    }
}

/// Places of the files and links that must be read.
fn unread(entries: &Entries) -> Vec<usize> {
    let unread = entries.items.iter().enumerate();
    unread.filter(|(_, item)| matches!(item.state, State::Unread(_))).map(|(at, _)| at).collect()
}

/// Whether a directory that was listed is not there any more, or is something else.
fn is_gone(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
}

pub(super) fn unreadable(path: &[u8], errno: Errno) -> IntakeError {
    let problem = match errno {
        Errno::NOENT => Problem::Missing,
        errno => Problem::Unreadable(errno.into()),
    };
    IntakeError::Entry { path: path.to_vec(), problem }
}

/// A panic elsewhere ends the walk, so what a lock guards is not used after one.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
