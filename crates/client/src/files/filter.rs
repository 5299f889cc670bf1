//! Which entries of a tree are wanted.
//!
//! Patterns are those of container builders: anchored at the root of the tree, `*` and `?` stay
//! within a name, `**` crosses directories, and a pattern that matches a directory matches all below
//! it. Within a list a later pattern that begins with `!` takes back what earlier ones matched.
//! Excludes win over includes. A walk hands each directory's [`State`] down to its entries, so that
//! a pattern is tried once for each entry and never again for its parents.

use super::{MAX_PATH_BYTES, shortened};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use protocol::Error;

/// What to take and what to leave out.
#[derive(Debug)]
pub(super) struct Filter {
    include: Patterns,
    exclude: Patterns,
}

/// What is to become of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is taken.
    Take,
    /// It is not, but something below it may be.
    Descend,
    /// Neither it nor anything below it.
    Skip,
}

/// Which patterns match a directory, or one above it.
#[derive(Clone, Debug)]
pub(super) struct State {
    include: Vec<bool>,
    exclude: Vec<bool>,
}

impl Filter {
    pub(super) fn new(include: &[String], exclude: &[String]) -> Result<Self, Error> {
        Ok(Self { include: Patterns::new(include)?, exclude: Patterns::new(exclude)? })
    }

    /// The state of the root of the tree.
    pub(super) fn root(&self) -> State {
        State {
            include: vec![false; self.include.0.len()],
            exclude: vec![false; self.exclude.0.len()],
        }
    }

    /// The verdict on an entry of a directory with state `parent`, and the entry's own state.
    pub(super) fn check(&self, path: &str, directory: bool, parent: &State) -> (Verdict, State) {
        let (included, include) = self.include.matches(path, &parent.include);
        let (excluded, exclude) = self.exclude.matches(path, &parent.exclude);
        let state = State { include, exclude };
        let wanted = included || self.include.0.is_empty();
        let may_hold_wanted = directory
            && (!excluded || self.exclude.takes_back())
            && (wanted || self.include.may_match_below(path));
        let verdict = match (wanted && !excluded, may_hold_wanted) {
            (true, _) => Verdict::Take,
            (false, true) => Verdict::Descend,
            (false, false) => Verdict::Skip,
        };
        (verdict, state)
    }
}

#[derive(Debug)]
struct Patterns(Vec<Pattern>);

#[derive(Debug)]
struct Pattern {
    glob: GlobSet,
    negated: bool,
    /// The names before the first wildcard, with `/` between.
    literal: String,
    /// Whether there is nothing behind those names.
    whole: bool,
}

impl Patterns {
    fn new(texts: &[String]) -> Result<Self, Error> {
        let patterns = texts.iter().filter_map(|text| Pattern::new(text).transpose());
        Ok(Self(patterns.collect::<Result<_, _>>()?))
    }

    fn takes_back(&self) -> bool {
        self.0.iter().any(|pattern| pattern.negated)
    }

    /// Whether the list matches, and which patterns do, the parent's matches counted in.
    fn matches(&self, path: &str, parent: &[bool]) -> (bool, Vec<bool>) {
        let mut matched = false;
        let each = self.0.iter().zip(parent).map(|(pattern, above)| {
            let hit = *above || pattern.glob.is_match(path);
            if hit {
                matched = !pattern.negated;
            }
            hit
        });
        let state = each.collect();
        (matched, state)
    }

    /// Whether an entry below this directory can match.
    fn may_match_below(&self, directory: &str) -> bool {
        self.0.iter().filter(|pattern| !pattern.negated).any(|pattern| {
            let literal = pattern.literal.as_str();
            is_at_or_below(literal, directory)
                || (!pattern.whole && is_at_or_below(directory, literal))
        })
    }
}

/// Whether `path` is `directory` or below it; everything is below the empty path.
fn is_at_or_below(path: &str, directory: &str) -> bool {
    directory.is_empty()
        || path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Pattern {
    /// None for a pattern that says nothing.
    fn new(text: &str) -> Result<Option<Self>, Error> {
        if text.len() > MAX_PATH_BYTES {
            let length = text.len();
            return Err(Error::user(format!("a pattern of {length} bytes is too long")));
        }
        let trimmed = text.trim();
        let (negated, body) = match trimmed.strip_prefix('!') {
            Some(body) => (true, body),
            None => (false, trimmed),
        };
        let names: Vec<&str> =
            body.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
        if names.is_empty() {
            // `.` and `/` are the tree itself, which is all of it.
            let all = !body.is_empty();
            return if all { Self::new(if negated { "!**" } else { "**" }) } else { Ok(None) };
        }
        let plain = names.iter().take_while(|name| !name.contains(['*', '?', '[', '\\'])).count();
        // Braces are no wildcards here, and to the library they would be.
        let glob = names.join("/").replace('{', "[{]").replace('}', "[}]");
        let glob = matcher(&glob).map_err(|error| refused(text, error.kind()))?;
        Ok(Some(Self {
            glob,
            negated,
            literal: names[..plain].join("/"),
            whole: plain == names.len(),
        }))
    }
}

/// A set of one, because making a set answers with an error where a pattern is too much for the
/// library; making a single matcher would panic.
fn matcher(glob: &str) -> Result<GlobSet, globset::Error> {
    let glob = GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build()?;
    GlobSetBuilder::new().add(glob).build()
}

fn refused(text: &str, reason: &globset::ErrorKind) -> Error {
    // Some reasons quote the whole pattern.
    let reason = shortened(&reason.to_string());
    Error::user(format!("`{}` is no pattern: {reason}", shortened(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdict on a path, by way of all directories above it.
    fn verdict(include: &[&str], exclude: &[&str], path: &str) -> Verdict {
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let filter = Filter::new(&owned(include), &owned(exclude)).unwrap();
        let mut state = filter.root();
        let file = path.trim_end_matches('/');
        for (end, _) in file.match_indices('/') {
            let (verdict, below) = filter.check(&file[..end], true, &state);
            if verdict == Verdict::Skip {
                return Verdict::Skip;
            }
            state = below;
        }
        filter.check(file, path.ends_with('/'), &state).0
    }

    #[test]
    fn verdicts() {
        use Verdict::{Descend, Skip, Take};
        for (include, exclude, path, expected) in [
            (&[][..], &[][..], "a/b.txt", Take),
            // Anchored at the root.
            (&[], &["*.o"], "x.o", Skip),
            (&[], &["*.o"], "a/x.o", Take),
            (&[], &["**/*.o"], "a/b/x.o", Skip),
            (&[], &["**/*.o"], "x.o", Skip),
            (&[], &["a/**"], "a/x", Skip),
            // A directory and all below it.
            (&[], &["target"], "target/", Skip),
            (&[], &["target/"], "target/debug/x", Skip),
            (&[], &["/target"], "target/debug/x", Skip),
            (&[], &["./target"], "target/debug/x", Skip),
            (&[], &["**/node_modules"], "a/node_modules/x/y", Skip),
            // Taking back.
            (&[], &["docs", "!docs/keep"], "docs/", Descend),
            (&[], &["docs", "!docs/keep"], "docs/keep", Take),
            (&[], &["docs", "!docs/keep"], "docs/other", Skip),
            (&[], &["!docs/keep", "docs"], "docs/keep", Skip),
            // Includes.
            (&["src"], &[], "src/", Take),
            (&["src"], &[], "src/a/b", Take),
            (&["src"], &[], "other", Skip),
            (&["src"], &[], "other/", Skip),
            (&["src"], &[], "srcs/", Skip),
            (&["src/a"], &[], "src/", Descend),
            (&["src/a"], &[], "src/b/", Skip),
            (&["src/*/x"], &[], "src/b/", Descend),
            (&["**/*.rs"], &[], "a/b/c.rs", Take),
            (&["**/*.rs"], &[], "a/", Descend),
            (&["."], &[], "a/b", Take),
            (&["", "a"], &[], "b", Skip),
            (&["*", "!b"], &[], "a/x", Take),
            (&["*", "!b"], &[], "b", Skip),
            // Excludes win.
            (&["src"], &["src/a"], "src/a", Skip),
            (&["src/a"], &["src"], "src/a", Skip),
            // Wildcards stay within a name; braces are plain characters.
            (&[], &["a?c"], "abc", Skip),
            (&[], &["a?c"], "a/c", Take),
            (&[], &["[ab]x"], "bx", Skip),
            (&[], &["{a,b}"], "a", Take),
            (&[], &["{a,b}"], "{a,b}", Skip),
            (&[], &["\\*"], "*", Skip),
            (&[], &["\\*"], "a", Take),
        ] {
            let found = verdict(include, exclude, path);
            assert_eq!(found, expected, "include {include:?} exclude {exclude:?}: {path}");
        }
    }

    #[test]
    fn a_broken_pattern_is_named() {
        let error = Filter::new(&["a[".to_owned()], &[]).unwrap_err();
        assert!(error.message.starts_with("`a[` is no pattern"), "{}", error.message);
        for piece in ["[^a]", "?", "*", "**/"] {
            // Whether the library takes it or not, it does not panic and does not go on for ever.
            if let Err(error) = Filter::new(&[piece.repeat(1000)], &[]) {
                assert!(error.message.len() < 300, "{} bytes", error.message.len());
            }
            let error = Filter::new(&[piece.repeat(5000)], &[]).unwrap_err();
            assert!(error.message.ends_with("bytes is too long"), "{error}");
        }
    }
}
