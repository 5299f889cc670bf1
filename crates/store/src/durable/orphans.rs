//! Layers that nobody knows: an engine ended between making them and committing a row that names
//! them. They are collected after a start, in the background, because there may be many.

use super::inspector::Inspector;
use super::manifest::is_named_by;
use crate::snapshot::LayerId;
use std::fs;

/// Moves every layer and manifest to the trash that neither the database nor this process knows.
/// Ends early when `stop` says so.
pub(crate) fn collect(inspector: &Inspector, stop: &dyn Fn() -> bool) {
    let layers = inspector.state.path().join("layers");
    let Some(known) = inspector.database.manifests() else { return };
    let mut count = 0;
    for folder in fs::read_dir(&layers).into_iter().flatten().flatten() {
        for entry in fs::read_dir(folder.path()).into_iter().flatten().flatten() {
            if stop() {
                return;
            }
            let name = entry.file_name();
            let (id, ending) = parse(&name.to_string_lossy());
            let is_known = id.is_some_and(|id| {
                let digest = known.get(&id);
                let named = match &ending {
                    None => digest.is_some(),
                    Some(ending) => digest.is_some_and(|digest| is_named_by(ending, digest)),
                };
                named || inspector.state.durable().is_trusted(id)
            });
            if !is_known {
                count += 1;
                inspector.state.trash().discard(&entry.path());
            }
        }
    }
    if count > 0 {
        tracing::info!(count, "layers and manifests that nobody knows were collected");
    }
}

/// The layer that a name belongs to, and its ending.
fn parse(name: &str) -> (Option<LayerId>, Option<String>) {
    match name.split_once('.') {
        Some((id, ending)) => (id.parse().ok(), Some(ending.to_owned())),
        None => (name.parse().ok(), None),
    }
}
