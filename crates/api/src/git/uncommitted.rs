//! `uncommitted`: what was changed in a work tree since its last commit.
//!
//! Git says which paths differ, looking at second names of the files in a folder of ours where nothing is called `.git`.
//! What is at those paths is then brought over the files of the commit, so that all the rest is the same on both sides.

use super::local::{Local, LocalOpen};
use super::{GitRef, GitRepository, Source, lfs, told};
use crate::changeset::{Changeset, Done};
use crate::directory::Directory;
use crate::edit::Edit;
use crate::host;
use crate::services::Services;
use git::Named;
use git::work_tree::{Differing, WorkTree};
use graph::{Args, Builder, Context, Op};
use protocol::Error;
use std::collections::BTreeSet;
use std::sync::Arc;
use store::{Folder, View};

/// Where a repository is in its work tree.
const GIT: &str = ".git";
/// Where the work tree is in the folder that is lent.
const FILES: &str = "files";

pub(super) fn install(builder: &mut Builder) {
    builder.install::<Uncommitted>();
}

/// What was changed in the work tree since the last commit, staged or not: files that were changed, removed, or are new and not
/// ignored. Nothing for a repository elsewhere and for one without a work tree.
#[derive(Args)]
struct Uncommitted {}

impl Op for Uncommitted {
    type Parent = GitRepository;
    type Output = Changeset;
    const NAME: &'static str = "uncommitted";

    async fn run(&self, repository: &GitRepository, cx: &Context) -> Result<Changeset, Error> {
        let Source::Local(local) = &repository.source else { return Ok(nothing()) };
        let Some(local) = with_work_tree(local, cx).await? else { return Ok(nothing()) };
        let open = local.open(cx).await?;
        let head = open.refs.at_head().ok();
        let before = match &head {
            None => Directory::empty(),
            Some(Named { commit, .. }) => {
                let named = Named { name: commit.clone(), commit: commit.clone() };
                let source = Source::Local(local.clone());
                GitRef { source, named, discard: true }.files(cx).await?
            }
        };
        let commit = head.as_ref().map(|head| &*head.commit);
        let differing = differing(&local, &open, commit, cx).await?;
        let after = brought(&before, local.directory(), differing, cx).await?;
        Ok(Changeset::new(before, after))
    }
}

fn nothing() -> Changeset {
    Changeset::new(Directory::empty(), Directory::empty())
}

/// The repository with its work tree, which may have been left on the caller's machine; none if it has none.
async fn with_work_tree(local: &Arc<Local>, cx: &Context) -> Result<Option<Arc<Local>>, Error> {
    if local.open(cx).await?.place.is_bare(local.directory().path()) {
        return Ok(None);
    }
    let Some(path) = local.host() else { return Ok(Some(local.clone())) };
    let directory = host::take_directory(path, cx).await?;
    Ok(Some(Arc::new(Local::new(directory, local.origin().map(str::to_owned)))))
}

/// What differs from a commit, in git's eyes.
async fn differing(
    local: &Local,
    open: &LocalOpen,
    commit: Option<&str>,
    cx: &Context,
) -> Result<Differing, Error> {
    let services = cx.get::<Services>()?;
    let snapshot = local.directory().snapshot(services).await?;
    let (store, path) = (services.store.clone(), local.directory().path().to_owned());
    let theirs = open.path().join("index");
    let (lent, index) = services
        .blocking(move || {
            let mut folder: Folder = store.new_folder()?;
            folder.lend_work_tree((&store.view(&snapshot), &path), FILES, GIT)?;
            let index = folder.beside("index");
            // A second name keeps the time, by which git knows which entries it must not trust.
            match std::fs::hard_link(&theirs, &index) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(Error::environment(format!("cannot lend an index: {error}")))
                }
                _ => Ok((folder, index)),
            }
        })
        .await?;
    let files = lent.path().join(FILES);
    let work_tree = WorkTree { repository: &open.path(), folder: &files, index: &index };
    work_tree.differing(services.git.git(), commit).await.map_err(told)
}

/// A directory after what another one has at some paths was brought over it.
async fn brought(
    before: &Directory,
    work_tree: &Directory,
    differing: Differing,
    cx: &Context,
) -> Result<Directory, Error> {
    let services = cx.get::<Services>()?;
    let layer = work_tree.as_source(services).await?;
    let store = services.store.clone();
    let (old, new) = (before.snapshot(services).await?, layer.snapshot(services).await?);
    let done =
        services.blocking(move || done(&store.view(&old), &store.view(&new), differing)).await?;
    let edit = Edit::Changes { path: "/".to_owned(), layer, done: Arc::new(done) };
    Ok(Directory::below(before.tree().edited(edit, services).await?, ""))
}

/// What comes and goes. A submodule is a repository of its own: while it is there, it stays as the commit has it.
fn done(before: &View, work_tree: &View, differing: Differing) -> Result<Done, Error> {
    let is_folder = |view: &View, path: &[u8]| {
        Ok::<_, Error>(view.entry_at(path)?.is_some_and(|found| found.is_directory()))
    };
    let mut gone: Vec<Vec<u8>> = differing.gone.into_iter().collect();
    let mut came = vec![];
    for path in differing.there {
        match work_tree.entry_at(&path)? {
            Some(found) if found.is_directory() => {}
            Some(_) if lfs::is_kept(before, work_tree, &path)? => {}
            Some(_) => came.push(path),
            None => gone.push(path),
        }
    }
    let (mut files, mut folders) = (BTreeSet::new(), BTreeSet::new());
    for path in gone {
        match (is_folder(before, &path)?, is_folder(work_tree, &path)?) {
            (true, true) => {}
            (true, false) => before.visit_at(&path, &mut |path, metadata| {
                let gone = if metadata.is_directory() { &mut folders } else { &mut files };
                gone.insert(path.to_vec());
            })?,
            (false, _) => {
                files.insert(path);
            }
        }
    }
    Ok(Done::new(came, files, folders))
}
