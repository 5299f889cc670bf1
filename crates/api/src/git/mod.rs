//! `GitRepository`, `GitRef` and `GitCommit`: repositories elsewhere and in directories, and what they have.
//!
//! [`Source`] is where a repository is: a [`Remote`], whose commits are fetched into a mirror in the store, or [`Local`],
//! a directory that holds one. All that git does is done by [`Service`]. What a repository has is asked once a session,
//! with the caller's own credentials, so nobody gets anything that the remote would not give them.

mod access;
mod address;
mod agent;
mod commit;
mod construct;
mod history;
mod lfs;
mod local;
mod named;
mod reference;
mod remote;
mod repository;
mod service;
mod source;
mod submodules;
mod tree;
mod uncommitted;

pub(crate) use access::Given;
pub(crate) use address::GitAddress;
use address::is_remote;
pub use service::Service;
pub(crate) use source::Source;

use git::Named;
use graph::{Builder, Object};

/// A repository.
#[derive(Clone)]
pub(crate) struct GitRepository {
    source: Source,
    /// Whether trees of it have no `.git` unless somebody asks for one.
    discard: bool,
}

/// A commit by the name it was found under.
#[derive(Clone)]
pub(crate) struct GitRef {
    source: Source,
    named: Named,
    discard: bool,
}

/// A commit.
#[derive(Clone)]
pub(crate) struct GitCommit {
    source: Source,
    commit: String,
    discard: bool,
}

impl Object for GitRepository {
    const TYPE: &'static str = "GitRepository";
}

impl Object for GitRef {
    const TYPE: &'static str = "GitRef";
}

impl Object for GitCommit {
    const TYPE: &'static str = "GitCommit";
}

impl GitRepository {
    fn of(source: Source) -> Self {
        Self { source, discard: false }
    }

    fn reference(&self, named: Named) -> GitRef {
        GitRef { source: self.source.clone(), named, discard: self.discard }
    }
}

impl GitRef {
    /// The commit under another name.
    fn renamed(&self, named: Named) -> Self {
        Self { named, ..self.clone() }
    }
}

impl From<&GitRef> for GitCommit {
    fn from(reference: &GitRef) -> Self {
        let GitRef { source, named, discard } = reference.clone();
        Self { source, commit: named.commit, discard }
    }
}

/// Adds the fields of these types, and those of others that make them.
pub(crate) fn install(builder: &mut Builder) {
    construct::install(builder);
    repository::install(builder);
    reference::install(builder);
    commit::install(builder);
    history::install(builder);
    named::install(builder);
    tree::install(builder);
    uncommitted::install(builder);
}

/// An error of git, as users see it.
fn told(error: git::Error) -> protocol::Error {
    let kind = match &error {
        git::Error::NotThere(_) | git::Error::Authentication { .. } => protocol::ErrorKind::User,
        git::Error::Odd(_) | git::Error::File { .. } => protocol::ErrorKind::Internal,
        _ => protocol::ErrorKind::Environment,
    };
    let told = protocol::Error::new(kind, error.to_string());
    match error.hint() {
        Some(hint) => told.with_hint(hint),
        None => told,
    }
}
