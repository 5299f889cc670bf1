//! Fields of `GitRef` that look at histories: `log` and `commonAncestor`.

use super::{GitCommit, GitRef, told};
use crate::services::Services;
use git::history::{self, Range};
use git::{Depth, Named};
use graph::{Args, Builder, Context, Op, Ref};
use protocol::Error;

pub(super) fn install(builder: &mut Builder) {
    builder.install::<CommonAncestor>().install::<Log>();
}

/// The newest commit that both have in their histories.
#[derive(Args)]
struct CommonAncestor {
    /// The other one, of this repository or another.
    other: Ref<GitRef>,
}

impl Op for CommonAncestor {
    type Parent = GitRef;
    type Output = GitRef;
    const NAME: &'static str = "commonAncestor";

    async fn run(&self, reference: &GitRef, cx: &Context) -> Result<GitRef, Error> {
        let other = self.other.arc();
        let one = &reference.named.commit;
        let disk = reference.source.with_commits(&[one], Depth::History, cx).await?;
        let second = &other.named.commit;
        let others = other.source.with_commits(&[second], Depth::History, cx).await?;
        let git = cx.get::<Services>()?.git.git();
        let range = Range { repository: disk.path(), other: Some(others.path()) };
        let found = history::common_ancestor(git, &range, one, second).await.map_err(told)?;
        let none = || {
            Error::user(format!(
                "`{}` and `{}` have no commit in common",
                reference.named.name, other.named.name
            ))
        };
        let commit = found.ok_or_else(none)?;
        Ok(reference.renamed(Named { name: commit.clone(), commit }))
    }
}

/// More commits than this are read from the whole history, which serves every later question too.
const MOST_RECENT: u32 = 1000;
/// How many commits are looked at for those that changed a path, before all are.
const STEPS: [u32; 2] = [100, MOST_RECENT];

/// Commits of the history, newest first.
#[derive(Args)]
struct Log {
    /// How many at most.
    #[arg(default = "10")]
    limit: i64,
    /// Only those that changed one of these paths.
    paths: Option<Vec<String>>,
    /// Only those that are not in the history of this one, of this repository or another.
    base: Option<Ref<GitRef>>,
}

impl Op for Log {
    type Parent = GitRef;
    type Output = Vec<GitCommit>;
    const NAME: &'static str = "log";

    async fn run(&self, reference: &GitRef, cx: &Context) -> Result<Vec<GitCommit>, Error> {
        let limit = u32::try_from(self.limit).ok().filter(|limit| *limit >= 1);
        let limit = limit.ok_or_else(|| Error::user("limit must be at least 1"))?;
        let paths = self.paths.as_deref().unwrap_or_default();
        for depth in self.depths(limit) {
            let found = self.read(reference, (limit, paths), depth, cx).await?;
            let Some(commits) = found else { continue };
            let one = |commit| GitCommit { commit, ..GitCommit::from(reference) };
            return Ok(commits.into_iter().map(one).collect());
        }
        Err(Error::environment(format!("the history of `{}` is incomplete", reference.named.name)))
    }
}

impl Log {
    /// How much of the history may do, from little to all. Where another one leaves it is seen only in all of both.
    fn depths(&self, limit: u32) -> Vec<Depth> {
        let few = |count: &u32| self.base.is_none() && (limit..=MOST_RECENT).contains(count);
        match self.paths.as_deref().unwrap_or_default() {
            [] => {
                [limit].into_iter().filter(few).map(Depth::Last).chain([Depth::History]).collect()
            }
            // Whether a path was changed is seen by its name and what it stands for.
            _ => {
                STEPS.into_iter().filter(few).map(Depth::LastNames).chain([Depth::Names]).collect()
            }
        }
    }

    /// The commits, if so much of the history tells.
    async fn read(
        &self,
        reference: &GitRef,
        wanted: (u32, &[String]),
        depth: Depth,
        cx: &Context,
    ) -> Result<Option<Vec<String>>, Error> {
        let commit = &reference.named.commit;
        let disk = reference.source.with_commits(&[commit], depth, cx).await?;
        let base = match &self.base {
            None => None,
            Some(base) => {
                let base = base.arc();
                let wanted = [&*base.named.commit];
                let disk = base.source.with_commits(&wanted, depth, cx).await?;
                Some((base, disk))
            }
        };
        let git = cx.get::<Services>()?.git.git();
        let range =
            Range { repository: disk.path(), other: base.as_ref().map(|(_, disk)| disk.path()) };
        let without = base.as_ref().map(|(base, _)| base.named.commit.as_str());
        history::log(git, &range, (commit, without), wanted).await.map_err(told)
    }
}
