//! `Directory.search`.

use super::Directory;
use crate::paths;
use crate::search::{self, Search, SearchResult};
use crate::services::Services;
use graph::{Args, Builder, Context, Op};
use protocol::Error;
use store::Visit;

pub(super) fn install(builder: &mut Builder) {
    builder.install::<SearchFiles>();
}

/// Lines of files in the directory that match a pattern, in the order of paths. Files that are no text
/// are passed over, links are not followed.
#[derive(Args)]
struct SearchFiles {
    /// Files and directories to look at, from the root of this directory; empty looks at all.
    #[arg(default = "[]")]
    paths: Vec<String>,
    /// Globs of files to look at, such as `*.rs`; after `!`, of files to pass over.
    #[arg(default = "[]")]
    globs: Vec<String>,
    #[arg(group)]
    search: Search,
    /// Pass over what `.gitignore`, `.ignore` and `.rgignore` files name.
    #[arg(default = "false")]
    skip_ignored: bool,
    /// Pass over what begins with a dot.
    #[arg(default = "false")]
    skip_hidden: bool,
}

impl Op for SearchFiles {
    type Parent = Directory;
    type Output = Vec<SearchResult>;
    const NAME: &'static str = "search";

    async fn run(&self, directory: &Directory, cx: &Context) -> Result<Vec<SearchResult>, Error> {
        let outside = |path: &&String| paths::climbs_out(path);
        if let Some(path) = self.paths.iter().find(outside) {
            let path = crate::looks::shown(path);
            return Err(Error::user(format!("path cannot escape directory: {path}")));
        }
        let visit = Visit {
            paths: self.paths.clone(),
            globs: self.globs.clone(),
            skip_hidden: self.skip_hidden,
            skip_ignored: self.skip_ignored,
        };
        let snapshot = directory.subtree(cx.get::<Services>()?).await?;
        search::in_directory(snapshot, visit, self.search.clone(), cx).await
    }
}
