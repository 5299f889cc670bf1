//! `Changeset.asPatch`: the changes as a patch that git applies.

use super::changes::is_executable;
use super::stats::{DiffStat, DiffStatKind};
use super::{Changeset, Views, Waiting};
use crate::file::File;
use crate::services::Services;
use crate::tree::Tree;
use graph::{Args, Builder, Context, Op};
use patch::{Entry, Version};
use protocol::Error;
use std::io::Write;
use store::{Kind, Meta, Snapshot, Store, Timestamp, View};

/// The name of the file.
const NAME: &str = "changes.patch";

pub(super) fn install(builder: &mut Builder) {
    builder.install::<AsPatch>();
}

/// The changes as a patch in the form of git, with modes, renames and contents that are no text.
/// Directories in which nothing is are not in it.
#[derive(Args)]
struct AsPatch {}

impl Op for AsPatch {
    type Parent = Changeset;
    type Output = File;
    const NAME: &'static str = "asPatch";

    async fn run(&self, changeset: &Changeset, cx: &Context) -> Result<File, Error> {
        let services = cx.get::<Services>()?;
        let mut stats = changeset.stats(services).await?;
        // What goes makes room for what comes in its place.
        stats.sort_by_key(|stat| stat.kind != DiffStatKind::Removed);
        let views = changeset.views(services).await?;
        let waiting = Waiting::default();
        let (store, goes_on) = (services.store.clone(), waiting.watch());
        let snapshot =
            services.blocking(move || write_all(&stats, &views, &store, &goes_on)).await?;
        Ok(File::below(Tree::taken_out(snapshot), NAME))
    }
}

/// Writes the patch of each file after the other, so that only one of them is in memory.
fn write_all(
    stats: &[DiffStat],
    views: &Views,
    store: &Store,
    goes_on: &dyn Fn() -> bool,
) -> Result<Snapshot, Error> {
    let folder = store.temporary()?;
    let path = folder.path().join(NAME);
    let failed = |error| Error::environment(format!("cannot write a patch: {error}"));
    let mut out = std::fs::File::create_new(&path).map_err(failed)?;
    let mut text = vec![];
    for stat in stats {
        if !goes_on() {
            return Err(Error::environment("nobody waits for the patch any more"));
        }
        text.clear();
        let old_path = stat.old_path.as_ref().unwrap_or(&stat.path);
        let is = |kind| stat.kind == kind;
        let before = (!is(DiffStatKind::Added)).then(|| Held::of(&views.before, old_path));
        let after = (!is(DiffStatKind::Removed)).then(|| Held::of(&views.after, &stat.path));
        let (before, after) = (before.transpose()?.flatten(), after.transpose()?.flatten());

        if before.is_some() || after.is_some() {
            let before = before.as_ref().map(|held| held.version(old_path));
            let after = after.as_ref().map(|held| held.version(&stat.path));
            patch::write(&mut text, &Entry { before, after });
            store.admit(text.len() as u64)?;
            out.write_all(&text).map_err(failed)?;
        }
    }
    let mut layer = store.new_layer()?;
    let meta = Meta { mode: 0o644, mtime: Timestamp::now(), ..Meta::default() };
    layer.file(NAME, &meta, &mut std::fs::File::open(&path).map_err(failed)?)?;
    Ok(Snapshot::empty().push(layer.commit()?))
}

/// A file or a link as git sees it.
struct Held {
    mode: u32,
    contents: Vec<u8>,
}

impl Held {
    /// None of what git does not know.
    fn of(view: &View, path: &[u8]) -> Result<Option<Self>, store::Error> {
        let Some(metadata) = view.entry_at(path)? else { return Ok(None) };
        let mode = match metadata.kind {
            Kind::Symlink => 0o120_000,
            Kind::File if is_executable(&metadata) => 0o100_755,
            Kind::File => 0o100_644,
            _ => return Ok(None),
        };
        let contents = view.contents_at(path, u64::MAX)?.unwrap_or_default();
        Ok(Some(Self { mode, contents }))
    }

    fn version<'a>(&'a self, path: &'a [u8]) -> Version<'a> {
        Version { path, mode: self.mode, contents: &self.contents }
    }
}
