//! `Changeset`: what was done from one directory to another.
//!
//! It is two directories and nothing else, so making one costs nothing. What differs between them is
//! found when it is first asked for, without reading more than it takes ([`store::Difference`]), and
//! contents are looked at only for line counts, patches and merges. A change is what version control
//! tracks: an entry that came or went, other bytes, another target of a link, a file that became
//! executable or is no longer. Owners, times and other bits of the mode are no change.

mod changes;
mod export;
mod merge;
mod patch_file;
pub(crate) mod patching;
mod read;
mod renames;
mod stats;

pub(crate) use changes::{Done, Rule, is_executable};
pub(crate) use patching::PatchConflict;

use crate::directory::Directory;
use crate::services::Services;
use changes::Change;
use graph::{Args, Builder, Context, Extensions, Object, Op, Root};
use protocol::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::{Snapshot, View};
use tokio::sync::OnceCell;

/// What was done from one directory to another, as a value.
#[derive(Clone)]
pub(crate) struct Changeset {
    before: Directory,
    after: Directory,
    /// What differs, once it was asked for.
    changes: Arc<OnceCell<Arc<[Change]>>>,
}

impl Object for Changeset {
    const TYPE: &'static str = "Changeset";
    const DESCRIPTION: &'static str = "What was done from one directory to another.";

    fn is_whole(&self, extensions: &Extensions) -> bool {
        let whole = |directory: &Directory, services| !directory.tree().is_lost(services);
        extensions
            .get::<Services>()
            .is_none_or(|services| whole(&self.before, services) && whole(&self.after, services))
    }
}

/// Adds the fields of `Changeset` and `DiffStat`.
pub(crate) fn install(builder: &mut Builder) {
    builder.install::<MakeChangeset>();
    read::install(builder);
    stats::install(builder);
    patch_file::install(builder);
    merge::install(builder);
    export::install(builder);
}

/// No changes, as a start for others.
#[derive(Args)]
struct MakeChangeset {}

impl Op for MakeChangeset {
    type Parent = Root;
    type Output = Changeset;
    const NAME: &'static str = "changeset";

    async fn run(&self, _: &Root, _: &Context) -> Result<Changeset, Error> {
        Ok(Changeset::new(Directory::empty(), Directory::empty()))
    }
}

impl Changeset {
    /// What was done from `before` to `after`.
    pub(crate) fn new(before: Directory, after: Directory) -> Self {
        Self { before, after, changes: Arc::default() }
    }

    /// What differs, sorted by path.
    async fn changes(&self, services: &Services) -> Result<Arc<[Change]>, Error> {
        let compare = || async {
            let (before, after) = self.snapshots(services).await?;
            changes::between(&before, &after, Rule::Tracked, services).await
        };
        self.changes.get_or_try_init(compare).await.cloned()
    }

    /// Both directories, as trees of their own.
    async fn snapshots(&self, services: &Services) -> Result<(Snapshot, Snapshot), Error> {
        let before = self.before.as_tree(services).await?.snapshot(services).await?;
        let after = self.after.as_tree(services).await?.snapshot(services).await?;
        Ok((before, after))
    }

    /// The same, to be read.
    async fn views(&self, services: &Services) -> Result<Views, Error> {
        let (before, after) = self.snapshots(services).await?;
        let view = |snapshot| services.store.view(snapshot);
        Ok(Views { before: view(&before), after: view(&after) })
    }
}

/// The trees of a changeset, to be read.
#[derive(Clone)]
struct Views {
    before: View,
    after: View,
}

/// Says that nobody waits any more, when it is dropped.
#[derive(Default)]
struct Waiting(Arc<AtomicBool>);

impl Waiting {
    /// Whether somebody still waits, for work on another thread.
    fn watch(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        let gone = Arc::clone(&self.0);
        move || !gone.load(Ordering::Relaxed)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
