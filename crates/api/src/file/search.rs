//! `File.search`.

use super::File;
use crate::search::{self, Search, SearchResult};
use crate::services::Services;
use graph::{Args, Builder, Context, Op};
use protocol::Error;

pub(super) fn install(builder: &mut Builder) {
    builder.install::<SearchFile>();
}

/// Lines of the file that match a pattern. Results call the file by its name.
#[derive(Args)]
#[expect(dead_code, reason = "clients give what says something about directories here too")]
struct SearchFile {
    #[arg(group)]
    search: Search,
    /// Has no effect on a file.
    #[arg(default = "false")]
    skip_ignored: bool,
    /// Has no effect on a file.
    #[arg(default = "false")]
    skip_hidden: bool,
    /// Has no effect on a file.
    #[arg(default = "[]")]
    paths: Vec<String>,
    /// Has no effect on a file.
    #[arg(default = "[]")]
    globs: Vec<String>,
}

impl Op for SearchFile {
    type Parent = File;
    type Output = Vec<SearchResult>;
    const NAME: &'static str = "search";

    async fn run(&self, file: &File, cx: &Context) -> Result<Vec<SearchResult>, Error> {
        let services = cx.get::<Services>()?;
        file.metadata(services).await?;
        let place = (file.snapshot(services).await?, file.path.clone());
        search::in_file(place, file.name().to_owned(), self.search.clone(), cx).await
    }
}
