//! [`Tree`]: an immutable file tree whose bytes may not have been written yet.
//!
//! A tree has an identity, known at once, and a snapshot, made when somebody needs the bytes. File
//! operations stack up as [`Edit`]s and are written together, in one layer, when the first reader or
//! exec comes; an exec that is a cache hit never writes them at all. Where that may be many files, because a directory
//! was copied or changed hands, what was written is remembered beyond the session.
//!
//! Chains of edits are walked in loops, never by recursion: pipelines of many thousand steps are
//! ordinary. Sources of copies nest by recursion, so they are settled before they nest deep.

use crate::edit::{Edit, Prepared};
use crate::services::Services;
use protocol::{Digest, Error};
use std::sync::Arc;
use store::{Needs, Remembered, Snapshot};
use tokio::sync::OnceCell;

/// Version of what is remembered of written trees, and of how edits are written.
const FORMAT: u64 = 1;

/// How deep sources of copies may nest unwritten. Writing them recurses once a level.
const MAX_UNWRITTEN_NESTING: u32 = 32;

/// How many trees are looked at to find out whether one is lost. What is made of more counts as
/// lost: making it again is cheap.
const MAX_LOOKS: u32 = 4_096;

/// A file tree: cheap to clone, compared by identity.
#[derive(Clone)]
pub(crate) struct Tree(Arc<Node>);

struct Node {
    /// Unset only for trees taken out of an object, until their content is hashed.
    identity: OnceCell<Digest>,
    snapshot: OnceCell<Snapshot>,
    /// Apart, because most trees are written and have none.
    origin: Option<Box<Origin>>,
    nesting: u32,
    /// Whether all edits since the one before that says so become a layer of their own.
    ends_layer: bool,
}

/// What an unwritten tree is made from.
struct Origin {
    parent: Tree,
    edit: Edit,
}

impl Tree {
    /// The empty directory.
    pub(crate) fn empty() -> Self {
        Self::settled(Digest::builder("tree:empty").finish(), Snapshot::empty())
    }

    /// Whether this is the empty directory itself.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.snapshot.get().is_some_and(|snapshot| snapshot.layers().is_empty())
    }

    /// A tree that exists and whose identity is known: an image, an import, the result of an exec.
    pub(crate) fn settled(identity: Digest, snapshot: Snapshot) -> Self {
        Self(Arc::new(Node {
            identity: OnceCell::new_with(Some(identity)),
            snapshot: OnceCell::new_with(Some(snapshot)),
            origin: None,
            nesting: 0,
            ends_layer: false,
        }))
    }

    /// A tree taken out of an object. It is known by its content, hashed when that is first needed,
    /// so that two execs which leave equal trees share what is built on them.
    pub(crate) fn taken_out(snapshot: Snapshot) -> Self {
        Self(Arc::new(Node {
            identity: OnceCell::new(),
            snapshot: OnceCell::new_with(Some(snapshot)),
            origin: None,
            nesting: 0,
            ends_layer: false,
        }))
    }

    /// This tree with one more edit.
    pub(crate) async fn edited(&self, edit: Edit, services: &Services) -> Result<Self, Error> {
        let mut digest = Digest::builder("tree:edit");
        digest.digest(&self.identity(services).await?);
        edit.digest_into(&mut digest);
        let nesting = self.0.nesting.max(edit.nesting());
        Ok(Self(Arc::new(Node {
            identity: OnceCell::new_with(Some(digest.finish())),
            snapshot: OnceCell::new(),
            origin: Some(Box::new(Origin { parent: self.clone(), edit })),
            nesting,
            ends_layer: false,
        })))
    }

    /// This tree with edits that become one layer, apart from those before and after: names of owners are
    /// looked up in the tree below that layer.
    pub(crate) async fn with_layer(
        &self,
        edits: Vec<Edit>,
        services: &Services,
    ) -> Result<Self, Error> {
        let mut tree = self.clone();
        for edit in edits {
            tree = tree.edited(edit, services).await?;
        }
        if let Some(node) = Arc::get_mut(&mut tree.0) {
            node.ends_layer = true;
        }
        Ok(tree)
    }

    /// What the tree is equal under.
    pub(crate) async fn identity(&self, services: &Services) -> Result<Digest, Error> {
        let hash = || async {
            let snapshot = self.snapshot(services).await?;
            let store = services.store.clone();
            services.blocking(move || store.tree_digest(&snapshot)).await
        };
        self.0.identity.get_or_try_init(hash).await.copied()
    }

    /// The bytes, written now if they were not.
    pub(crate) async fn snapshot(&self, services: &Services) -> Result<Snapshot, Error> {
        let write = || async {
            let kept_as = self.unwritten().1.iter().find_map(|edit| edit.kept_as());
            if kept_as.is_some()
                && let Some(known) = self.remembered(services)
            {
                return Ok(known);
            }
            // Oldest first, so that each finds all below it written.
            for layer in self.unwritten_layers() {
                Box::pin(layer.snapshot(services)).await?;
            }
            let (base, edits) = self.unwritten();
            let base = base.0.snapshot.get().cloned().unwrap_or_default();
            let mut prepared = Vec::with_capacity(edits.len());
            for edit in edits {
                prepared.push(Box::pin(edit.prepare(services)).await?);
            }
            let (store, one_layer) = (services.store.clone(), self.0.ends_layer);
            let write = move || match one_layer {
                true => Prepared::apply_as_layer(&prepared, &base, &store),
                false => Prepared::apply_all(&prepared, base, &store),
            };
            let snapshot = services.blocking(write).await?;
            if let Some(label) = kept_as {
                self.remember(&snapshot, label, services)?;
            }
            Ok(snapshot)
        };
        self.0.snapshot.get_or_try_init(write).await.cloned()
    }

    /// What the bytes of a tree of this identity are remembered under.
    fn key(&self) -> Digest {
        Digest::builder("tree:written").number(FORMAT).digest(&self.known_identity()).finish()
    }

    /// The bytes, if they were written before.
    fn remembered(&self, services: &Services) -> Option<Snapshot> {
        let snapshot = postcard::from_bytes(&services.store.action(&self.key())?).ok()?;
        services.store.pin(&snapshot)
    }

    fn remember(
        &self,
        written: &Snapshot,
        label: String,
        services: &Services,
    ) -> Result<(), Error> {
        let value = postcard::to_stdvec(written)
            .map_err(|error| Error::internal(format!("cannot encode a tree: {error}")))?;
        let needs = Needs::new().snapshot(written).encode();
        services.store.put_action(self.key(), Remembered { value, kind: "copy", label, needs });
        Ok(())
    }

    /// A form of this tree that may be named as the source of a copy: its identity is known, and it
    /// is written when too much would nest otherwise.
    pub(crate) async fn as_source(&self, services: &Services) -> Result<Self, Error> {
        let identity = self.identity(services).await?;
        if self.0.nesting < MAX_UNWRITTEN_NESTING {
            return Ok(self.clone());
        }
        Ok(Self::settled(identity, self.snapshot(services).await?))
    }

    /// Whether something that this tree is made of was found missing or damaged.
    pub(crate) fn is_lost(&self, services: &Services) -> bool {
        self.looks_lost(services, &mut MAX_LOOKS.clone())
    }

    pub(crate) fn looks_lost(&self, services: &Services, looks: &mut u32) -> bool {
        let mut tree = self;
        loop {
            let Some(left) = looks.checked_sub(1) else { return true };
            *looks = left;
            if let Some(snapshot) = tree.0.snapshot.get() {
                return services.store.is_lost(snapshot);
            }
            let Some(origin) = &tree.0.origin else { return false };
            if origin.edit.source().is_some_and(|source| source.looks_lost(services, looks)) {
                return true;
            }
            tree = &origin.parent;
        }
    }

    /// The nearest written ancestor and the edits between it and this tree, oldest first.
    fn unwritten(&self) -> (&Tree, Vec<&Edit>) {
        let mut edits = Vec::new();
        let mut tree = self;
        while tree.0.snapshot.get().is_none() {
            let Some(origin) = &tree.0.origin else { break };
            edits.push(&origin.edit);
            tree = &origin.parent;
        }
        edits.reverse();
        (tree, edits)
    }

    /// The trees below this one that end a layer and are not written, oldest first.
    fn unwritten_layers(&self) -> Vec<&Tree> {
        let mut layers = Vec::new();
        let mut tree = self;
        while tree.0.snapshot.get().is_none() {
            let Some(origin) = &tree.0.origin else { break };
            tree = &origin.parent;
            if tree.0.ends_layer && tree.0.snapshot.get().is_none() {
                layers.push(tree);
            }
        }
        layers.reverse();
        layers
    }

    /// One more level of nesting than this tree has, for an edit that copies from it.
    pub(crate) fn nesting_as_source(&self) -> u32 {
        if self.0.snapshot.initialized() { 0 } else { self.0.nesting + 1 }
    }

    /// The identity, for a tree that is made of edits or went through [`Tree::as_source`].
    pub(crate) fn known_identity(&self) -> Digest {
        *self.0.identity.get().expect("an edited tree and a source have their identity at once")
    }
}

impl Drop for Node {
    /// Takes a chain of edits apart in a loop; the derived drop would recurse once an edit.
    fn drop(&mut self) {
        let mut next = self.origin.take().map(|origin| origin.parent);
        while let Some(Tree(node)) = next {
            next = Arc::into_inner(node)
                .and_then(|mut node| node.origin.take())
                .map(|origin| origin.parent);
        }
    }
}
