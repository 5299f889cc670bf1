//! `SearchResult` and `SearchSubmatch`: one line that matches, and what of it does.

use graph::{Args, Builder, Context, Object, Op};
use protocol::Error;
use std::sync::Arc;

/// One line that matches, or several where a match spans lines.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    /// Counted from 1; 0 where only files are told.
    pub(super) number: u64,
    /// Bytes before it in the file.
    pub(super) offset: u64,
    pub(super) text: String,
    pub(super) matches: Vec<Submatch>,
}

/// What of a line matches.
#[derive(Clone, Debug)]
pub(crate) struct Submatch {
    pub(super) text: String,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// One line that matches, with the file it is in.
pub(crate) struct SearchResult {
    path: Arc<str>,
    line: Line,
}

impl Object for SearchResult {
    const TYPE: &'static str = "SearchResult";
}

impl Object for Submatch {
    const TYPE: &'static str = "SearchSubmatch";
}

impl SearchResult {
    /// The results of one file.
    pub(super) fn of_file(path: &str, lines: Vec<Line>) -> impl Iterator<Item = Self> + use<> {
        let path: Arc<str> = path.into();
        lines.into_iter().map(move |line| Self { path: path.clone(), line })
    }
}

/// Declares a field: what it is called and what it says.
macro_rules! field {
    ($op:ident on $parent:ty, $name:literal -> $output:ty, $doc:literal, |$this:ident| $value:expr) => {
        #[doc = $doc]
        #[derive(Args)]
        struct $op {}

        impl Op for $op {
            type Parent = $parent;
            type Output = $output;
            const NAME: &'static str = $name;

            async fn run(&self, $this: &$parent, _: &Context) -> Result<$output, Error> {
                Ok($value)
            }
        }
    };
}

field!(FilePath on SearchResult, "filePath" -> String,
    "The file, relative to what was searched.", |result| result.path.to_string());
field!(LineNumber on SearchResult, "lineNumber" -> i64,
    "The line, the first being 1; the first one of several. 0 where only files were asked for.",
    |result| result.line.number.cast_signed());
field!(AbsoluteOffset on SearchResult, "absoluteOffset" -> i64,
    "Bytes before the line in the file.", |result| result.line.offset.cast_signed());
field!(MatchedLines on SearchResult, "matchedLines" -> String,
    "The line with its end, or all lines that a match spans.", |result| result.line.text.clone());
field!(Submatches on SearchResult, "submatches" -> Vec<Submatch>,
    "What in the line matches.", |result| result.line.matches.clone());
field!(Text on Submatch, "text" -> String, "The text that matches.",
    |submatch| submatch.text.clone());
field!(Start on Submatch, "start" -> i64, "Bytes before it in the line.",
    |submatch| submatch.start as i64);
field!(End on Submatch, "end" -> i64, "Bytes of the line up to its end.",
    |submatch| submatch.end as i64);

pub(super) fn install(builder: &mut Builder) {
    builder
        .install::<FilePath>()
        .install::<LineNumber>()
        .install::<AbsoluteOffset>()
        .install::<MatchedLines>()
        .install::<Submatches>()
        .install::<Text>()
        .install::<Start>()
        .install::<End>();
}
