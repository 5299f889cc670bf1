//! `File.search`.

use super::File;
use crate::search::{self, Pattern, Search, SearchResult};
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
    /// What to look for: a regular expression, or a text with `literal`.
    pattern: String,
    /// Take the pattern as a text.
    #[arg(default = "false")]
    literal: bool,
    /// Let matches span lines.
    #[arg(default = "false")]
    multiline: bool,
    /// Let `.` match the end of a line, where matches may span lines.
    #[arg(default = "false")]
    dotall: bool,
    /// Take small and capital letters as the same.
    #[arg(default = "false")]
    insensitive: bool,
    /// Has no effect on a file.
    #[arg(default = "false")]
    skip_ignored: bool,
    /// Has no effect on a file.
    #[arg(default = "false")]
    skip_hidden: bool,
    /// Tell only whether something matches.
    #[arg(default = "false")]
    files_only: bool,
    /// Most results.
    limit: Option<i64>,
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
        let search = Search {
            pattern: Pattern {
                text: self.pattern.clone(),
                literal: self.literal,
                multiline: self.multiline,
                dotall: self.dotall,
                insensitive: self.insensitive,
            },
            files_only: self.files_only,
            limit: search::limit(self.limit)?,
        };
        let services = cx.get::<Services>()?;
        file.metadata(services).await?;
        let place = (file.snapshot(services).await?, file.path.clone());
        search::in_file(place, file.name().to_owned(), search, cx).await
    }
}
