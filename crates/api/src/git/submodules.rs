//! Submodules of a tree: repositories of their own, with those credentials that are for their hosts.
//!
//! They nest, so what is left to do is a list. With a `.git` around them they have theirs where git puts them:
//! `.git/modules/<name>`, and a `.git` file that says so.

use super::remote::Remote;
use super::{Source, told};
use crate::services::Services;
use git::checkout::{Beside, Checkout};
use git::{Depth, Git, Module, Spelled, Url};
use graph::Context;
use protocol::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many submodules one tree may have, of all depths: one that has itself would never end.
const MOST: usize = 1_000;
/// How deep they may nest.
const DEEPEST: usize = 16;

/// The repository around.
pub(super) struct Around {
    pub(super) source: Source,
    pub(super) commit: String,
    /// A place for a file that is no part of the tree.
    pub(super) scratch: PathBuf,
}

/// What was written.
#[derive(Default)]
pub(super) struct Written {
    /// Where they came from.
    pub(super) urls: Vec<String>,
    /// Indexes that must be told of the files' times.
    pub(super) refreshed: Vec<Refreshed>,
}

/// A submodule whose index must be told of its files' times.
pub(super) struct Refreshed {
    repository: PathBuf,
    folder: PathBuf,
    commit: String,
}

impl Refreshed {
    pub(super) async fn refresh(&self, git: &Git) -> Result<(), git::Error> {
        let (repository, folder) = (self.repository.as_path(), self.folder.as_path());
        Checkout { repository, commit: &self.commit, folder }.refresh(git, repository).await
    }
}

/// One that is left to look at.
struct Ahead {
    source: Source,
    commit: String,
    /// A repository on disk that has the commit.
    disk: PathBuf,
    folder: PathBuf,
    /// Its own repository in the tree, if there are any.
    kept: Option<PathBuf>,
    depth: usize,
}

/// Writes all submodules below a folder. `disk` has the commit around.
pub(super) async fn write(
    around: Around,
    (disk, folder): (&Path, &Path),
    kept: Option<PathBuf>,
    cx: &Context,
) -> Result<Written, Error> {
    let git = cx.get::<Services>()?.git.git();
    let mut written = Written::default();
    let mut held = vec![];
    let Around { source, commit, scratch } = around;
    let (disk, folder) = (disk.to_owned(), folder.to_owned());
    let mut ahead = vec![Ahead { source, commit, disk, folder, kept, depth: 0 }];
    while let Some(next) = ahead.pop() {
        for module in git::modules(git, &next.disk, &next.commit).await.map_err(told)? {
            if written.urls.len() >= MOST || next.depth >= DEEPEST {
                return Err(Error::user("the repository has too many submodules in each other"));
            }
            let Some((source, url)) = source_of(&next, &module, cx).await? else { continue };
            let one = Depth::Commits(1);
            let disk = source.with_commits(&[&module.commit], one, cx).await?;
            let below = Ahead {
                source,
                commit: module.commit.clone(),
                disk: disk.path().to_owned(),
                folder: next.folder.join(&module.path),
                kept: next.kept.as_ref().map(|kept| kept.join("modules").join(&module.name)),
                depth: next.depth + 1,
            };
            held.push(disk);
            let told = (url.as_deref(), &*scratch);
            written.refreshed.extend(write_one(&below, (&next, &module), told, git).await?);
            written.urls.extend(url);
            ahead.push(below);
        }
    }
    Ok(written)
}

/// The repository of a submodule and where it is; none when nobody has it, as in a clone that left it out.
async fn source_of(
    around: &Ahead,
    module: &Module,
    cx: &Context,
) -> Result<Option<(Source, Option<String>)>, Error> {
    let remote = match &around.source {
        Source::Remote(remote) => {
            let open = remote.open(cx).await?;
            let spelled = resolve(&open.url, module)?;
            remote.submodule(&open.url, spelled)
        }
        Source::Local(local) => {
            if let Some(own) = local.submodule(&module.name, cx).await? {
                return Ok(Some((Source::Local(Arc::new(own)), None)));
            }
            return Ok(None);
        }
    };
    let Some(remote) = remote else {
        let message =
            format!("submodule `{}` is at `{}`, which is no remote", module.path, module.url);
        return Err(Error::user(message));
    };
    let url = remote.open(cx).await?.url.to_string();
    Ok(Some((Source::Remote(Arc::new(remote)), Some(url))))
}

fn resolve(url: &Url, module: &Module) -> Result<Spelled, Error> {
    url.resolve(&module.url)
        .map_err(|error| Error::user(format!("submodule `{}`: {error}", module.path)))
}

/// Writes the files of one, and its repository if there are any.
async fn write_one(
    one: &Ahead,
    (around, module): (&Ahead, &Module),
    (url, scratch): (Option<&str>, &Path),
    git: &Git,
) -> Result<Option<Refreshed>, Error> {
    let failed = |error: std::io::Error| {
        Error::environment(format!("cannot write submodule `{}`: {error}", module.path))
    };
    std::fs::create_dir_all(&one.folder).map_err(failed)?;
    let checkout = Checkout { repository: &one.disk, commit: &module.commit, folder: &one.folder };
    let Some(kept) = &one.kept else {
        checkout.files(git, scratch).await.map_err(told)?;
        std::fs::remove_file(scratch).map_err(failed)?;
        return Ok(None);
    };
    let beside = Beside {
        at: kept.clone(),
        branch: None,
        origin: url,
        work_tree: Some(relative(kept, &one.folder)),
        depth: Depth::Commits(1),
        tags: vec![],
    };
    checkout.repository(git, &beside).await.map_err(told)?;
    checkout.files(git, &kept.join("index")).await.map_err(told)?;
    let line = format!("gitdir: {}\n", relative(&one.folder, kept));
    std::fs::write(one.folder.join(".git"), line).map_err(failed)?;
    if let Some(parent) = &around.kept {
        git::checkout::activate(parent, module, url).map_err(told)?;
    }
    let (repository, folder) = (kept.clone(), one.folder.clone());
    Ok(Some(Refreshed { repository, folder, commit: module.commit.clone() }))
}

/// The path of one place from another, both absolute.
fn relative(from: &Path, to: &Path) -> String {
    let common =
        from.components().zip(to.components()).take_while(|(one, other)| one == other).count();
    let up = std::iter::repeat_n("..".to_owned(), from.components().count() - common);
    let down = to.components().skip(common);
    let down = down.map(|part| part.as_os_str().to_string_lossy().into_owned());
    up.chain(down).collect::<Vec<_>>().join("/")
}

/// Refuses a tree with submodules that the caller may not read. Each is asked once.
pub(super) async fn require(remote: &Remote, urls: &[String], cx: &Context) -> Result<(), Error> {
    if urls.is_empty() {
        return Ok(());
    }
    let around = &remote.open(cx).await?.url;
    for url in urls {
        let spelled = super::construct::spelled(url)?;
        if let Some(submodule) = remote.submodule(around, spelled) {
            submodule.open(cx).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_from_one_place_to_another() {
        let relative = |from: &str, to: &str| relative(Path::new(from), Path::new(to));
        assert_eq!(relative("/t/lib/a", "/t/.git/modules/a"), "../../.git/modules/a");
        assert_eq!(relative("/t/.git/modules/a", "/t/lib/a"), "../../../lib/a");
    }
}
