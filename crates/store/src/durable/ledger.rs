//! [`Durable`]: what is made and not on disk yet, and the threads that bring it there.
//!
//! ```text
//! made  ->  wanted, because a row names it  ->  synced  ->  its rows may be committed
//! ```
//!
//! What no row names is never synced: it is gone after a crash anyway. Two threads sync: one takes
//! all that is wanted and small, together; the other takes layers of many entries, so that these
//! hold nobody up. What cannot be synced is lost: its rows are dropped and whoever needs it again
//! makes it again.
//!
//! The first of them also gives back memory that nobody uses, once there was nothing to do for a while:
//! it is the one that notices.

use super::survey::Sums;
use super::sync::{self, Group, Job, Refused};
use crate::Error;
use crate::blob::BlobId;
use crate::needs::Needs;
use crate::snapshot::{LayerId, LayerRef};
use crate::sys;
use protocol::Digest;
use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long there must have been nothing to do before memory is given back.
const CALM: Duration = Duration::from_secs(1);
/// Nothing recurses in the threads.
const STACK: usize = 256 * 1024;

/// Something that rows name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Content {
    Layer(LayerId),
    Blob(BlobId),
}

/// How far what a row needs has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It is on disk.
    Safe,
    /// It will be.
    Coming,
    /// Nobody has asked for that yet.
    Later,
    /// It will never be.
    Failed,
}

/// The ledger and its threads.
pub(crate) struct Durable {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    path: PathBuf,
    root: OwnedFd,
    ledger: Mutex<Ledger>,
    /// There is something to sync, or it is time to end.
    more: Condvar,
    /// Told when something has become safe or failed.
    progress: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

#[derive(Default)]
struct Ledger {
    /// Layers that are what they shall be: made by this process, or checked by it.
    trusted: HashSet<LayerId>,
    /// Blobs whose bytes this process has written or seen whole.
    known_blobs: HashSet<BlobId>,
    /// Found missing or damaged.
    lost: HashSet<Content>,
    /// Made by this process, and not on disk for sure.
    unsynced: HashMap<Content, Arc<Sums>>,
    /// The part of it that a thread has, or will take.
    wanted: HashSet<Content>,
    small: Vec<Content>,
    large: Vec<Content>,
    failed: HashSet<Content>,
    /// Manifests of layers that have become safe, for the next commit.
    manifests: Vec<(LayerId, Digest)>,
    /// When something was made last.
    last_made: Option<Instant>,
    /// Whether something was done since memory was given back last.
    restless: bool,
    stop: bool,
}

/// Which thread it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    Small,
    Large,
}

impl Durable {
    /// Starts the threads for a state folder.
    pub(crate) fn start(path: PathBuf, root: OwnedFd) -> Result<Self, Error> {
        let (ledger, more, progress) = (Mutex::default(), Condvar::new(), OnceLock::new());
        let shared = Arc::new(Shared { path, root, ledger, more, progress });
        let mut durable = Self { shared, threads: vec![] };
        for (lane, name) in [(Lane::Small, "sync"), (Lane::Large, "sync large")] {
            let shared = Arc::clone(&durable.shared);
            let thread = std::thread::Builder::new().name(name.to_owned()).stack_size(STACK);
            let thread = thread
                .spawn(move || shared.run(lane))
                .map_err(Error::io("start a thread for", &durable.shared.path))?;
            durable.threads.push(thread);
        }
        Ok(durable)
    }

    /// Says whom to tell when something has become safe or failed. Only the first who asks is told.
    pub(crate) fn on_progress(&self, tell: impl Fn() + Send + Sync + 'static) {
        if self.shared.progress.set(Box::new(tell)).is_err() {
            tracing::warn!("two databases wait for one ledger");
        }
    }

    /// Notes a layer before it gets its name.
    pub(crate) fn made_layer(&self, id: LayerId, sums: Sums) {
        let mut ledger = self.shared.lock();
        ledger.trusted.insert(id);
        ledger.last_made = Some(Instant::now());
        ledger.unsynced.insert(Content::Layer(id), Arc::new(sums));
    }

    /// Notes a blob before it gets its name.
    pub(crate) fn made_blob(&self, id: BlobId) {
        let mut ledger = self.shared.lock();
        let content = Content::Blob(id);
        ledger.known_blobs.insert(id);
        ledger.last_made = Some(Instant::now());
        ledger.lost.remove(&content);
        ledger.failed.remove(&content);
        ledger.wanted.remove(&content);
        ledger.unsynced.insert(content, Arc::default());
    }

    /// How far everything has come that a row needs. What nobody has asked for before is brought to
    /// disk by the next [`Self::begin`], together with all else that is asked for until then.
    pub(crate) fn sync_before(&self, needs: &Needs) -> Stage {
        let layers = needs.layers.iter().map(|id| Content::Layer(*id));
        let contents = layers.chain(needs.blobs.iter().map(|id| Content::Blob(*id)));
        let mut ledger = self.shared.lock();
        let mut stage = Stage::Safe;
        for content in contents {
            if ledger.failed.contains(&content) {
                return Stage::Failed;
            }
            if ledger.unsynced.contains_key(&content) {
                stage = Stage::Coming;
                if ledger.wanted.insert(content) {
                    ledger.small.push(content);
                }
            }
        }
        stage
    }

    /// Begins to bring to disk what was asked for.
    pub(crate) fn begin(&self) {
        if !self.shared.lock().small.is_empty() {
            self.shared.more.notify_all();
        }
    }

    /// Says that much has been dropped, so that memory is given back soon.
    pub(crate) fn calm_down(&self) {
        self.shared.lock().restless = true;
        self.shared.more.notify_all();
    }

    /// How long until nothing has been made for a while.
    pub(crate) fn until_quiet(&self, quiet: Duration) -> Duration {
        let last = self.shared.lock().last_made;
        last.map_or(Duration::ZERO, |last| quiet.saturating_sub(last.elapsed()))
    }

    /// The manifests of layers that have become safe since the last call.
    pub(crate) fn take_manifests(&self) -> Vec<(LayerId, Digest)> {
        std::mem::take(&mut self.shared.lock().manifests)
    }

    /// Whether all of these are what they shall be, and none was found missing or damaged since.
    pub(crate) fn trusts_all(&self, layers: &[LayerRef]) -> bool {
        let ledger = self.shared.lock();
        let lost = |id| ledger.lost.contains(&Content::Layer(id));
        layers.iter().all(|layer| ledger.trusted.contains(&layer.id) && !lost(layer.id))
    }

    pub(crate) fn is_trusted(&self, id: LayerId) -> bool {
        self.shared.lock().trusted.contains(&id)
    }

    pub(crate) fn trust(&self, id: LayerId) {
        self.shared.lock().trusted.insert(id);
    }

    pub(crate) fn knows_blob(&self, id: BlobId) -> bool {
        self.shared.lock().known_blobs.contains(&id)
    }

    /// Whether something was found missing or damaged.
    pub(crate) fn is_lost(&self, content: Content) -> bool {
        self.shared.lock().lost.contains(&content)
    }

    /// Notes that something is missing or damaged; says whether that is new.
    pub(crate) fn lose(&self, content: Content) -> bool {
        let mut ledger = self.shared.lock();
        match content {
            Content::Layer(id) => ledger.trusted.remove(&id),
            Content::Blob(id) => ledger.known_blobs.remove(&id),
        };
        ledger.unsynced.remove(&content);
        ledger.lost.insert(content)
    }

    /// Forgets a layer that is collected.
    pub(crate) fn forget(&self, content: Content) {
        let mut ledger = self.shared.lock();
        match content {
            Content::Layer(id) => ledger.trusted.remove(&id),
            Content::Blob(id) => ledger.known_blobs.remove(&id),
        };
        ledger.unsynced.remove(&content);
    }
}

impl Drop for Durable {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.more.notify_all();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::warn!("a thread that syncs `{}` panicked", self.shared.path.display());
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, lane: Lane) {
        while let Some(jobs) = self.next(lane) {
            let mut group = Group::new(&self.path, &self.root);
            for job in jobs {
                match group.add(&job, lane) {
                    Ok(()) => {}
                    Err(Refused::Large) => self.hand_over(&job),
                    Err(Refused::Io(error)) => self.fail(&job, &error),
                }
            }
            let synced = sync::sync(group);
            synced.iter().for_each(|(job, manifest)| match manifest {
                Ok(manifest) => self.finish(job, *manifest),
                Err(error) => self.fail(job, error),
            });
            if let Some(tell) = self.progress.get() {
                tell();
            }
        }
    }

    /// Waits for something to sync; nothing when it is time to end.
    fn next(&self, lane: Lane) -> Option<Vec<Job>> {
        let mut ledger = self.lock();
        loop {
            let queue = match lane {
                Lane::Small => &mut ledger.small,
                Lane::Large => &mut ledger.large,
            };
            let contents = std::mem::take(queue);
            if !contents.is_empty() {
                ledger.restless = true;
                let unsynced = &ledger.unsynced;
                let job = |content: Content| {
                    Some(Job { content, sums: Arc::clone(unsynced.get(&content)?) })
                };
                return Some(contents.into_iter().filter_map(job).collect());
            }
            if ledger.stop {
                return None;
            }
            ledger = match lane {
                Lane::Small if ledger.restless => self.wait_for_calm(ledger),
                _ => self.more.wait(ledger).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Waits for more, and gives back memory when nothing comes.
    fn wait_for_calm<'a>(&'a self, ledger: MutexGuard<'a, Ledger>) -> MutexGuard<'a, Ledger> {
        let waited = self.more.wait_timeout(ledger, CALM);
        let (mut ledger, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if !waited.timed_out() {
            return ledger;
        }
        ledger.restless = false;
        drop(ledger);
        sys::give_back_memory();
        self.lock()
    }

    fn hand_over(&self, job: &Job) {
        self.lock().large.push(job.content);
        self.more.notify_all();
    }

    fn finish(&self, job: &Job, manifest: Option<Digest>) {
        let mut ledger = self.lock();
        // The same blob may have been written once more meanwhile: that file is not on disk yet.
        let same = |sums| Arc::ptr_eq(sums, &job.sums);
        if !ledger.unsynced.get(&job.content).is_some_and(same) {
            return;
        }
        ledger.wanted.remove(&job.content);
        ledger.unsynced.remove(&job.content);
        if let (Content::Layer(id), Some(digest)) = (job.content, manifest) {
            ledger.manifests.push((id, digest));
        }
    }

    fn fail(&self, job: &Job, error: &std::io::Error) {
        tracing::warn!("{:?} cannot be brought to disk and is given up: {error}", job.content);
        let mut ledger = self.lock();
        ledger.wanted.remove(&job.content);
        ledger.unsynced.remove(&job.content);
        if let Content::Layer(id) = job.content {
            ledger.trusted.remove(&id);
        }
        ledger.lost.insert(job.content);
        ledger.failed.insert(job.content);
    }
}
