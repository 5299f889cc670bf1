//! `File`: one file in a tree.

mod alter;
mod convert;
mod export;
mod look;
mod read;
mod search;

use crate::looks;
use crate::paths;
use crate::services::Services;
use crate::tree::Tree;
use graph::{Builder, Extensions, Object};
use protocol::{Digest, Error};
use store::{Metadata, Snapshot};

/// A file, as a value.
#[derive(Clone)]
pub struct File {
    tree: Tree,
    /// Below the root of the tree; links in it are not resolved yet.
    path: String,
    /// How the caller named it, for errors.
    typed: Option<String>,
    /// Its name, where that differs from the last part of the path.
    name: Option<String>,
    /// Set by [`File::as_source`].
    identity: Option<Digest>,
}

impl Object for File {
    const TYPE: &'static str = "File";

    fn is_whole(&self, extensions: &Extensions) -> bool {
        extensions.get::<Services>().is_none_or(|services| !self.tree.is_lost(services))
    }
}

/// Adds the fields of `File`.
pub(crate) fn install(builder: &mut Builder) {
    read::install(builder);
    convert::install(builder);
    look::install(builder);
    search::install(builder);
    alter::install(builder);
    export::install(builder);
}

impl File {
    /// The file at a path of a tree. Whether there is one is checked when it is used.
    pub(crate) fn below(tree: Tree, path: &str) -> Self {
        Self { tree, path: path.to_owned(), typed: None, name: None, identity: None }
    }

    /// Remembers how the caller named it.
    pub(crate) fn typed(mut self, typed: &str) -> Self {
        self.typed = Some(typed.to_owned());
        self
    }

    /// The same file under another name.
    pub(crate) fn renamed(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// The name without folders.
    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_else(|| paths::name(&self.path))
    }

    /// Where in its tree it is.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The tree that it is in.
    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The snapshot of the whole tree that this file is in.
    pub(crate) async fn snapshot(&self, services: &Services) -> Result<Snapshot, Error> {
        self.tree.snapshot(services).await
    }

    /// What it is on disk; an error when it is no regular file.
    pub(crate) async fn metadata(&self, services: &Services) -> Result<Metadata, Error> {
        let snapshot = self.snapshot(services).await?;
        let (store, path, typed) = (services.store.clone(), self.path.clone(), self.typed_path());
        services
            .blocking(move || {
                looks::regular_file(&store.view(&snapshot), &path)
                    .map_err(|error| looks::typed(error, &typed))
            })
            .await
    }

    /// A form that an edit may copy from: its content is hashed.
    pub(crate) async fn as_source(&self, services: &Services) -> Result<Self, Error> {
        let snapshot = self.snapshot(services).await?;
        let (store, path, typed) = (services.store.clone(), self.path.clone(), self.typed_path());
        let inner = snapshot.clone();
        let content = services
            .blocking(move || {
                looks::regular_file(&store.view(&inner), &path)
                    .map_err(|error| looks::typed(error, &typed))?;
                Ok::<_, Error>(store.file_digest(&inner, &path)?)
            })
            .await?;
        let mut digest = Digest::builder("file");
        let identity = digest.digest(&content).text(self.name()).finish();
        let tree = Tree::settled(identity, snapshot);
        Ok(Self { tree, identity: Some(identity), ..self.clone() })
    }

    /// For an edit that copies from it.
    pub(crate) fn known_identity(&self) -> Digest {
        self.identity.expect("a source has its identity before it is named in an edit")
    }

    /// For an edit that copies from it: a source is always on disk.
    pub(crate) fn nesting_as_source(&self) -> u32 {
        self.tree.nesting_as_source()
    }

    fn typed_path(&self) -> String {
        self.typed.clone().unwrap_or_else(|| self.path.clone())
    }
}
