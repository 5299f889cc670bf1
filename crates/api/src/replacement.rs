//! [`Replacement`]: one text put in place of another, for `File.withReplaced`.

use protocol::{DigestBuilder, Error};

/// What is replaced by what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Replacement {
    /// The text that is looked for.
    pub(crate) search: String,
    /// What takes its place.
    pub(crate) replacement: String,
    /// Whether every occurrence is replaced; none is fine then.
    pub(crate) all: bool,
    /// The line to begin from, the first being 1. Then only the first occurrence counts.
    pub(crate) first_from: Option<usize>,
}

/// Most line numbers that an error lists.
const LISTED: usize = 10;

impl Replacement {
    /// Feeds the identity of an edit.
    pub(crate) fn digest_into(&self, digest: &mut DigestBuilder) {
        digest.text(&self.search).text(&self.replacement).number(u64::from(self.all));
        digest.number(self.first_from.map_or(0, |line| line as u64));
    }

    /// The changed bytes; none when nothing is to be changed. `name` is the file's, for errors.
    pub(crate) fn apply(&self, bytes: &[u8], name: &str) -> Result<Option<Vec<u8>>, Error> {
        let search = self.search.as_bytes();
        let begin = self.first_from.map_or(0, |line| start_of_line(bytes, line));
        let places = occurrences(bytes, search, begin);
        let places = match (places.len(), self.all, self.first_from) {
            (0, true, _) => return Ok(None),
            (0, false, _) => return Err(self.not_found(name)),
            (_, true, _) | (1, ..) => places,
            (_, false, Some(_)) => places[..1].to_vec(),
            (_, false, None) => return Err(several(bytes, &places, name)),
        };
        let replacement = self.replacement.as_bytes();
        let mut changed = Vec::with_capacity(bytes.len());
        let mut done = 0;
        for place in places {
            changed.extend_from_slice(&bytes[done..place]);
            changed.extend_from_slice(replacement);
            done = place + search.len();
        }
        changed.extend_from_slice(&bytes[done..]);
        Ok(Some(changed))
    }

    fn not_found(&self, name: &str) -> Error {
        let from = match self.first_from {
            Some(line) => format!(" from line {line} on"),
            None => String::new(),
        };
        let message = format!("the text to replace was not found in `{name}`{from}");
        Error::user(message).with_hint("`all` accepts that there is nothing to replace")
    }
}

/// Where a line begins, the first being 1; the end where there are fewer lines.
fn start_of_line(bytes: &[u8], line: usize) -> usize {
    match line {
        0 | 1 => 0,
        _ => {
            let mut breaks = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
            breaks.nth(line - 2).map_or(bytes.len(), |(index, _)| index + 1)
        }
    }
}

/// Where a text stands, from `begin` on, none overlapping another.
fn occurrences(bytes: &[u8], search: &[u8], begin: usize) -> Vec<usize> {
    let finder = memchr::memmem::Finder::new(search);
    finder.find_iter(&bytes[begin..]).map(|place| begin + place).collect()
}

fn several(bytes: &[u8], places: &[usize], name: &str) -> Error {
    let line = |place: &usize| memchr::memchr_iter(b'\n', &bytes[..*place]).count() + 1;
    let listed = places.iter().take(LISTED).map(|place| line(place).to_string());
    let listed = listed.collect::<Vec<_>>().join(", ");
    let more = if places.len() > LISTED { ", ..." } else { "" };
    let message = format!(
        "the text to replace was found multiple times in `{name}`: in lines {listed}{more}"
    );
    Error::user(message).with_hint("give more of the text around it, or `all`, or `firstFrom`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(
        (search, all, first_from): (&str, bool, Option<usize>),
        text: &str,
        expected: Result<Option<&str>, &str>,
    ) {
        let (search, replacement) = (search.to_owned(), "X".to_owned());
        let change = Replacement { search, replacement, all, first_from };
        match (change.apply(text.as_bytes(), "f"), expected) {
            (Ok(found), Ok(expected)) => {
                assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{change:?}");
            }
            (Err(found), Err(expected)) => assert!(found.message.contains(expected), "{found}"),
            (found, expected) => panic!("{change:?}: {found:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn one_all_and_the_first_from_a_line() {
        check(("b", false, None), "abc", Ok(Some("aXc")));
        check(("b", false, None), "a", Err("not found"));
        check(("b", false, None), "b\nb b", Err("multiple times in `f`: in lines 1, 2, 2"));
        check(("b", true, None), "b\nb b", Ok(Some("X\nX X")));
        check(("b", true, None), "a", Ok(None));
        check(("b\nc", false, None), "a\nb\nc\n", Ok(Some("a\nX\n")));
        check(("aa", true, None), "aaaaa", Ok(Some("XXa")));
        for (line, expected) in [(0, "X\nb\nb"), (1, "X\nb\nb"), (2, "b\nX\nb"), (3, "b\nb\nX")] {
            check(("b", false, Some(line)), "b\nb\nb", Ok(Some(expected)));
        }
        check(("b", false, Some(4)), "b\nb\nb", Err("not found in `f` from line 4 on"));
        check(("b", true, Some(2)), "b\nb\nb", Ok(Some("b\nX\nX")));
        check(("b", true, Some(9)), "b", Ok(None));
    }

    #[test]
    fn many_occurrences_are_not_all_listed() {
        check(("b", false, None), &"b\n".repeat(50), Err("9, 10, ..."));
    }
}
