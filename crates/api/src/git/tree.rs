//! `tree`: the files of a commit as a directory.
//!
//! The work is an action named by where the repository is, the commit and what is asked for, so a commit is checked out
//! once an engine. That the caller may have it was found out before: its references were read with the caller's own
//! credentials, and of submodules, which are repositories of their own, the same is asked after.

use super::commit::OfCommit;
use super::submodules::{self, Around};
use super::{GitCommit, GitRef, Source, told};
use crate::directory::Directory;
use crate::services::Services;
use crate::tree::Tree;
use git::checkout::{Beside, Checkout};
use git::{Depth, Refs};
use graph::{Args, Builder, Context, Hold, Op, Remembered};
use protocol::{Digest, Error, ErrorKind};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use store::{Folder, Needs, Snapshot, Timestamp};

/// Raised when a change here alters what a tree has.
const VERSION: u64 = 1;
/// The time of everything in a tree, the first second of 1980: archives that cannot say an earlier one are common.
const TIME: Timestamp = Timestamp { seconds: 315_532_800, nanoseconds: 0 };
/// Where a repository is in its work tree.
const GIT: &str = ".git";

pub(super) fn install(builder: &mut Builder) {
    builder.install::<TreeOfCommit>().install::<TreeOfRef>();
}

/// The files of the commit, submodules included.
#[derive(Args)]
struct TreeOfCommit {
    #[arg(group)]
    shape: Shape,
}

impl Op for TreeOfCommit {
    type Parent = GitCommit;
    type Output = Directory;
    const NAME: &'static str = "tree";

    async fn run(&self, commit: &GitCommit, cx: &Context) -> Result<Directory, Error> {
        Asked::new(commit, None, self.shape.without(commit.discard))?.directory(cx).await
    }
}

/// The files of the commit that it names, submodules included.
#[derive(Args)]
struct TreeOfRef {
    #[arg(group)]
    shape: Shape,
}

impl Op for TreeOfRef {
    type Parent = GitRef;
    type Output = Directory;
    const NAME: &'static str = "tree";

    async fn run(&self, reference: &GitRef, cx: &Context) -> Result<Directory, Error> {
        reference.shaped(self.shape.without(reference.discard), cx).await
    }
}

/// What of the repository is asked for beside the files.
#[derive(Clone, Copy, Args)]
struct Shape {
    /// Leave `.git` out.
    #[arg(default = "false")]
    discard_git_dir: bool,
    /// How many commits of the history `.git` has; -1 is all.
    #[arg(default = "1")]
    depth: i64,
    /// Whether `.git` has the tags.
    #[arg(default = "false")]
    include_tags: bool,
}

impl Shape {
    /// The files alone.
    const FILES: Self = Self { discard_git_dir: true, depth: 1, include_tags: false };

    /// Without `.git` where the repository was asked for so.
    fn without(self, git: bool) -> Self {
        Self { discard_git_dir: self.discard_git_dir || git, ..self }
    }
}

/// What is asked for.
#[derive(Clone)]
struct Asked {
    source: Source,
    commit: String,
    git: Option<Kept>,
}

/// What of the repository stays.
#[derive(Clone)]
struct Kept {
    branch: Option<String>,
    depth: Depth,
    tags: bool,
}

/// What is remembered of a tree.
#[derive(Serialize, Deserialize)]
struct Record {
    snapshot: Snapshot,
    /// Urls of submodules in it: who is given the tree must be given them.
    submodules: Vec<String>,
}

impl Asked {
    fn new(of: &impl OfCommit, branch: Option<&str>, shape: Shape) -> Result<Self, Error> {
        let depth = match u32::try_from(shape.depth) {
            Ok(0) => Depth::Commits(1),
            Ok(count) => Depth::Commits(count),
            Err(_) if shape.depth == -1 => Depth::Full,
            Err(_) => {
                let message = format!("depth {} is neither -1 nor a count", shape.depth);
                return Err(Error::user(message));
            }
        };
        let kept = Kept { branch: branch.map(str::to_owned), depth, tags: shape.include_tags };
        let (source, commit) = (of.source().clone(), of.id().to_owned());
        Ok(Self { source, commit, git: (!shape.discard_git_dir).then_some(kept) })
    }

    async fn directory(self, cx: &Context) -> Result<Directory, Error> {
        let services = cx.get::<Services>()?.clone();
        let refs = self.source.refs(cx).await?;
        let key = self.key(&refs, cx).await?;
        let store = services.store.clone();
        let usable = move |bytes: &[u8]| Some(Hold::new(decode(bytes, &store)?.snapshot));
        let work = self.clone().work(refs, cx.clone());
        let made = match self.source.is_of_session(cx).await? {
            true => cx.action_of_session(key, &usable, work).await?,
            false => cx.action(key, &usable, work).await?,
        };
        let lost = || Error::new(ErrorKind::Lost, "the tree of a commit is lost");
        let record = decode(&made, &services.store).ok_or_else(lost)?;
        if let Source::Remote(remote) = &self.source {
            submodules::require(remote, &record.submodules, cx).await?;
        }
        let identity = Digest::builder("tree:git").digest(&key).finish();
        Ok(Directory::below(Tree::settled(identity, record.snapshot), ""))
    }

    /// The name of the work.
    async fn key(&self, refs: &Refs, cx: &Context) -> Result<Digest, Error> {
        let mut digest = Digest::builder("action:git-tree");
        digest.number(VERSION).text(&self.commit);
        let origin = self.source.origin(cx).await?;
        digest.text(origin.as_deref().unwrap_or_default());
        if let Source::Local(local) = &self.source {
            // A commit is not the whole of a repository: what it has may be cut.
            local.open(cx).await?.require(&self.commit, cx).await?;
            digest.text("local");
        }
        let Some(kept) = &self.git else { return Ok(digest.finish()) };
        digest.text(kept.branch.as_deref().unwrap_or("-"));
        digest.number(match kept.depth {
            Depth::Commits(count) => u64::from(count),
            _ => u64::MAX,
        });
        if kept.tags {
            for (name, commit) in refs.tagged() {
                digest.text(name).text(commit);
            }
        }
        Ok(digest.finish())
    }

    async fn work(self, refs: Refs, cx: Context) -> Result<Remembered, Error> {
        let services = cx.get::<Services>()?.clone();
        let tags: Vec<(&str, &str)> = match &self.git {
            Some(Kept { tags: true, .. }) => refs.tagged().collect(),
            _ => vec![],
        };
        let mut wanted: Vec<&str> = tags.iter().map(|(_, commit)| *commit).collect();
        wanted.push(&self.commit);
        let depth = self.git.as_ref().map_or(Depth::Commits(1), |kept| kept.depth);
        let mut disk = self.source.with_commits(&wanted, depth, &cx).await?;
        let origin = self.source.origin(&cx).await?;
        let store = services.store.clone();
        let folder: Folder = services.blocking(move || store.new_folder()).await?;
        let git = services.git.git();
        let span = cx.span().child(format!("check out {}", self.commit), protocol::SpanKind::Work);
        let top = folder.path().join(GIT);
        let checkout =
            Checkout { repository: disk.path(), commit: &self.commit, folder: folder.path() };
        let index = folder.beside("index");
        match &self.git {
            None => checkout.files(git, &index).await.map_err(told)?,
            Some(kept) => {
                let beside = Beside {
                    at: top.clone(),
                    branch: kept.branch.as_deref(),
                    origin: origin.as_deref(),
                    work_tree: None,
                    depth: kept.depth,
                    tags,
                };
                let made =
                    tokio::join!(checkout.files(git, &index), checkout.repository(git, &beside));
                made.0.and(made.1).map_err(told)?;
            }
        }
        // A submodule may be of the same remote.
        disk.let_others_write();
        let around = Around {
            source: self.source.clone(),
            commit: self.commit.clone(),
            scratch: folder.beside("index-of-submodule"),
        };
        let kept = self.git.is_some().then(|| top.clone());
        let inside = submodules::write(around, (disk.path(), folder.path()), kept, &cx).await?;
        let folder = timed(folder, &services).await?;
        if self.git.is_some() {
            let moved = std::fs::rename(&index, top.join("index"));
            moved.map_err(|error| Error::environment(format!("cannot keep an index: {error}")))?;
            let checkout =
                Checkout { repository: &top, commit: &self.commit, folder: folder.path() };
            checkout.refresh(git, &top).await.map_err(told)?;
        }
        for submodule in &inside.refreshed {
            submodule.refresh(git).await.map_err(told)?;
        }
        span.done();
        let snapshot = services.blocking(move || folder.commit()).await?;
        let label = format!("git tree {} {}", origin.unwrap_or_default(), self.commit);
        remembered(Record { snapshot, submodules: inside.urls }, label)
    }
}

/// The folder with the time of trees on everything.
async fn timed(folder: Folder, services: &Arc<Services>) -> Result<Folder, Error> {
    services
        .blocking(move || {
            folder.set_times(TIME)?;
            Ok::<_, store::Error>(folder)
        })
        .await
}

fn remembered(record: Record, label: String) -> Result<Remembered, Error> {
    let value = postcard::to_stdvec(&record)
        .map_err(|error| Error::internal(format!("cannot encode a tree: {error}")))?;
    let needs = Needs::new().snapshot(&record.snapshot).encode();
    Ok(Remembered { value, kind: "git", label, needs, hold: Hold::new(record.snapshot) })
}

/// What was remembered, with its layers held; none if one is gone.
fn decode(bytes: &[u8], store: &store::Store) -> Option<Record> {
    let record: Record = postcard::from_bytes(bytes).ok()?;
    let snapshot = store.pin(&record.snapshot)?;
    Some(Record { snapshot, ..record })
}

impl GitRef {
    /// The commit that it names.
    pub(crate) fn id(&self) -> &str {
        &self.named.commit
    }

    /// The files with a repository beside them.
    pub(crate) async fn work_tree(&self, cx: &Context) -> Result<Directory, Error> {
        self.shaped(Shape { discard_git_dir: false, ..Shape::FILES }, cx).await
    }

    async fn shaped(&self, shape: Shape, cx: &Context) -> Result<Directory, Error> {
        let branch = Some(&*self.named.name).filter(|name| name.starts_with("refs/heads/"));
        Asked::new(self, branch, shape)?.directory(cx).await
    }

    /// The files alone.
    pub(crate) async fn files(&self, cx: &Context) -> Result<Directory, Error> {
        Asked::new(self, None, Shape::FILES)?.directory(cx).await
    }
}
