//! Lists of globs as image builders read them.
//!
//! A pattern is relative to the root of the tree. `*`, `?` and `[...]` stay within one name, `**`
//! spans any number of directories, braces are plain characters. Slashes at either end and `.` mean
//! nothing; `..` is taken as text, because there is no tree to resolve it in. A pattern also matches
//! all that is below what it names, and `.` names the whole tree. After `!` it takes back; the last
//! pattern that matches wins.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Longest pattern: no path that it could match is longer.
const MAX_BYTES: usize = 4095;
/// How much of a pattern, and of what is wrong with it, is shown.
const SHOWN: usize = 80;

/// A text that is no pattern.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPattern {
    /// Longer than any path.
    #[error("a pattern of {0} bytes is too long")]
    TooLong(usize),
    /// No glob.
    #[error("`{pattern}` is no pattern: {reason}")]
    NoGlob {
        /// The pattern, cut when it is long.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl BadPattern {
    /// Why a text is no pattern. Some reasons quote the whole pattern, so both are cut.
    pub(crate) fn new(pattern: &str, reason: &str) -> Self {
        Self::NoGlob { pattern: shortened(pattern), reason: shortened(reason) }
    }
}

/// One glob that matches whole relative paths.
#[derive(Debug)]
pub struct Glob(GlobSet);

impl Glob {
    /// Reads a glob.
    pub fn new(text: &str) -> Result<Self, BadPattern> {
        // Braces would be alternatives to the library.
        Self::build(text, &text.replace('{', "[{]").replace('}', "[}]"))
    }

    /// Reads a glob in which `{a,b}` stands for either.
    pub fn with_alternatives(text: &str) -> Result<Self, BadPattern> {
        Self::build(text, text)
    }

    fn build(text: &str, escaped: &str) -> Result<Self, BadPattern> {
        check_length(text)?;
        let refused = |error: globset::Error| BadPattern::new(text, &error.kind().to_string());
        let mut builder = GlobBuilder::new(escaped);
        builder.literal_separator(true).backslash_escape(true).empty_alternates(true);
        let glob = builder.build().map_err(refused)?;
        // A set of one: making a set answers with an error where a pattern is too much for the
        // library, making a single matcher would panic.
        GlobSetBuilder::new().add(glob).build().map(Self).map_err(refused)
    }

    /// Whether it matches a path.
    pub fn is_match(&self, path: &[u8]) -> bool {
        self.0.is_match(OsStr::from_bytes(path))
    }
}

/// Refuses a pattern that is longer than anything it could match.
pub(crate) fn check_length(text: &str) -> Result<(), BadPattern> {
    match text.len() {
        0..=MAX_BYTES => Ok(()),
        long => Err(BadPattern::TooLong(long)),
    }
}

/// Whether a name is more than the name of one entry.
pub fn is_glob(name: &str) -> bool {
    name.contains(['*', '?', '[', '\\'])
}

/// The names of a path without `.` and empty ones, with `..` taken as text.
pub fn clean(path: &str) -> Vec<&str> {
    let mut names = vec![];
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    names
}

/// An ordered list of patterns.
#[derive(Debug, Default)]
pub(crate) struct Patterns(Vec<Pattern>);

#[derive(Debug)]
struct Pattern {
    glob: Glob,
    negated: bool,
    /// The names before the first wildcard, with `/` between.
    literal: String,
    /// Whether there is nothing behind those names.
    whole: bool,
}

impl Patterns {
    pub(crate) fn new(texts: &[String]) -> Result<Self, BadPattern> {
        let patterns = texts.iter().filter_map(|text| Pattern::new(text).transpose());
        Ok(Self(patterns.collect::<Result<_, _>>()?))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// No match of any pattern.
    pub(crate) fn none(&self) -> Vec<bool> {
        vec![false; self.0.len()]
    }

    /// Whether a later pattern can take back what an earlier one matched.
    pub(crate) fn takes_back(&self) -> bool {
        self.0.iter().any(|pattern| pattern.negated)
    }

    /// Whether the list matches, and which patterns do, those that match the parent counted in.
    pub(crate) fn matches(&self, path: &[u8], parent: &[bool]) -> (bool, Vec<bool>) {
        let mut matched = false;
        let each = self.0.iter().zip(parent).map(|(pattern, above)| {
            let hit = *above || pattern.glob.is_match(path);
            if hit {
                matched = !pattern.negated;
            }
            hit
        });
        let each = each.collect();
        (matched, each)
    }

    /// Whether an entry below this directory can match.
    pub(crate) fn may_match_below(&self, directory: &[u8]) -> bool {
        self.0.iter().filter(|pattern| !pattern.negated).any(|pattern| {
            let literal = pattern.literal.as_bytes();
            is_at_or_below(literal, directory)
                || (!pattern.whole && is_at_or_below(directory, literal))
        })
    }
}

impl Pattern {
    /// None for a pattern that says nothing.
    fn new(text: &str) -> Result<Option<Self>, BadPattern> {
        let trimmed = text.trim();
        let (negated, body) = match trimmed.strip_prefix('!') {
            Some(body) => (true, body),
            None => (false, trimmed),
        };
        let names = match clean(body) {
            names if names.is_empty() && body.is_empty() => return Ok(None),
            names if names.is_empty() => vec!["**"],
            names => names,
        };
        let plain = names.iter().take_while(|name| !is_glob(name)).count();
        let literal = names[..plain].join("/");
        let whole = plain == names.len();
        Ok(Some(Self { glob: Glob::new(&names.join("/"))?, negated, literal, whole }))
    }
}

/// Whether `path` is `directory` or below it; everything is below the empty path.
fn is_at_or_below(path: &[u8], directory: &[u8]) -> bool {
    directory.is_empty()
        || path.strip_prefix(directory).is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
}

/// The beginning of a text that somebody else chose the length of.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
