//! [`BuildContext`]: the directory that a Dockerfile is built with, without what its ignore file names.

use super::location;
use super::sources::filtered;
use crate::directory::Directory;
use crate::edit::Filter;
use crate::services::Services;
use crate::tree::Tree;
use protocol::Error;
use std::io::Read;
use store::ViewError;
use tokio::sync::OnceCell;

/// Longest Dockerfile or ignore file.
const MAX_BYTES: u64 = 1 << 20;

/// The files of a build.
pub(super) struct BuildContext {
    whole: Tree,
    /// Patterns of what no instruction sees.
    ignored: Vec<String>,
    visible: OnceCell<Tree>,
}

impl BuildContext {
    /// Reads a Dockerfile and the ignore file that goes with it.
    pub(super) async fn read(
        directory: &Directory,
        dockerfile: &str,
        services: &Services,
    ) -> Result<(Self, String), Error> {
        let whole = directory.as_tree(services).await?;
        let text = read_text(&whole, dockerfile, services).await?.ok_or_else(|| {
            Error::user(format!("{dockerfile}: no such file or directory"))
                .with_hint("name the Dockerfile with `dockerfile`, from the root of the context")
        })?;
        // The one of this Dockerfile goes before the one of the directory.
        let (own, common) = (format!("{dockerfile}.dockerignore"), ".dockerignore".to_owned());
        let mut ignored = vec![];
        for name in [own, common] {
            if let Some(text) = read_text(&whole, &name, services).await? {
                let wrong = |error| location::in_file(&name, &text, error);
                ignored = dockerfile::ignored(&text).map_err(wrong)?;
                break;
            }
        }
        Ok((Self { whole, ignored, visible: OnceCell::new() }, text))
    }

    /// What instructions see.
    pub(super) async fn tree(&self, services: &Services) -> Result<Tree, Error> {
        let filter = || async {
            if self.ignored.is_empty() {
                return Ok(self.whole.clone());
            }
            let filter = Filter { exclude: self.ignored.clone(), ..Filter::default() };
            filtered(&Directory::below(self.whole.clone(), ""), filter, services).await
        };
        self.visible.get_or_try_init(filter).await.cloned()
    }

    /// Whether a path is there and only hidden by the ignore file.
    pub(super) async fn hides(&self, path: &str, services: &Services) -> bool {
        let Ok(snapshot) = self.whole.snapshot(services).await else { return false };
        !self.ignored.is_empty() && services.store.view(&snapshot).resolve(path, true).is_ok()
    }
}

/// The text of a small file; none where there is no such file.
async fn read_text(tree: &Tree, path: &str, services: &Services) -> Result<Option<String>, Error> {
    let snapshot = tree.snapshot(services).await?;
    let (store, path) = (services.store.clone(), path.to_owned());
    services
        .blocking(move || {
            let file = match store.view(&snapshot).read(&path) {
                Err(ViewError::NotFound(_) | ViewError::NotADirectory(_)) => return Ok(None),
                other => other.map_err(|error| crate::looks::typed(error, &path))?,
            };
            let mut bytes = vec![];
            let read = file.take(MAX_BYTES + 1).read_to_end(&mut bytes);
            read.map_err(store::Error::from_read(&path))?;
            if bytes.len() as u64 > MAX_BYTES {
                let message = format!("{path} is longer than {MAX_BYTES} bytes");
                return Err(Error::user(message));
            }
            let text = String::from_utf8(bytes);
            text.map(Some).map_err(|_| Error::user(format!("{path} is not text in UTF-8")))
        })
        .await
}
