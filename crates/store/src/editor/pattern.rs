//! [`Patterns`]: a list of globs as image builders read them.
//!
//! A pattern is relative to the top of the tree. `*`, `?` and `[...]` stay within one name, `**`
//! spans any number of directories. Slashes at either end mean nothing. A pattern also matches all
//! that is below what it names. After `!` it takes back; the last pattern that matches wins.

use crate::Error;
use globset::{GlobBuilder, GlobMatcher};

/// An ordered list of globs.
#[derive(Default)]
pub(super) struct Patterns(Vec<Pattern>);

struct Pattern {
    glob: GlobMatcher,
    negated: bool,
    /// Leading names without wildcards.
    literal: Vec<String>,
}

impl Patterns {
    pub(super) fn new(patterns: &[String]) -> Result<Self, Error> {
        let parsed = patterns.iter().filter_map(|pattern| Pattern::new(pattern).transpose());
        Ok(Self(parsed.collect::<Result<_, _>>()?))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a later pattern can take back what an earlier one matched.
    pub(super) fn takes_back(&self) -> bool {
        self.0.iter().any(|pattern| pattern.negated)
    }

    /// Whether the path, or a directory it is in, is matched by the last pattern that says anything.
    pub(super) fn matches(&self, path: &str) -> bool {
        let last = self.0.iter().rev().find(|pattern| pattern.matches(path));
        last.is_some_and(|pattern| !pattern.negated)
    }

    /// Whether something below the directory could match.
    pub(super) fn may_match_below(&self, directory: &str) -> bool {
        let agrees = |pattern: &&Pattern| {
            pattern.literal.iter().zip(directory.split('/')).all(|(name, other)| name == other)
        };
        self.0.iter().filter(|pattern| !pattern.negated).any(|pattern| agrees(&pattern))
    }
}

impl Pattern {
    /// None for a pattern that names nothing, such as an empty one.
    fn new(text: &str) -> Result<Option<Self>, Error> {
        let trimmed = text.trim();
        let (negated, body) = match trimmed.strip_prefix('!') {
            Some(body) => (true, body),
            None => (false, trimmed),
        };
        let names = clean(body);
        if names.is_empty() {
            return Ok(None);
        }
        let glob = glob(&names.join("/"))?;
        let literal = names.iter().take_while(|name| !is_glob(name));
        let literal = literal.map(|name| (*name).to_owned()).collect();
        Ok(Some(Self { glob, negated, literal }))
    }

    fn matches(&self, path: &str) -> bool {
        let ends = path.match_indices('/').map(|(slash, _)| slash).chain([path.len()]);
        ends.into_iter().any(|end| self.glob.is_match(&path[..end]))
    }
}

/// A matcher of whole relative paths.
pub(super) fn glob(pattern: &str) -> Result<GlobMatcher, Error> {
    // Braces are plain characters in these patterns.
    let escaped = pattern.replace('{', "\\{").replace('}', "\\}");
    let glob = GlobBuilder::new(&escaped).literal_separator(true).backslash_escape(true).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| Error::Pattern {
        pattern: crate::view::shorten(pattern),
        reason: error.kind().to_string(),
    })
}

/// Whether a name is more than the name of one entry.
pub(super) fn is_glob(name: &str) -> bool {
    name.contains(['*', '?', '[', '\\'])
}

/// The names of a path without `.`, with `..` taken as text: there is no tree to resolve it in.
pub(super) fn clean(path: &str) -> Vec<&str> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(patterns: &[&str], path: &str, expected: bool) {
        let patterns: Vec<String> = patterns.iter().map(|text| (*text).to_owned()).collect();
        let matched = Patterns::new(&patterns).unwrap().matches(path);
        assert_eq!(matched, expected, "{patterns:?} on {path}");
    }

    #[test]
    fn patterns_mean_what_image_builders_mean() {
        for (pattern, path, expected) in [
            ("src", "src", true),
            ("src", "src/a/b", true),
            ("src/", "src/a", true),
            ("/src", "src/a", true),
            ("./src/../src", "src/a", true),
            ("src", "other/src", false),
            ("*.o", "a.o", true),
            ("*.o", "a/b.o", false),
            ("**/*.o", "a.o", true),
            ("**/*.o", "a/b/c.o", true),
            ("a/**/b", "a/b", true),
            ("a/**/b", "a/x/y/b/c", true),
            ("a/**", "a/x", true),
            ("a/**", "a", false),
            ("**", "any/thing", true),
            ("a?c", "abc", true),
            ("a?c", "a/c", false),
            ("[ab]x", "bx", true),
            ("[^ab]x", "bx", false),
            ("{a,b}", "a", false),
            ("{a,b}", "{a,b}", true),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("", "a", false),
            (".", "a", false),
            (".hidden", ".hidden", true),
            ("*", ".hidden/x", true),
        ] {
            check(&[pattern], path, expected);
        }
    }

    #[test]
    fn the_last_match_wins() {
        check(&["a", "!a/keep"], "a/keep/x", false);
        check(&["a", "!a/keep"], "a/other", true);
        check(&["!a/keep", "a"], "a/keep", true);
        check(&["*", "!b", "b/c"], "b/c", true);
        check(&["*", "!b", "b/c"], "b/d", false);
    }

    #[test]
    fn a_bad_glob_is_named() {
        let error = Patterns::new(&["[a".to_owned()]).err().unwrap();
        assert!(error.to_string().contains("`[a`"), "{error}");
    }

    #[test]
    fn directories_that_cannot_matter_are_known() {
        let patterns = Patterns::new(&["src/*/x".to_owned(), "doc".to_owned()]).unwrap();
        assert!(patterns.may_match_below("src"));
        assert!(patterns.may_match_below("src/a"));
        assert!(patterns.may_match_below("doc/a"));
        assert!(!patterns.may_match_below("lib"));
        assert!(Patterns::new(&["**/x".to_owned()]).unwrap().may_match_below("lib/a"));
    }
}
