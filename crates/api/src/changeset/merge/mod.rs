//! `Changeset.withChangeset` and `withChangesets`: changes that were made apart, brought together.
//!
//! Each path has three versions: as it was before the other changes, as it is with ours, and as it is
//! with theirs. Where only one side changed it, that is taken; where both changed lines of a text that
//! do not meet, both are; everything else is a conflict, and a policy says what becomes of it.

mod base;
mod entry;
mod merging;

use super::changes::Change;
use super::{Changeset, Waiting};
use crate::directory::Directory;
use crate::services::Services;
use crate::tree::Tree;
use graph::{Args, Builder, Context, Enum, Op, Ref};
use protocol::Error;
use std::sync::Arc;
use store::Snapshot;

pub(super) fn install(builder: &mut Builder) {
    builder.install::<WithChangeset>().install::<WithChangesets>();
}

/// What happens where two changesets do not go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
#[graph(name = "ChangesetMergeConflict")]
pub(crate) enum ChangesetMergeConflict {
    /// It is an error, before anything is merged, if both changed the same file in different ways.
    FailEarly,
    /// It is an error if both changed the same lines of a file, or what cannot be merged.
    Fail,
    /// Both versions of lines stand between marks. A file that one side changed and the other removed
    /// is kept. What is no text is an error.
    LeaveConflictMarkers,
    /// The file as the calling changeset has it.
    PreferOurs,
    /// The file as the given changeset has it.
    PreferTheirs,
}

/// What happens where several changesets do not go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
#[graph(name = "ChangesetsMergeConflict")]
pub(crate) enum ChangesetsMergeConflict {
    /// It is an error, before anything is merged, if any two changed the same file in different ways.
    FailEarly,
    /// It is an error if two changed the same lines of a file, or what cannot be merged.
    Fail,
}

/// Adds other changes to these.
#[derive(Args)]
struct WithChangeset {
    /// The other changes.
    changes: Ref<Changeset>,
    /// What happens where both do not go together.
    #[arg(default = "FAIL")]
    on_conflict: ChangesetMergeConflict,
}

impl Op for WithChangeset {
    type Parent = Changeset;
    type Output = Changeset;
    const NAME: &'static str = "withChangeset";

    async fn run(&self, changeset: &Changeset, cx: &Context) -> Result<Changeset, Error> {
        let both = [changeset, &*self.changes];
        merge(&both, self.on_conflict, cx.get::<Services>()?).await
    }
}

/// Adds the changes of several others to these.
#[derive(Args)]
struct WithChangesets {
    /// The others.
    changes: Vec<Ref<Changeset>>,
    /// What happens where they do not go together.
    #[arg(default = "FAIL")]
    on_conflict: ChangesetsMergeConflict,
}

impl Op for WithChangesets {
    type Parent = Changeset;
    type Output = Changeset;
    const NAME: &'static str = "withChangesets";

    async fn run(&self, changeset: &Changeset, cx: &Context) -> Result<Changeset, Error> {
        let others = self.changes.iter().map(|other| &**other);
        let all: Vec<&Changeset> = [changeset].into_iter().chain(others).collect();
        let policy = match self.on_conflict {
            ChangesetsMergeConflict::FailEarly => ChangesetMergeConflict::FailEarly,
            ChangesetsMergeConflict::Fail => ChangesetMergeConflict::Fail,
        };
        merge(&all, policy, cx.get::<Services>()?).await
    }
}

/// A changeset whose trees are on disk.
struct Input {
    before: Snapshot,
    after: Snapshot,
    changes: Arc<[Change]>,
}

/// Brings changesets together, the first with each of the others in turn.
async fn merge(
    all: &[&Changeset],
    policy: ChangesetMergeConflict,
    services: &Services,
) -> Result<Changeset, Error> {
    let [ours, _, ..] = all else { return Ok(all[0].clone()) };
    let mut inputs = Vec::with_capacity(all.len());
    for changeset in all {
        let (before, after) = changeset.snapshots(services).await?;
        inputs.push(Input { before, after, changes: changeset.changes(services).await? });
    }
    let waiting = Waiting::default();
    let (store, goes_on) = (services.store.clone(), waiting.watch());
    let merged = move || {
        if policy == ChangesetMergeConflict::FailEarly {
            merging::refuse_common_files(&inputs, &store)?;
        }
        let base = base::common(&inputs, &store, &goes_on)?;
        let after = merging::merge(&inputs, &base, policy, &store, &goes_on)?;
        let before = (base.snapshot != inputs[0].before).then_some(base.snapshot);
        Ok::<_, Error>((before, after))
    };
    let (before, after) = services.blocking(merged).await?;
    let tree = |snapshot| Directory::below(Tree::taken_out(snapshot), "");
    let before = before.map_or_else(|| ours.before.clone(), tree);
    Ok(Changeset::new(before, tree(after)))
}
