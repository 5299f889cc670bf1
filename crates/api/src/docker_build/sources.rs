//! What instructions take files from: paths with patterns, parts of trees.

use crate::directory::Directory;
use crate::edit::{Edit, Filter};
use crate::owner::OwnerSpec;
use crate::services::Services;
use crate::tree::Tree;
use dockerfile::{PathPart, PathPattern};
use protocol::Error;
use store::{Kind, View, ViewError};

/// An entry that a copy names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    /// As it was named or matched, links not followed.
    pub(super) path: String,
    pub(super) kind: Kind,
}

/// A part of a directory as a tree of its own, known by what is in it: what was left out does not matter
/// to who builds on it.
pub(super) async fn filtered(
    directory: &Directory,
    filter: Filter,
    services: &Services,
) -> Result<Tree, Error> {
    let source = directory.as_source(services).await?;
    let (path, mode, owner) = (String::new(), None, OwnerSpec::Source);
    let edit = Edit::CopyDirectory { source, path, filter, mode, owner };
    let part = Tree::empty().edited(edit, services).await?;
    Ok(Tree::taken_out(part.snapshot(services).await?))
}

/// What is at a path or matches a pattern, links followed.
pub(super) async fn named(
    tree: &Tree,
    pattern: PathPattern,
    services: &Services,
) -> Result<Vec<Named>, Error> {
    let snapshot = tree.snapshot(services).await?;
    let store = services.store.clone();
    services
        .blocking(move || {
            let view = store.view(&snapshot);
            let looked = |path: String| {
                let found = view.resolve(&path, true)?;
                Ok(Named { path, kind: found.metadata.kind })
            };
            let paths = matched(&view, &pattern).map_err(store::Error::from)?;
            let named: Result<Vec<Named>, ViewError> = paths.into_iter().map(looked).collect();
            named.map_err(store::Error::from)
        })
        .await
}

/// The paths that a pattern matches, sorted. One without patterns is itself, whether it is there or not.
fn matched(view: &View, pattern: &PathPattern) -> Result<Vec<String>, ViewError> {
    let mut found = vec![String::new()];
    let mut widened = false;
    for (index, part) in pattern.parts().iter().enumerate() {
        let last = index + 1 == pattern.parts().len();
        let mut next = vec![];
        for above in found {
            let join = |name: &str| match above.is_empty() {
                true => name.to_owned(),
                false => format!("{above}/{name}"),
            };
            match part {
                PathPart::Name(name) => {
                    let path = join(name);
                    if !widened || view.stat_link(&path).is_ok() {
                        next.push(path);
                    }
                }
                PathPart::Pattern(pattern) => {
                    let entries = match view.read_dir(&above) {
                        Err(ViewError::NotFound(_) | ViewError::NotADirectory(_)) => continue,
                        other => other?,
                    };
                    let fits = entries.iter().filter(|entry| {
                        pattern.is_match(&entry.name) && (last || entry.metadata.is_directory())
                    });
                    next.extend(fits.map(|entry| join(&entry.name)));
                }
            }
        }
        widened |= matches!(part, PathPart::Pattern(_));
        found = next;
    }
    Ok(found)
}
