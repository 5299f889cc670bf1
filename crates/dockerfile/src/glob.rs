//! Patterns with `*`, `?`, `[...]` and `\`: those of `${name#pattern}` and its kin, and those of the sources of a copy.
//!
//! A pattern is run over a text once, with all its possible states at a time, so that no pattern takes
//! more than its length times that of the text.

use crate::Error;

/// Longest text that is searched for a pattern in its middle.
const MOST_SEARCHED: usize = 4096;
/// Longest pattern.
const LONGEST: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    One(char),
    Any,
    Many,
    /// One character of these ranges, or of no range.
    Class {
        ranges: Vec<(char, char)>,
        negated: bool,
    },
}

/// Which of several matches is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    Shortest,
    Longest,
}

/// A pattern.
#[derive(Debug)]
pub(crate) struct Pattern(Vec<Part>);

impl Pattern {
    /// A pattern of a variable: brackets are plain characters there.
    pub(crate) fn new(text: &str) -> Result<Self, Error> {
        Self::parse(text, false)
    }

    /// A pattern of one name of a path.
    pub(crate) fn of_name(text: &str) -> Result<Self, Error> {
        Self::parse(text, true)
    }

    fn parse(text: &str, classes: bool) -> Result<Self, Error> {
        if text.len() > LONGEST {
            return Err(Error::of(format!("a pattern of {} bytes is too long", text.len())));
        }
        let mut parts: Vec<Part> = vec![];
        let mut characters = text.chars();
        while let Some(c) = characters.next() {
            match c {
                '[' if classes => {
                    let class = class(&mut characters);
                    let bad =
                        || Error::of(format!("`{text}` is no pattern: syntax error in pattern"));
                    parts.push(class.ok_or_else(bad)?);
                }
                '*' if parts.last() == Some(&Part::Many) => {}
                '*' => parts.push(Part::Many),
                '?' => parts.push(Part::Any),
                '\\' => parts.push(Part::One(characters.next().unwrap_or('\\'))),
                c => parts.push(Part::One(c)),
            }
        }
        Ok(Self(parts))
    }

    /// Whether it matches all of a text.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        let characters: Vec<char> = text.chars().collect();
        matched(&self.0, &characters, Which::Longest) == Some(characters.len())
    }

    /// The text without a beginning that matches.
    pub(crate) fn without_prefix(&self, text: &str, which: Which) -> String {
        let characters: Vec<char> = text.chars().collect();
        let length = matched(&self.0, &characters, which).unwrap_or(0);
        characters[length..].iter().collect()
    }

    /// The text without an end that matches.
    pub(crate) fn without_suffix(&self, text: &str, which: Which) -> String {
        let reversed: Vec<char> = text.chars().rev().collect();
        let parts: Vec<Part> = self.0.iter().rev().cloned().collect();
        let length = matched(&parts, &reversed, which).unwrap_or(0);
        reversed[length..].iter().rev().collect()
    }

    /// The text with the first match, or every match, replaced. The longest match is meant.
    pub(crate) fn replaced(&self, text: &str, by: &str, every: bool) -> Result<String, Error> {
        if text.len() > MOST_SEARCHED {
            return Err(Error::of(format!(
                "a value of {} bytes is too long to replace in",
                text.len()
            )));
        }
        let characters: Vec<char> = text.chars().collect();
        let (mut result, mut at) = (String::new(), 0);
        while at < characters.len() {
            match matched(&self.0, &characters[at..], Which::Longest) {
                Some(length @ 1..) => {
                    result.push_str(by);
                    at += length;
                    if !every {
                        break;
                    }
                }
                _ => {
                    result.push(characters[at]);
                    at += 1;
                }
            }
        }
        result.extend(&characters[at.min(characters.len())..]);
        Ok(result)
    }
}

/// How many characters at the beginning of a text match all of the parts.
fn matched(parts: &[Part], text: &[char], which: Which) -> Option<usize> {
    let mut states = vec![false; parts.len() + 1];
    states[0] = true;
    let mut found = None;
    for taken in 0..=text.len() {
        skip_many(parts, &mut states);
        if states[parts.len()] {
            found = Some(taken);
            if which == Which::Shortest {
                break;
            }
        }
        let Some(c) = text.get(taken) else { break };
        let mut next = vec![false; parts.len() + 1];
        for (index, part) in parts.iter().enumerate().filter(|(index, _)| states[*index]) {
            match part {
                Part::Many => next[index] = true,
                Part::Any => next[index + 1] = true,
                Part::One(wanted) if wanted == c => next[index + 1] = true,
                Part::One(_) => {}
                Part::Class { ranges, negated } => {
                    let inside = ranges.iter().any(|(from, to)| (from..=to).contains(&c));
                    next[index + 1] |= inside != *negated;
                }
            }
        }
        if !next.contains(&true) {
            break;
        }
        states = next;
    }
    found
}

/// What follows an opening bracket, up to the one that closes it.
fn class(characters: &mut std::str::Chars<'_>) -> Option<Part> {
    let mut rest = characters.clone();
    let negated = rest.next() == Some('^');
    if negated {
        characters.next();
    }
    let mut ranges = vec![];
    let one = |characters: &mut std::str::Chars<'_>, c: char| match c {
        '\\' => characters.next(),
        c => Some(c),
    };
    loop {
        let from = match characters.next()? {
            ']' if !ranges.is_empty() => return Some(Part::Class { ranges, negated }),
            '-' | ']' => return None,
            c => one(characters, c)?,
        };
        let mut to = from;
        if characters.clone().next() == Some('-') {
            characters.next();
            let c = characters.next().filter(|c| *c != ']')?;
            to = one(characters, c)?;
        }
        ranges.push((from, to));
    }
}

/// A path whose names may be patterns; `*` does not reach across a slash.
#[derive(Debug)]
pub struct PathPattern(Vec<PathPart>);

/// One name of a path.
#[derive(Debug)]
pub enum PathPart {
    /// This name.
    Name(String),
    /// Every name that matches.
    Pattern(NamePattern),
}

/// A pattern of one name.
#[derive(Debug)]
pub struct NamePattern(Pattern);

impl NamePattern {
    /// Whether it matches a name.
    pub fn is_match(&self, name: &str) -> bool {
        self.0.is_match(name)
    }
}

impl PathPattern {
    /// Reads a path; `..` stops at its root.
    pub fn new(path: &str) -> Result<Self, Error> {
        let mut parts: Vec<PathPart> = vec![];
        for name in path.split('/') {
            match name {
                "" | "." => {}
                ".." => drop(parts.pop()),
                name if has_wildcards(name) => {
                    parts.push(PathPart::Pattern(NamePattern(Pattern::of_name(name)?)));
                }
                name => parts.push(PathPart::Name(name.to_owned())),
            }
        }
        Ok(Self(parts))
    }

    /// Its names, from the root on.
    pub fn parts(&self) -> &[PathPart] {
        &self.0
    }

    /// Whether a name of it is a pattern.
    pub fn is_pattern(&self) -> bool {
        self.0.iter().any(|part| matches!(part, PathPart::Pattern(_)))
    }
}

fn has_wildcards(name: &str) -> bool {
    let mut characters = name.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => drop(characters.next()),
            '*' | '?' | '[' => return true,
            _ => {}
        }
    }
    false
}

/// A star may stand for nothing.
fn skip_many(parts: &[Part], states: &mut [bool]) {
    for (index, part) in parts.iter().enumerate() {
        if states[index] && *part == Part::Many {
            states[index + 1] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_taken_away() {
        let pattern = |text| Pattern::new(text).unwrap();
        let text = "/a/b/c.tar.gz";
        assert_eq!(pattern("*/").without_prefix(text, Which::Shortest), "a/b/c.tar.gz");
        assert_eq!(pattern("*/").without_prefix(text, Which::Longest), "c.tar.gz");
        assert_eq!(pattern(".*").without_suffix(text, Which::Shortest), "/a/b/c.tar");
        assert_eq!(pattern(".*").without_suffix(text, Which::Longest), "/a/b/c");
        assert_eq!(pattern("x*").without_prefix(text, Which::Longest), text);
        assert_eq!(pattern("\\*").without_prefix("*a", Which::Longest), "a");
        assert_eq!(pattern("??").without_suffix("äöü", Which::Shortest), "ä");
    }

    #[test]
    fn matches_are_replaced() {
        let pattern = |text| Pattern::new(text).unwrap();
        assert_eq!(pattern("o").replaced("foo boo", "0", false).unwrap(), "f0o boo");
        assert_eq!(pattern("o").replaced("foo boo", "0", true).unwrap(), "f00 b00");
        assert_eq!(pattern("b*").replaced("foo boo", "", true).unwrap(), "foo ");
        assert_eq!(pattern("").replaced("abc", "x", true).unwrap(), "abc");
        assert!(pattern("a").replaced(&"a".repeat(5000), "", true).is_err());
        assert!(Pattern::new(&"a".repeat(300)).is_err());
    }

    #[test]
    fn names_of_paths() {
        let pattern = |text| Pattern::of_name(text).unwrap();
        for (text, name, expected) in [
            ("*.go", "a.go", true),
            ("*.go", "a.gob", false),
            ("[a-c]?", "b1", true),
            ("[^a-c]?", "b1", false),
            ("[^a-c]?", "d1", true),
            ("\\*", "*", true),
            ("**", "abc", true),
            ("[\\]]", "]", true),
        ] {
            assert_eq!(pattern(text).is_match(name), expected, "{text} {name}");
        }
        for text in ["[", "[a", "[]", "[a-]", "[-a]"] {
            assert!(Pattern::of_name(text).is_err(), "{text}");
        }
        let path = PathPattern::new("/a/./../b/*.c").unwrap();
        assert!(
            matches!(path.parts(), [PathPart::Name(name), PathPart::Pattern(_)] if name == "b")
        );
        assert!(!PathPattern::new("a/\\*b").unwrap().is_pattern());
    }

    #[test]
    fn a_bad_pattern_takes_no_time() {
        let text: String = "a".repeat(4000);
        let pattern = Pattern::new(&"a*".repeat(100)).unwrap();
        assert_eq!(pattern.replaced(&format!("{text}b"), "x", false).unwrap(), "x");
    }
}
