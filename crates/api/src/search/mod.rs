//! Looking for a pattern in files, with ripgrep's own libraries.
//!
//! The store hands over files of a tree on several threads, in no order; [`found::Kept`] puts what was
//! found into the order of paths and says, once there is enough, which files need no look any more. So the
//! answer is the same every time, with a limit too.

mod found;
mod pattern;
mod result;
mod run;

pub(crate) use result::SearchResult;
pub(crate) use run::{in_directory, in_file};

use graph::{Args, Builder};
use pattern::Pattern;
use protocol::Error;

/// Adds the fields of what a search finds.
pub(crate) fn install(builder: &mut Builder) {
    result::install(builder);
}

/// What is looked for and how much of it is told.
#[derive(Clone, Debug, Args)]
pub(crate) struct Search {
    #[arg(group)]
    pattern: Pattern,
    /// Tell only the files, not the lines.
    #[arg(default = "false")]
    files_only: bool,
    /// Most results.
    limit: Option<i64>,
}

impl Search {
    /// Most results, where that is limited.
    fn most(&self) -> Result<Option<usize>, Error> {
        let Some(given) = self.limit else { return Ok(None) };
        let read = usize::try_from(given).ok().filter(|limit| *limit > 0);
        read.map(Some).ok_or_else(|| Error::user("limit must be at least 1"))
    }
}
