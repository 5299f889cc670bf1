//! From a tree and a configuration to a manifest.
//!
//! Layers that came from an image keep their blobs and so their digests; each of our own layers becomes
//! one layer. The result is remembered by all that went into it, so equal containers give equal bytes
//! in every session. No clock is read: an image was created when the newest entry of our layers was
//! written, or else when the image it began from was.

use super::blobs::Layer;
use super::origin::{decode, encode};
use super::{AT_ONCE, FORMAT, PACKING, blobs};
use crate::services::Services;
use crate::tree::Tree;
use futures::{StreamExt as _, TryStreamExt as _};
use graph::Context;
use image::{
    Compression, Config, Descriptor, Digest as Sha, Family, History, ImageConfig, Manifest,
    Platform, Role, RootFs, rfc3339,
};
use protocol::{Digest, Error};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{LayerRef, Needs, Remembered, Snapshot, Store};

/// Most layers of an image. Some programs take 127, and each later step of somebody adds one.
const MAX_LAYERS: usize = 120;
/// What the history says of a layer of ours.
const MADE_BY: &str = "ci-tool";

/// What an image is made from.
pub(crate) struct Recipe {
    pub(crate) tree: Tree,
    pub(crate) platform: String,
    pub(crate) config: Config,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) base: Option<Arc<Base>>,
    /// How it was made since, where somebody said.
    pub(crate) steps: Vec<Step>,
}

/// A step in the making of a tree, as somebody wrote it down.
#[derive(Clone)]
pub(crate) struct Step {
    /// What was done; empty for what there was before the first step.
    pub(crate) text: String,
    /// The tree after it; none if it touched no file.
    pub(crate) tree: Option<Tree>,
}

/// A step, and how many layers there are after it if it may have made one.
type Counted = (String, Option<usize>);

/// What is kept of the image that a container began from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Base {
    pub(crate) created: Option<String>,
    pub(crate) author: Option<String>,
    pub(crate) os_version: String,
    pub(crate) history: Vec<History>,
    pub(crate) diff_ids: Vec<Sha>,
}

/// The form in which an image goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) family: Family,
    /// How all layers are to be compressed; without a word layers of images stay as they are.
    pub(crate) compression: Option<Compression>,
}

/// An image that can go out.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Assembled {
    /// One layer of the store for each layer.
    pub(super) snapshot: Snapshot,
    pub(super) layers: Vec<Layer>,
    pub(super) config: Vec<u8>,
    pub(super) manifest: Vec<u8>,
    pub(super) platform: String,
    /// As the documents have it, not as the record.
    pub(super) media_type: String,
}

impl Assembled {
    /// What names the manifest.
    pub(super) fn descriptor(&self) -> Descriptor {
        let mut descriptor = Descriptor::of(&self.media_type, &self.manifest);
        descriptor.platform = Some(Platform::parse(&self.platform));
        descriptor
    }

    /// What names the configuration.
    pub(super) fn config_digest(&self) -> Sha {
        Sha::of(&self.config)
    }

    fn pinned(bytes: &[u8], store: &Store) -> Option<Self> {
        let assembled: Self = decode(bytes)?;
        Some(Self { snapshot: store.pin(&assembled.snapshot)?, ..assembled })
    }
}

/// What is known of an image before any byte of it is written.
pub(super) struct Plan<'a> {
    recipe: &'a Recipe,
    form: Form,
    key: Digest,
    rest: Rest,
}

/// What is left to do.
enum Rest {
    /// Nothing: it was made before.
    Nothing(Assembled),
    /// All of it, from these layers.
    All(Snapshot),
}

impl<'a> Plan<'a> {
    /// Looks up what there is.
    pub(super) async fn new(recipe: &'a Recipe, form: Form, cx: &Context) -> Result<Self, Error> {
        let services = cx.get::<Services>()?;
        let key = action(recipe, form, services).await?;
        let known = services.store.action(&key);
        if let Some(known) = known.and_then(|bytes| Assembled::pinned(&bytes, &services.store)) {
            return Ok(Self { recipe, form, key, rest: Rest::Nothing(known) });
        }
        let snapshot = recipe.tree.snapshot(services).await?;
        let store = services.store.clone();
        let snapshot = services.blocking(move || shortened(&store, &snapshot)).await?;
        Ok(Self { recipe, form, key, rest: Rest::All(snapshot) })
    }

    /// How many blobs will be written that nobody has: layers and the configuration.
    pub(super) fn new_blobs(&self, store: &Store) -> usize {
        let Rest::All(snapshot) = &self.rest else { return 0 };
        let numbers = 0..snapshot.layers().len();
        numbers.filter(|number| blobs::is_unpacked(store, snapshot, *number, self.form)).count() + 1
    }

    /// The blobs of layers that came with an image and go out as they are, where there is still something to write.
    pub(super) fn known_blobs(&self, store: &Store) -> Vec<Sha> {
        let Rest::All(snapshot) = &self.rest else { return vec![] };
        let known = |layer: &LayerRef| blobs::known_blob(store, layer, self.form);
        snapshot.layers().iter().filter_map(known).collect()
    }

    /// The image, made now if it was not.
    pub(super) async fn finish(self, cx: &Context) -> Result<Assembled, Error> {
        let (recipe, form) = (self.recipe, self.form);
        let snapshot = match self.rest {
            Rest::Nothing(known) => return Ok(known),
            Rest::All(snapshot) => snapshot,
        };
        let services = cx.get::<Services>()?;
        let numbers = 0..snapshot.layers().len();
        let work = numbers.map(|number| blobs::make(services, &snapshot, number, form, cx));
        let layers: Vec<Layer> =
            futures::stream::iter(work).buffered(AT_ONCE.min(2)).try_collect().await?;
        let steps = counted(&recipe.steps, services).await?;
        let (config, manifest) = documents(recipe, form, (&layers, &steps));
        let assembled = Assembled {
            layers,
            snapshot,
            config,
            manifest,
            platform: recipe.platform.clone(),
            media_type: form.family.media_type(Role::Manifest).to_owned(),
        };
        let needs = Needs::new().snapshot(&assembled.snapshot).encode();
        let label = format!("image {}", Sha::of(&assembled.manifest));
        let value = encode(&assembled)?;
        services.store.put_shortcut(self.key, Remembered { value, kind: "image", label, needs });
        Ok(assembled)
    }
}

/// The image of a recipe, made now if it was not.
pub(super) async fn assemble(
    recipe: &Recipe,
    form: Form,
    cx: &Context,
) -> Result<Assembled, Error> {
    Plan::new(recipe, form, cx).await?.finish(cx).await
}

/// All that goes into an image.
async fn action(recipe: &Recipe, form: Form, services: &Services) -> Result<Digest, Error> {
    let mut digest = Digest::builder("action:image assemble");
    digest.number(FORMAT).number(PACKING);
    digest.digest(&recipe.tree.identity(services).await?).text(&recipe.platform);
    let config = ImageConfig { config: recipe.config.clone(), ..ImageConfig::default() };
    digest.bytes(&config.to_bytes()).number(recipe.annotations.len() as u64);
    for (name, value) in &recipe.annotations {
        digest.text(name).text(value);
    }
    digest.number(form.family as u64);
    digest.number(form.compression.map_or(u64::MAX, |compression| compression as u64));
    for step in &recipe.steps {
        digest.text("step").text(&step.text);
    }
    let base = recipe.base.as_deref().cloned().unwrap_or_default();
    let base = ImageConfig {
        created: base.created,
        author: base.author,
        history: base.history,
        rootfs: RootFs { diff_ids: base.diff_ids, ..RootFs::default() },
        ..ImageConfig::default()
    };
    digest.bytes(&base.to_bytes());
    Ok(digest.finish())
}

/// The same tree in as many layers as an image may have: the oldest of ours become one.
fn shortened(store: &Store, snapshot: &Snapshot) -> Result<Snapshot, Error> {
    let layers = snapshot.layers();
    if layers.len() <= MAX_LAYERS {
        return Ok(snapshot.clone());
    }
    let is_ours = |layer: &LayerRef| super::origin::of(store, layer).is_none();
    let Some(from) = layers.iter().position(is_ours) else { return Ok(snapshot.clone()) };
    let run = layers[from..].iter().take_while(|layer| is_ours(layer)).count();
    // As many as are too many, and the one that they become.
    let needed = layers.len() - MAX_LAYERS + 1;
    let count = if needed <= run { needed } else { layers.len() - from };
    let merged = store.merge(&layers[from..from + count])?;
    let before = layers[..from].iter().cloned();
    Ok(before.chain([merged]).chain(layers[from + count..].iter().cloned()).collect())
}

/// Configuration and manifest of the layers.
fn documents(
    recipe: &Recipe,
    form: Form,
    (layers, steps): (&[Layer], &[Counted]),
) -> (Vec<u8>, Vec<u8>) {
    let base = recipe.base.as_deref().cloned().unwrap_or_default();
    let diff_ids: Vec<Sha> = layers.iter().map(|layer| layer.diff_id).collect();
    let newest = layers.iter().filter_map(|layer| layer.newest).max();
    let created = newest.map(rfc3339).or(base.created.clone());
    let mut platform = Platform::parse(&recipe.platform);
    platform.os_version = base.os_version.clone();
    let config = ImageConfig {
        created,
        author: base.author.clone(),
        platform,
        config: recipe.config.clone(),
        history: history(&base, layers, steps),
        rootfs: RootFs { diff_ids, ..RootFs::default() },
    };
    let config = config.to_bytes();
    let named = Descriptor::of(form.family.media_type(Role::Config), &config);
    let layers = layers.iter().map(|layer| {
        let media_type = form.family.media_type(Role::Layer(layer.compression));
        let mut descriptor = Descriptor::new(media_type, layer.digest, layer.size);
        if let Some(index) = &layer.index {
            descriptor.annotations.extend(index.annotations());
        }
        descriptor
    });
    let mut manifest = Manifest::new(form.family, named, layers.collect());
    manifest.annotations.clone_from(&recipe.annotations);
    (config, manifest.to_bytes())
}

/// How many layers there are after each step. Trees of steps are written before those that stand on them.
async fn counted(steps: &[Step], services: &Services) -> Result<Vec<Counted>, Error> {
    let mut counted = Vec::with_capacity(steps.len());
    for step in steps {
        let layers = match &step.tree {
            Some(tree) => Some(tree.snapshot(services).await?.layers().len()),
            None => None,
        };
        counted.push((step.text.clone(), layers));
    }
    Ok(counted)
}

/// One step for each layer: those of the image it began from, as far as they are there, those that
/// somebody wrote down, and ours.
fn history(base: &Base, layers: &[Layer], steps: &[Counted]) -> Vec<History> {
    let kept = layers.len() >= base.diff_ids.len()
        && layers.iter().zip(&base.diff_ids).all(|(layer, base)| layer.diff_id == *base);
    let known = base.history.iter().filter(|step| !step.empty_layer).count();
    let (mut history, mut at) = match kept && known == base.diff_ids.len() {
        true => (base.history.clone(), base.diff_ids.len()),
        false => (vec![], 0),
    };
    let made = |layer: &Layer, text: &str| History {
        created: layer.newest.map(rfc3339),
        created_by: text.to_owned(),
        ..History::default()
    };
    // Steps of a tree that is not this one say nothing.
    let most = steps.iter().filter_map(|(_, count)| *count).max().unwrap_or(0);
    for (text, count) in steps.iter().filter(|_| most <= layers.len()) {
        let end = count.unwrap_or(at).max(at);
        let wrote = end > at;
        let own = end - usize::from(wrote && !text.is_empty());
        history.extend(layers[at..own].iter().map(|layer| made(layer, MADE_BY)));
        match text.is_empty() {
            true => {}
            false if wrote => history.push(made(&layers[own], text)),
            false => {
                let created_by = text.clone();
                history.push(History { created_by, empty_layer: true, ..History::default() });
            }
        }
        at = end;
    }
    history.extend(layers[at..].iter().map(|layer| made(layer, MADE_BY)));
    history
}
