//! Fields of `GitRef` that say which one it is.

use super::{GitCommit, GitRef};
use graph::{Args, Builder, Context, Op};
use protocol::Error;

pub(super) fn install(builder: &mut Builder) {
    builder
        .install::<CommitId>()
        .install::<CommitSha>()
        .install::<FullName>()
        .install::<Name>()
        .install::<TargetCommit>();
}

/// The commit's id.
#[derive(Args)]
struct CommitId {}

impl Op for CommitId {
    type Parent = GitRef;
    type Output = String;
    const NAME: &'static str = "commit";

    async fn run(&self, reference: &GitRef, _: &Context) -> Result<String, Error> {
        Ok(reference.named.commit.clone())
    }
}

/// The commit's id.
#[derive(Args)]
struct CommitSha {}

impl Op for CommitSha {
    type Parent = GitRef;
    type Output = String;
    const NAME: &'static str = "commitSHA";

    async fn run(&self, reference: &GitRef, _: &Context) -> Result<String, Error> {
        Ok(reference.named.commit.clone())
    }
}

/// The full name, such as `refs/heads/main`; of a commit its id.
#[derive(Args)]
struct FullName {}

impl Op for FullName {
    type Parent = GitRef;
    type Output = String;
    const NAME: &'static str = "ref";

    async fn run(&self, reference: &GitRef, _: &Context) -> Result<String, Error> {
        Ok(reference.named.name.clone())
    }
}

/// The full name, such as `refs/heads/main`; of a commit its id.
#[derive(Args)]
struct Name {}

impl Op for Name {
    type Parent = GitRef;
    type Output = String;
    const NAME: &'static str = "name";

    async fn run(&self, reference: &GitRef, _: &Context) -> Result<String, Error> {
        Ok(reference.named.name.clone())
    }
}

/// The commit that it names.
#[derive(Args)]
struct TargetCommit {}

impl Op for TargetCommit {
    type Parent = GitRef;
    type Output = GitCommit;
    const NAME: &'static str = "targetCommit";

    async fn run(&self, reference: &GitRef, _: &Context) -> Result<GitCommit, Error> {
        Ok(GitCommit::from(reference))
    }
}
