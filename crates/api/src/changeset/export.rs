//! `Changeset.export`: does to a directory on the caller's disk what was done.

use super::Changeset;
use crate::export::{self, IntoDirectory};
use crate::services::Services;
use graph::{Args, Builder, Context, Op, Scope};
use protocol::Error;

pub(super) fn install(builder: &mut Builder) {
    builder.install::<Export>();
}

/// Applies the changes to a directory on the caller's disk, and gives its absolute path. What was
/// removed is removed there, a directory only if nothing else is in it; what was added or modified is
/// written, each file whole at any moment. Everything else stays.
#[derive(Args)]
struct Export {
    /// Where; relative paths start from the caller's working directory. Missing directories are made.
    path: String,
}

impl Op for Export {
    type Parent = Changeset;
    type Output = String;
    const NAME: &'static str = "export";
    const SCOPE: Scope = Scope::Request;

    async fn run(&self, changeset: &Changeset, cx: &Context) -> Result<String, Error> {
        let services = cx.get::<Services>()?;
        let changes = changeset.changes(services).await?;
        let layer = changeset.layer(&changes, services).await?.snapshot(services).await?;
        let store = services.store.clone();
        let outlet = services.blocking(move || store.outlet(&layer, "")).await?;
        // A directory goes after all that was in it.
        let gone = changes.iter().rev().filter(|change| change.told().removed);
        let is_directory =
            |change: &&super::Change| change.before.is_some_and(|one| one.is_directory());
        let (directories, files): (Vec<_>, Vec<_>) = gone.partition(is_directory);
        let files = files.into_iter().filter(|file| file.after.is_none());
        let removed = files
            .map(|file| file.path.clone())
            .chain(directories.iter().map(|directory| [&directory.path[..], b"/"].concat()))
            .collect();
        let to = IntoDirectory { path: self.path.clone(), wipe: false, removed };
        export::directory(outlet, to, cx).await
    }
}
