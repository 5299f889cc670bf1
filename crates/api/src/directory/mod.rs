//! `Directory`: a tree, or a directory somewhere in one.

mod alter;
mod change;
mod export;
mod look;
mod read;
mod search;
mod terminal;
mod write;

use crate::looks;
use crate::paths;
use crate::services::Services;
use crate::tree::Tree;
use graph::{Builder, Extensions, Object};
use protocol::{Digest, Error};
use store::Snapshot;

/// A directory, as a value.
#[derive(Clone)]
pub struct Directory {
    tree: Tree,
    /// Below the root of the tree, as typed; empty for the root. Links in it are not resolved yet.
    path: String,
    /// How the caller named it, for errors.
    typed: Option<String>,
}

impl Object for Directory {
    const TYPE: &'static str = "Directory";

    fn is_whole(&self, extensions: &Extensions) -> bool {
        extensions.get::<Services>().is_none_or(|services| !self.tree.is_lost(services))
    }
}

/// Adds the fields of `Directory`.
pub(crate) fn install(builder: &mut Builder) {
    read::install(builder);
    look::install(builder);
    search::install(builder);
    write::install(builder);
    alter::install(builder);
    change::install(builder);
    export::install(builder);
    terminal::install(builder);
}

impl Directory {
    /// The empty directory.
    pub(crate) fn empty() -> Self {
        Self::below(Tree::empty(), "")
    }

    /// The directory at a path of a tree. Whether there is one is checked when it is used.
    pub(crate) fn below(tree: Tree, path: &str) -> Self {
        Self { tree, path: path.to_owned(), typed: None }
    }

    /// Remembers how the caller named it.
    pub(crate) fn typed(mut self, typed: &str) -> Self {
        self.typed = Some(typed.to_owned());
        self
    }

    /// A directory as the root of a tree of its own, known by its content.
    async fn taken_out(&self, services: &Services) -> Result<Self, Error> {
        let snapshot = self.subtree(services).await?;
        Ok(Self::below(Tree::taken_out(snapshot), ""))
    }

    /// A directory picked from an object: it must be there. The root of a tree is known by its content
    /// from here on; a directory below keeps its tree, so that `..` still leads up.
    pub(crate) async fn selected(self, services: &Services) -> Result<Self, Error> {
        if self.is_root() {
            return self.taken_out(services).await;
        }
        self.subtree(services).await?;
        Ok(self)
    }

    /// A tree whose root is this directory.
    pub(crate) async fn as_tree(&self, services: &Services) -> Result<Tree, Error> {
        if self.is_root() {
            return Ok(self.tree.clone());
        }
        Ok(self.taken_out(services).await?.tree)
    }

    /// A form that an edit may copy from.
    pub(crate) async fn as_source(&self, services: &Services) -> Result<Self, Error> {
        let tree = self.as_tree(services).await?;
        Ok(Self::below(tree.as_source(services).await?, ""))
    }

    /// The tree that it is in.
    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The snapshot of the whole tree that this directory is in.
    pub(crate) async fn snapshot(&self, services: &Services) -> Result<Snapshot, Error> {
        self.tree.snapshot(services).await
    }

    /// Where in its tree it is.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// For an edit that copies from it: see [`Tree::known_identity`].
    pub(crate) fn known_identity(&self) -> Digest {
        self.tree.known_identity()
    }

    /// For an edit that copies from it.
    pub(crate) fn nesting_as_source(&self) -> u32 {
        self.tree.nesting_as_source()
    }

    fn is_root(&self) -> bool {
        matches!(self.path.as_str(), "" | "." | "/")
    }

    /// The snapshot re-rooted at this directory; errors name the path as it was typed.
    async fn subtree(&self, services: &Services) -> Result<Snapshot, Error> {
        let snapshot = self.tree.snapshot(services).await?;
        if self.is_root() {
            return Ok(snapshot);
        }
        let (store, path) = (services.store.clone(), self.path.clone());
        let typed = self.typed.clone().unwrap_or_else(|| path.clone());
        services
            .blocking(move || {
                store.view(&snapshot).subtree(&path).map_err(|error| looks::typed(error, &typed))
            })
            .await
    }

    fn child(&self, path: &str) -> String {
        paths::join(&self.path, path)
    }
}
