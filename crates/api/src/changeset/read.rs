//! Fields of `Changeset` that look at it.

use super::changes::{self, Change, Done, Told, topmost_removed};
use super::{Changeset, Rule};
use crate::directory::Directory;
use crate::edit::Edit;
use crate::services::Services;
use crate::tree::Tree;
use graph::{Args, Builder, Context, Op, OwnId};
use protocol::Error;
use std::sync::Arc;
use store::Snapshot;

pub(super) fn install(builder: &mut Builder) {
    builder
        .install::<Before>()
        .install::<After>()
        .install::<Layer>()
        .install::<AddedPaths>()
        .install::<ModifiedPaths>()
        .install::<RemovedPaths>()
        .install::<IsEmpty>()
        .install::<Sync>();
}

/// The directory as it was before the changes.
#[derive(Args)]
struct Before {}

impl Op for Before {
    type Parent = Changeset;
    type Output = Directory;
    const NAME: &'static str = "before";

    async fn run(&self, changeset: &Changeset, _: &Context) -> Result<Directory, Error> {
        Ok(changeset.before.clone())
    }
}

/// The directory as it is with the changes.
#[derive(Args)]
struct After {}

impl Op for After {
    type Parent = Changeset;
    type Output = Directory;
    const NAME: &'static str = "after";

    async fn run(&self, changeset: &Changeset, _: &Context) -> Result<Directory, Error> {
        Ok(changeset.after.clone())
    }
}

/// Only what was added and modified, each at its path.
#[derive(Args)]
struct Layer {}

impl Op for Layer {
    type Parent = Changeset;
    type Output = Directory;
    const NAME: &'static str = "layer";

    async fn run(&self, changeset: &Changeset, cx: &Context) -> Result<Directory, Error> {
        let services = cx.get::<Services>()?;
        changeset.layer(&changeset.changes(services).await?, services).await
    }
}

/// Paths of everything that is new, sorted; those of directories end with a slash.
#[derive(Args)]
struct AddedPaths {}

impl Op for AddedPaths {
    type Parent = Changeset;
    type Output = Vec<String>;
    const NAME: &'static str = "addedPaths";

    async fn run(&self, changeset: &Changeset, cx: &Context) -> Result<Vec<String>, Error> {
        changeset.names(|told| told.added, cx).await
    }
}

/// Paths of files and links that are there before and after and differ, sorted.
#[derive(Args)]
struct ModifiedPaths {}

impl Op for ModifiedPaths {
    type Parent = Changeset;
    type Output = Vec<String>;
    const NAME: &'static str = "modifiedPaths";

    async fn run(&self, changeset: &Changeset, cx: &Context) -> Result<Vec<String>, Error> {
        changeset.names(|told| told.modified, cx).await
    }
}

/// Paths of everything that is gone, sorted; of a directory only its own path, with a slash, and
/// not what was in it.
#[derive(Args)]
struct RemovedPaths {}

impl Op for RemovedPaths {
    type Parent = Changeset;
    type Output = Vec<String>;
    const NAME: &'static str = "removedPaths";

    async fn run(&self, changeset: &Changeset, cx: &Context) -> Result<Vec<String>, Error> {
        Ok(topmost_removed(&changeset.changes(cx.get::<Services>()?).await?))
    }
}

/// Whether nothing was changed.
#[derive(Args)]
struct IsEmpty {}

impl Op for IsEmpty {
    type Parent = Changeset;
    type Output = bool;
    const NAME: &'static str = "isEmpty";

    async fn run(&self, changeset: &Changeset, cx: &Context) -> Result<bool, Error> {
        Ok(changeset.changes(cx.get::<Services>()?).await?.is_empty())
    }
}

/// Makes both directories and compares them, and gives the changeset's id.
#[derive(Args)]
struct Sync {}

impl Op for Sync {
    type Parent = Changeset;
    type Output = OwnId;
    const NAME: &'static str = "sync";

    async fn run(&self, changeset: &Changeset, cx: &Context) -> Result<OwnId, Error> {
        changeset.changes(cx.get::<Services>()?).await?;
        Ok(OwnId)
    }
}

impl Changeset {
    /// What was added and modified, as a directory of its own. It is known by its content: neither of
    /// the two directories has to be hashed for it.
    pub(super) async fn layer(
        &self,
        changes: &[Change],
        services: &Services,
    ) -> Result<Directory, Error> {
        let (_, after) = self.snapshots(services).await?;
        let (store, done) = (services.store.clone(), Done::of(changes));
        let write = move || {
            let mut editor = store.edit(&Snapshot::empty())?;
            done.apply(&mut editor, b"", &store.view(&after))?;
            editor.commit()
        };
        Ok(Directory::below(Tree::taken_out(services.blocking(write).await?), ""))
    }

    /// Entries of the newer directory that the older one does not have, or has in another form.
    pub(crate) async fn difference(&self, services: &Services) -> Result<Directory, Error> {
        let (before, after) = self.snapshots(services).await?;
        let changes = changes::between(&before, &after, Rule::Everything, services).await?;
        self.layer(&changes, services).await
    }

    /// The edit that does the same to the directory at a path.
    pub(crate) async fn edit(&self, path: &str, services: &Services) -> Result<Edit, Error> {
        let changes = self.changes(services).await?;
        let layer = self.layer(&changes, services).await?.as_source(services).await?;
        Ok(Edit::Changes { path: path.to_owned(), layer, done: Arc::new(Done::of(&changes)) })
    }

    async fn names(&self, pick: fn(Told) -> bool, cx: &Context) -> Result<Vec<String>, Error> {
        let changes = self.changes(cx.get::<Services>()?).await?;
        let picked = changes.iter().filter(|change| pick(change.told()));
        Ok(picked.map(Change::new_name).collect())
    }
}
