//! Fields of `Directory` that look at it.

use super::Directory;
use crate::file::File;
use crate::services::Services;
use crate::{compat, looks, paths};
use graph::{Args, Builder, Context, Op, OwnId};
use protocol::Error;

pub(super) fn install(builder: &mut Builder) {
    builder
        .install::<Entries>()
        .install::<GetFile>()
        .install::<GetDirectory>()
        .install::<Name>()
        .install::<Sync>();
}

/// Names of everything in the directory, sorted; those of directories end with a slash.
#[derive(Args)]
struct Entries {
    /// A directory below this one.
    path: Option<String>,
}

impl Op for Entries {
    type Parent = Directory;
    type Output = Vec<String>;
    const NAME: &'static str = "entries";

    async fn run(&self, directory: &Directory, cx: &Context) -> Result<Vec<String>, Error> {
        let services = cx.get::<Services>()?;
        let snapshot = directory.snapshot(services).await?;
        let asked = self.path.clone().unwrap_or_default();
        let path = directory.child(&asked);
        let typed = if asked.is_empty() { path.clone() } else { asked };
        let (store, marks) = (services.store.clone(), compat::marks_directories(cx));
        services
            .blocking(move || {
                let view = store.view(&snapshot);
                let entries = view.read_dir(&path).map_err(|error| looks::typed(error, &typed))?;
                Ok::<_, Error>(entries.iter().map(|entry| looks::marked(entry, marks)).collect())
            })
            .await
    }
}

/// A file in the directory.
#[derive(Args)]
struct GetFile {
    /// Where it is.
    path: String,
}

impl Op for GetFile {
    type Parent = Directory;
    type Output = File;
    const NAME: &'static str = "file";

    async fn run(&self, directory: &Directory, cx: &Context) -> Result<File, Error> {
        let path = directory.child(&self.path);
        let file = File::below(directory.tree.clone(), &path).typed(&self.path);
        file.metadata(cx.get::<Services>()?).await?;
        Ok(file)
    }
}

/// A directory in the directory.
#[derive(Args)]
struct GetDirectory {
    /// Where it is. `..` goes up, as far as the root of the tree.
    path: String,
}

impl Op for GetDirectory {
    type Parent = Directory;
    type Output = Directory;
    const NAME: &'static str = "directory";

    async fn run(&self, directory: &Directory, cx: &Context) -> Result<Directory, Error> {
        let path = directory.child(&self.path);
        let found = Directory::below(directory.tree.clone(), &path).typed(&self.path);
        found.selected(cx.get::<Services>()?).await
    }
}

/// The directory's own name with a slash; `/` for the root of a tree.
#[derive(Args)]
struct Name {}

impl Op for Name {
    type Parent = Directory;
    type Output = String;
    const NAME: &'static str = "name";

    async fn run(&self, directory: &Directory, cx: &Context) -> Result<String, Error> {
        directory.subtree(cx.get::<Services>()?).await?;
        let tidy = paths::absolute("/", &directory.path);
        match paths::name(&tidy) {
            "" => Ok("/".to_owned()),
            name if compat::marks_directories(cx) => Ok(format!("{name}/")),
            name => Ok(name.to_owned()),
        }
    }
}

/// Makes everything behind the directory, and gives its id.
#[derive(Args)]
struct Sync {}

impl Op for Sync {
    type Parent = Directory;
    type Output = OwnId;
    const NAME: &'static str = "sync";

    async fn run(&self, directory: &Directory, cx: &Context) -> Result<OwnId, Error> {
        directory.subtree(cx.get::<Services>()?).await?;
        Ok(OwnId)
    }
}
