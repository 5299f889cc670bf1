//! All layers of an image: which are there, the rest unpacked at the same time, then put together
//! from the lowest up.

use super::AT_ONCE;
use super::origin::{self, Known, Origin};
use super::sources::{Source, blocking};
use super::unpack::{Expected, Unpacked, unpack};
use crate::services::Services;
use futures::{StreamExt as _, TryStreamExt as _};
use graph::Span;
use image::Digest as Sha;
use protocol::{Digest, Error, SpanKind, Unit};
use registry::Progress;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use store::{Snapshot, Store};

/// One layer of an image, and where it is.
#[derive(Clone)]
pub(super) struct Planned {
    pub(super) expected: Expected,
    /// Names this layer with all below it.
    pub(super) chain: Sha,
    pub(super) size: u64,
    pub(super) source: Source,
    /// The repository that has the blob.
    pub(super) repository: Option<String>,
}

/// What is there of a layer before the layers below are.
enum Part {
    /// In the store, and it fits.
    Whole(Known),
    /// In the store; whether it fits is to be seen.
    Alone(Known),
    /// Written, not fitted.
    Unpacked(Box<Unpacked>),
}

/// Names of layers with all below them, lowest first.
pub(super) fn chains(diff_ids: &[Sha]) -> Vec<Sha> {
    let mut chains: Vec<Sha> = Vec::with_capacity(diff_ids.len());
    for diff_id in diff_ids {
        let chain = match chains.last() {
            None => *diff_id,
            Some(below) => Sha::of(format!("{below} {diff_id}").as_bytes()),
        };
        chains.push(chain);
    }
    chains
}

/// What a tree of these layers is equal under, whoever names the image.
pub(super) fn identity(diff_ids: &[Sha]) -> Option<Digest> {
    let chain = *chains(diff_ids).last()?;
    Some(Digest::builder("image:tree").bytes(chain.as_bytes()).finish())
}

/// The tree of an image, with what is missing unpacked now.
pub(super) async fn unpacked(
    planned: Vec<Planned>,
    services: &Arc<Services>,
    span: &Span,
    name: &str,
) -> Result<Snapshot, Error> {
    let store = &services.store;
    let mut parts: Vec<Option<Part>> = planned.iter().map(|layer| present(store, layer)).collect();
    let mut missing: Vec<usize> =
        (0..parts.len()).filter(|number| parts[*number].is_none()).collect();
    // The largest first, so that no long one is left for the end.
    missing.sort_by_key(|number| std::cmp::Reverse(planned[*number].size));
    let tally = Tally::new(&planned, &missing, span, name);
    let work = missing.into_iter().map(|number| {
        let (layer, tally) = (&planned[number], &tally);
        async move { Ok::<_, Error>((number, fetch(layer, store, tally).await?)) }
    });
    let mut work = futures::stream::iter(work).buffer_unordered(AT_ONCE);
    while let Some((number, unpacked)) = work.try_next().await? {
        parts[number] = Some(Part::Unpacked(Box::new(unpacked)));
    }
    drop(work);
    let mut snapshot = Snapshot::empty();
    for (layer, part) in planned.iter().zip(parts) {
        let part = part.ok_or_else(|| Error::internal("a layer was neither found nor unpacked"))?;
        snapshot = put(snapshot, layer, part, (store, &tally)).await?;
    }
    tally.finish();
    Ok(snapshot)
}

/// What the store has of a layer.
fn present(store: &Store, layer: &Planned) -> Option<Part> {
    let whole = origin::known(store, &origin::in_chain(&layer.chain)).map(Part::Whole);
    whole.or_else(|| origin::known(store, &origin::alone(&layer.expected.diff_id)).map(Part::Alone))
}

async fn fetch(layer: &Planned, store: &Store, tally: &Tally) -> Result<Unpacked, Error> {
    let (store, expected) = (store.clone(), layer.expected.clone());
    let work = move |source: &mut (dyn std::io::Read + Send)| unpack(&store, source, &expected);
    let unpacked = layer.source.read(tally.progress(), work).await?;
    tally.unpacked();
    Ok(unpacked)
}

/// Puts a layer on top of those below it.
async fn put(
    below: Snapshot,
    layer: &Planned,
    part: Part,
    (store, tally): (&Store, &Tally),
) -> Result<Snapshot, Error> {
    let unpacked = match part {
        Part::Whole(known) => return Ok(below.push(known.layer)),
        Part::Alone(known) => {
            let (look, under) = (store.clone(), below.clone());
            let usual = blocking(move || Ok(look.has_usual_root(&under)?)).await?;
            if known.describes_root || usual {
                return Ok(below.push(known.layer));
            }
            fetch(layer, store, tally).await?
        }
        Part::Unpacked(unpacked) => *unpacked,
    };
    let (store, layer) = (store.clone(), layer.clone());
    blocking(move || fit(&store, &below, &layer, unpacked)).await
}

/// Fits an unpacked layer onto those below it and remembers it.
fn fit(
    store: &Store,
    below: &Snapshot,
    layer: &Planned,
    unpacked: Unpacked,
) -> Result<Snapshot, Error> {
    let Unpacked { mut builder, blob, size, compression } = unpacked;
    let mattered = builder.fit(below).map_err(|error| {
        let message = format!("image `{}`: {error}", layer.expected.image);
        Error::new(error.kind(), message)
    })?;
    let describes_root = builder.describes_root();
    let known = Known { layer: builder.commit()?, describes_root };
    let diff_id = layer.expected.diff_id;
    let key = if mattered { origin::in_chain(&layer.chain) } else { origin::alone(&diff_id) };
    let named = layer.expected.blob.is_some();
    let repository = layer.repository.clone();
    let origin = Origin { diff_id, blob, size, compression, repository, named };
    origin::remember(store, key, &known, &origin)?;
    // Whether the blob itself is still there matters only to who pushes it.
    origin::keep_blob(store, &blob, size);
    Ok(below.push(known.layer))
}

/// How far the layers of an image are.
struct Tally {
    pull: Option<Span>,
    unpack: Option<Span>,
    bytes: Arc<AtomicU64>,
    all_bytes: u64,
    layers: AtomicU64,
    all_layers: u64,
}

impl Tally {
    fn new(planned: &[Planned], missing: &[usize], span: &Span, name: &str) -> Self {
        let some = !missing.is_empty();
        Self {
            pull: some.then(|| span.child(name, SpanKind::Work)),
            unpack: some.then(|| span.child("unpack layers", SpanKind::Work)),
            bytes: Arc::default(),
            all_bytes: missing.iter().map(|number| planned[*number].size).sum(),
            layers: AtomicU64::new(0),
            all_layers: missing.len() as u64,
        }
    }

    /// For one blob: adds what it is further to the sum.
    fn progress(&self) -> Progress {
        let (span, sum, all) = (self.pull.clone(), self.bytes.clone(), self.all_bytes);
        let before = AtomicU64::new(0);
        Arc::new(move |done, _| {
            let more = done.saturating_sub(before.swap(done, Ordering::Relaxed));
            let now = sum.fetch_add(more, Ordering::Relaxed) + more;
            if let Some(span) = &span {
                span.progress(now, Some(all.max(now)), Unit::Bytes);
            }
        })
    }

    fn unpacked(&self) {
        let done = self.layers.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(span) = &self.unpack {
            span.progress(done, Some(self.all_layers.max(done)), Unit::Items);
        }
    }

    fn finish(&self) {
        self.pull.iter().chain(&self.unpack).for_each(Span::done);
    }
}
