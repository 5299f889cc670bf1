//! Fields of `GitRepository`: what it has.

use super::{GitRef, GitRepository, Source, told};
use crate::compat;
use crate::lock;
use git::{Named, Refs, is_commit_id};
use graph::{Args, Builder, Context, Op};
use protocol::Error;
use protocol::attach::{LockPolicy, LockRequest};

/// Clients from before this version name commits, branches and tags in any of these fields.
const STRICT: (u64, u64) = (0, 19);

pub(super) fn install(builder: &mut Builder) {
    builder
        .install::<HeadOf>()
        .install::<AnyRef>()
        .install::<Branch>()
        .install::<Tag>()
        .install::<ByCommit>()
        .install::<LatestVersion>()
        .install::<Tags>()
        .install::<Branches>()
        .install::<Url>();
}

/// What the repository's HEAD names: its default branch.
#[derive(Args)]
struct HeadOf {}

impl Op for HeadOf {
    type Parent = GitRepository;
    type Output = GitRef;
    const NAME: &'static str = "head";

    async fn run(&self, repository: &GitRepository, cx: &Context) -> Result<GitRef, Error> {
        repository.locked("git.head", None, cx, Refs::at_head).await
    }
}

/// What a name means: a full one such as `refs/pull/1/head`, a tag, a branch, or a commit.
#[derive(Args)]
struct AnyRef {
    /// The name.
    name: String,
}

impl Op for AnyRef {
    type Parent = GitRepository;
    type Output = GitRef;
    const NAME: &'static str = "ref";

    async fn run(&self, repository: &GitRepository, cx: &Context) -> Result<GitRef, Error> {
        repository.any(&self.name, cx).await
    }
}

impl GitRepository {
    /// Whatever a name means.
    pub(super) async fn any(&self, name: &str, cx: &Context) -> Result<GitRef, Error> {
        self.locked("git.ref", Some(name), cx, |refs| refs.any(name)).await
    }

    /// A name with the commit that the caller's project has recorded for it. A commit is its own record, and so is a
    /// repository of the caller's own.
    async fn locked(
        &self,
        operation: &str,
        name: Option<&str>,
        cx: &Context,
        find: impl Fn(&Refs) -> Result<Named, git::Error>,
    ) -> Result<GitRef, Error> {
        let look = || async { find(&self.source.refs(cx).await?).map_err(told) };
        let remote = match &self.source {
            Source::Remote(remote) if lock::is_used(cx) && !name.is_some_and(is_commit_id) => {
                remote
            }
            _ => return Ok(self.reference(look().await?)),
        };
        let inputs = std::iter::once(remote.url(cx).await?).chain(name.map(str::to_owned));
        let request = LockRequest { operation: operation.to_owned(), inputs: inputs.collect() };
        let shown = request.inputs.join("`, `");
        let mut found = None;
        let resolve = async {
            let named = found.insert(look().await?);
            // A tag is meant to stay.
            let policy = match named.name.starts_with("refs/tags/") {
                true => LockPolicy::Pin,
                false => LockPolicy::Float,
            };
            Ok((named.commit.clone(), policy))
        };
        let commit = lock::settled_by(cx, request, resolve).await?;
        if !is_commit_id(&commit) {
            let message = format!(
                "what `ci-tool.lock` says of {operation} of `{shown}` is no commit: `{commit}`"
            );
            return Err(Error::user(message).with_hint("`--lock=live` records it anew"));
        }
        let full = match (found, operation, name) {
            (Some(named), ..) => named.name,
            // What is recorded holds though the remote may have it no more, or cannot be asked.
            (None, "git.branch", Some(name)) => full("refs/heads/", name),
            (None, "git.tag", Some(name)) => full("refs/tags/", name),
            (None, ..) => look().await.map_or_else(|_| commit.clone(), |named| named.name),
        };
        Ok(self.reference(Named { name: full, commit }))
    }
}

/// A full name from one that is short or full.
fn full(folder: &str, name: &str) -> String {
    if name.starts_with(folder) { name.to_owned() } else { format!("{folder}{name}") }
}

/// A branch.
#[derive(Args)]
struct Branch {
    /// Its name, short or full.
    name: String,
}

impl Op for Branch {
    type Parent = GitRepository;
    type Output = GitRef;
    const NAME: &'static str = "branch";

    async fn run(&self, repository: &GitRepository, cx: &Context) -> Result<GitRef, Error> {
        if compat::is_before(cx, STRICT) {
            return repository.any(&self.name, cx).await;
        }
        let find = |refs: &Refs| refs.branch(&self.name);
        repository.locked("git.branch", Some(&self.name), cx, find).await
    }
}

/// A tag.
#[derive(Args)]
struct Tag {
    /// Its name, short or full.
    name: String,
}

impl Op for Tag {
    type Parent = GitRepository;
    type Output = GitRef;
    const NAME: &'static str = "tag";

    async fn run(&self, repository: &GitRepository, cx: &Context) -> Result<GitRef, Error> {
        if compat::is_before(cx, STRICT) {
            return repository.any(&self.name, cx).await;
        }
        let find = |refs: &Refs| refs.tag(&self.name);
        repository.locked("git.tag", Some(&self.name), cx, find).await
    }
}

/// A commit, also one that no branch or tag leads to.
#[derive(Args)]
struct ByCommit {
    /// Its whole id.
    id: String,
}

impl Op for ByCommit {
    type Parent = GitRepository;
    type Output = GitRef;
    const NAME: &'static str = "commit";

    async fn run(&self, repository: &GitRepository, cx: &Context) -> Result<GitRef, Error> {
        if compat::is_before(cx, STRICT) {
            return repository.any(&self.id, cx).await;
        }
        if !is_commit_id(&self.id) {
            let shown: String = self.id.chars().take(100).collect();
            return Err(Error::user(format!("invalid commit SHA: `{shown}`"))
                .with_hint("give all its digits, or use `branch`, `tag` or `ref` for a name"));
        }
        let id = self.id.to_lowercase();
        Ok(repository.reference(Named { name: id.clone(), commit: id }))
    }
}

/// The tag of the highest version, such as `v1.2.3`.
#[derive(Args)]
struct LatestVersion {}

impl Op for LatestVersion {
    type Parent = GitRepository;
    type Output = GitRef;
    const NAME: &'static str = "latestVersion";

    async fn run(&self, repository: &GitRepository, cx: &Context) -> Result<GitRef, Error> {
        let refs = repository.source.refs(cx).await?;
        Ok(repository.reference(refs.latest_version().map_err(told)?))
    }
}

/// Names of tags, sorted.
#[derive(Args)]
struct Tags {
    /// Only those that match one of these, as for `git ls-remote`: `v*` matches the last part of a name, `refs/tags/v*` all
    /// of it.
    patterns: Option<Vec<String>>,
}

impl Op for Tags {
    type Parent = GitRepository;
    type Output = Vec<String>;
    const NAME: &'static str = "tags";

    async fn run(&self, repository: &GitRepository, cx: &Context) -> Result<Vec<String>, Error> {
        let patterns = self.patterns.as_deref().unwrap_or_default();
        Ok(repository.source.refs(cx).await?.tags(patterns))
    }
}

/// Names of branches, sorted.
#[derive(Args)]
struct Branches {
    /// Only those that match one of these, as for `git ls-remote`: `v*` matches the last part of a name, `refs/heads/v*`
    /// all of it.
    patterns: Option<Vec<String>>,
}

impl Op for Branches {
    type Parent = GitRepository;
    type Output = Vec<String>;
    const NAME: &'static str = "branches";

    async fn run(&self, repository: &GitRepository, cx: &Context) -> Result<Vec<String>, Error> {
        let patterns = self.patterns.as_deref().unwrap_or_default();
        Ok(repository.source.refs(cx).await?.branches(patterns))
    }
}

/// Where the repository is; null for one that a directory holds.
#[derive(Args)]
struct Url {}

impl Op for Url {
    type Parent = GitRepository;
    type Output = Option<String>;
    const NAME: &'static str = "url";

    async fn run(&self, repository: &GitRepository, cx: &Context) -> Result<Option<String>, Error> {
        repository.source.origin(cx).await
    }
}
