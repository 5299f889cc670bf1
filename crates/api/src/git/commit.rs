//! Fields of `GitCommit`, which `GitRef` has too: `GitRepository.commit` made a reference before it made a commit, and
//! clients of both times ask.

use super::{GitCommit, GitRef, Source, told};
use crate::services::Services;
use git::{Commit, Depth, Named, Refs};
use graph::{Args, Builder, Context, Op};
use protocol::Error;

pub(super) fn install(builder: &mut Builder) {
    on_commit::install(builder);
    on_reference::install(builder);
}

/// What both types know.
pub(super) trait OfCommit {
    fn source(&self) -> &Source;
    fn id(&self) -> &str;
    /// The same repository's reference of another name.
    fn sibling(&self, named: Named) -> GitRef;
}

impl OfCommit for GitCommit {
    fn source(&self) -> &Source {
        &self.source
    }

    fn id(&self) -> &str {
        &self.commit
    }

    fn sibling(&self, named: Named) -> GitRef {
        GitRef { source: self.source.clone(), named, discard: self.discard }
    }
}

impl OfCommit for GitRef {
    fn source(&self) -> &Source {
        &self.source
    }

    fn id(&self) -> &str {
        &self.named.commit
    }

    fn sibling(&self, named: Named) -> GitRef {
        self.renamed(named)
    }
}

/// What the commit says of itself.
async fn read(of: &impl OfCommit, cx: &Context) -> Result<Commit, Error> {
    let disk = of.source().with_commits(&[of.id()], Depth::Words, cx).await?;
    let git = cx.get::<Services>()?.git.git();
    Commit::read(git, disk.path(), of.id()).await.map_err(told)
}

/// The tag of a release at the commit itself.
async fn release(of: &impl OfCommit, pre: bool, cx: &Context) -> Result<Option<GitRef>, Error> {
    let refs = of.source().refs(cx).await?;
    Ok(refs.release_of(of.id(), pre).map(|named| of.sibling(named)))
}

/// The tag of the nearest release before the commit.
async fn release_before(
    of: &impl OfCommit,
    pre: bool,
    cx: &Context,
) -> Result<Option<GitRef>, Error> {
    let refs: Refs = of.source().refs(cx).await?;
    let any = refs.tagged().any(|(_, commit)| refs.release_of(commit, pre).is_some());
    if !any {
        return Ok(None);
    }
    let disk = of.source().with_commits(&[of.id()], Depth::History, cx).await?;
    let git = cx.get::<Services>()?.git.git();
    let before = git::history::ancestors(git, disk.path(), of.id()).await.map_err(told)?;
    let nearest = before.iter().find_map(|commit| refs.release_of(commit, pre));
    Ok(nearest.map(|named| of.sibling(named)))
}

/// One field that is a text of the commit, an op on `$parent`.
macro_rules! text_field {
    ($(#[doc = $doc:literal])+ $op:ident, $name:literal, $parent:ty, $output:ty, $value:expr) => {
        $(#[doc = $doc])+
        #[derive(Args)]
        struct $op {}

        impl Op for $op {
            type Parent = $parent;
            type Output = $output;
            const NAME: &'static str = $name;

            async fn run(&self, of: &$parent, cx: &Context) -> Result<$output, Error> {
                let value: fn(Commit) -> $output = $value;
                Ok(value(read(of, cx).await?))
            }
        }
    };
}

/// All fields of a commit on one type.
macro_rules! commit_fields {
    ($module:ident, $parent:ty) => {
        mod $module {
            use super::*;

            text_field!(
                /// The whole message.
                Message, "message", $parent, String, |commit| commit.message
            );
            text_field!(
                /// First paragraph of the message.
                Headline, "messageHeadline", $parent, String, |commit| commit.headline()
            );
            text_field!(
                /// What the message says after its first paragraph.
                Body, "messageBody", $parent, String, |commit| commit.body()
            );
            text_field!(
                /// Who wrote the change.
                AuthorName, "authorName", $parent, String, |commit| commit.author.name
            );
            text_field!(
                /// Address of who wrote the change.
                AuthorEmail, "authorEmail", $parent, String, |commit| commit.author.email
            );
            text_field!(
                /// When the change was written, as in `2026-01-31T12:00:00+01:00`.
                AuthoredDate, "authoredDate", $parent, String, |commit| commit.author.date
            );
            text_field!(
                /// Who made the commit.
                CommitterName, "committerName", $parent, String, |commit| commit.committer.name
            );
            text_field!(
                /// Address of who made the commit.
                CommitterEmail, "committerEmail", $parent, String, |commit| commit.committer.email
            );
            text_field!(
                /// When the commit was made, as in `2026-01-31T12:00:00+01:00`.
                CommittedDate, "committedDate", $parent, String, |commit| commit.committer.date
            );
            text_field!(
                /// Ids of the commits that it follows.
                ParentShas, "parentShas", $parent, Vec<String>, |commit| commit.parents
            );

            /// The commit's id.
            #[derive(Args)]
            struct Sha {}

            impl Op for Sha {
                type Parent = $parent;
                type Output = String;
                const NAME: &'static str = "sha";

                async fn run(&self, of: &$parent, _: &Context) -> Result<String, Error> {
                    Ok(of.id().to_owned())
                }
            }

            /// The first digits of the commit's id.
            #[derive(Args)]
            struct ShortSha {}

            impl Op for ShortSha {
                type Parent = $parent;
                type Output = String;
                const NAME: &'static str = "shortSha";

                async fn run(&self, of: &$parent, _: &Context) -> Result<String, Error> {
                    Ok(of.id().chars().take(7).collect())
                }
            }

            /// The tag of a version at this commit; null when there is none.
            #[derive(Args)]
            struct ReleaseTag {
                /// Whether versions before a release count, such as `v1.0.0-rc1`.
                #[arg(default = "false")]
                include_pre_release: bool,
            }

            impl Op for ReleaseTag {
                type Parent = $parent;
                type Output = Option<GitRef>;
                const NAME: &'static str = "releaseTag";

                async fn run(&self, of: &$parent, cx: &Context) -> Result<Option<GitRef>, Error> {
                    release(of, self.include_pre_release, cx).await
                }
            }

            /// The tag of the nearest version before this commit; null when there is none.
            #[derive(Args)]
            struct AncestorReleaseTag {
                /// Whether versions before a release count, such as `v1.0.0-rc1`.
                #[arg(default = "false")]
                include_pre_release: bool,
            }

            impl Op for AncestorReleaseTag {
                type Parent = $parent;
                type Output = Option<GitRef>;
                const NAME: &'static str = "ancestorReleaseTag";

                async fn run(&self, of: &$parent, cx: &Context) -> Result<Option<GitRef>, Error> {
                    release_before(of, self.include_pre_release, cx).await
                }
            }

            pub(super) fn install(builder: &mut Builder) {
                builder
                    .install::<Message>()
                    .install::<Headline>()
                    .install::<Body>()
                    .install::<AuthorName>()
                    .install::<AuthorEmail>()
                    .install::<AuthoredDate>()
                    .install::<CommitterName>()
                    .install::<CommitterEmail>()
                    .install::<CommittedDate>()
                    .install::<ParentShas>()
                    .install::<Sha>()
                    .install::<ShortSha>()
                    .install::<ReleaseTag>()
                    .install::<AncestorReleaseTag>();
            }
        }
    };
}

commit_fields!(on_commit, GitCommit);
commit_fields!(on_reference, GitRef);
