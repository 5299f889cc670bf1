//! [`Pattern`]: what a search looks for, as it was asked for and as a matcher.

use graph::Args;
use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use protocol::Error;

/// Memory that one pattern may take, and its cache on each thread: a short pattern can stand for a very
/// large one.
const MOST_PATTERN_BYTES: usize = 16 << 20;
/// Memory for the longest line, or with patterns that span lines for the longest file, on each thread.
const MOST_LINE_BYTES: usize = 128 << 20;
/// Most of a complaint about a pattern that is shown: it quotes the pattern.
const SHOWN: usize = 600;

/// What a search looks for.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Pattern {
    /// What to look for: a regular expression, or a text with `literal`.
    #[arg(name = "pattern")]
    text: String,
    /// Take the pattern as a text.
    #[arg(default = "false")]
    literal: bool,
    /// Let matches span lines.
    #[arg(default = "false")]
    pub(super) multiline: bool,
    /// Let `.` match the end of a line, where matches may span lines.
    #[arg(default = "false")]
    dotall: bool,
    /// Take small and capital letters as the same.
    #[arg(default = "false")]
    insensitive: bool,
}

impl Pattern {
    /// What finds matches.
    pub(super) fn matcher(&self) -> Result<RegexMatcher, Error> {
        let mut builder = RegexMatcherBuilder::new();
        builder
            .multi_line(true)
            .unicode(true)
            .fixed_strings(self.literal)
            .case_insensitive(self.insensitive)
            .size_limit(MOST_PATTERN_BYTES)
            .dfa_size_limit(MOST_PATTERN_BYTES);
        if self.multiline {
            builder.dot_matches_new_line(self.dotall);
        } else {
            builder.line_terminator(Some(b'\n'));
        }
        builder.build(&self.text).map_err(|error| match error.kind() {
            ErrorKind::NotAllowed(_) => {
                Error::user("the pattern holds the end of a line, and matches are within lines")
                    .with_hint("set `multiline`")
            }
            _ => Error::user(format!("the pattern cannot be used: {}", shortened(error))),
        })
    }

    /// What reads files, passing over those that are no text.
    pub(super) fn searcher(&self) -> Searcher {
        let mut builder = SearcherBuilder::new();
        builder
            .line_number(true)
            .multi_line(self.multiline)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(MOST_LINE_BYTES));
        builder.build()
    }
}

fn shortened(error: impl std::fmt::Display) -> String {
    let text = error.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str, literal: bool) -> Option<String> {
        let pattern = Pattern { text: text.to_owned(), literal, ..Pattern::default() };
        pattern.matcher().err().map(|error| error.message)
    }

    #[test]
    fn bad_patterns_are_one_clear_error() {
        for bad in
            ["(", "[a", "a{2,1}", "\\p{None}", "(?<n>a", "a{999999999}", "((a{1000}){1000}){1000}"]
        {
            let said = refused(bad, false).unwrap_or_else(|| panic!("{bad} is taken"));
            assert!(said.starts_with("the pattern cannot be used: ") && said.len() < 700, "{said}");
            assert_eq!(refused(bad, true), None, "{bad} as text");
        }
        assert!(refused(&"(".repeat(100_000), false).is_some());
        assert!(refused("a\nb", true).is_some_and(|said| said.contains("end of a line")));
    }
}
