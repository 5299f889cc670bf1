//! Two changes of one text, brought together.

use crate::Labels;
use crate::lines::{Hunk, differences, split};
use std::ops::Range;

/// What came of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merged {
    /// Both changes are in it.
    Clean(Vec<u8>),
    /// Where both changed the same lines, both versions are in it, between marks.
    Conflicts(Vec<u8>),
}

/// Brings two changes of `base` together. Changes with an untouched line between them do not meet.
pub fn merge(base: &[u8], ours: &[u8], theirs: &[u8], labels: &Labels<'_>) -> Merged {
    let (base, ours, theirs) = (split(base), split(ours), split(theirs));
    let mut merge = Merge {
        ours: Side { lines: &ours, hunks: differences(&base, &ours), next: 0 },
        theirs: Side { lines: &theirs, hunks: differences(&base, &theirs), next: 0 },
        result: vec![],
        conflicts: false,
    };
    let mut done = 0;
    while let Some(region) = merge.next_region() {
        extend(&mut merge.result, &base[done..region.span.start]);
        done = region.span.end;
        merge.add(&region, labels);
    }
    extend(&mut merge.result, &base[done..]);
    match merge.conflicts {
        true => Merged::Conflicts(merge.result),
        false => Merged::Clean(merge.result),
    }
}

struct Merge<'a> {
    ours: Side<'a>,
    theirs: Side<'a>,
    result: Vec<u8>,
    conflicts: bool,
}

/// One of the two versions.
struct Side<'a> {
    lines: &'a [&'a [u8]],
    hunks: Vec<Hunk>,
    /// The hunk whose turn has not come.
    next: usize,
}

/// Lines of the base that one or both sides replaced, and the hunks that did it.
struct Region {
    span: Range<usize>,
    ours: Range<usize>,
    theirs: Range<usize>,
}

impl Merge<'_> {
    fn next_region(&mut self) -> Option<Region> {
        let start = match (self.ours.start(), self.theirs.start()) {
            (Some(one), Some(other)) => one.min(other),
            (one, other) => one.or(other)?,
        };
        let (first, first_of_theirs) = (self.ours.next, self.theirs.next);
        let mut end = start;
        while let Some(reached) = self.ours.take_up_to(end).or_else(|| self.theirs.take_up_to(end))
        {
            end = end.max(reached);
        }
        Some(Region {
            span: start..end,
            ours: first..self.ours.next,
            theirs: first_of_theirs..self.theirs.next,
        })
    }

    fn add(&mut self, region: &Region, labels: &Labels<'_>) {
        let ours = self.ours.lines_in(&region.span, &region.ours);
        let theirs = self.theirs.lines_in(&region.span, &region.theirs);
        if region.theirs.is_empty() || ours == theirs {
            return extend(&mut self.result, ours);
        }
        if region.ours.is_empty() {
            return extend(&mut self.result, theirs);
        }
        self.conflicts = true;
        labels.conflict(&mut self.result, ours, theirs);
    }
}

impl<'a> Side<'a> {
    fn start(&self) -> Option<usize> {
        self.hunks.get(self.next).map(|hunk| hunk.before.start)
    }

    /// Takes the next hunk if it begins at this line or before, and says where it ends.
    fn take_up_to(&mut self, line: usize) -> Option<usize> {
        let hunk = self.hunks.get(self.next).filter(|hunk| hunk.before.start <= line)?;
        self.next += 1;
        Some(hunk.before.end)
    }

    /// What this side made of lines of the base.
    fn lines_in(&self, span: &Range<usize>, hunks: &Range<usize>) -> &'a [&'a [u8]] {
        let hunks = &self.hunks[hunks.clone()];
        let (Some(first), Some(last)) = (hunks.first(), hunks.last()) else { return &[] };
        let start = first.after.start - (first.before.start - span.start);
        let end = last.after.end + (span.end - last.before.end);
        &self.lines[start..end]
    }
}

pub(crate) fn extend(result: &mut Vec<u8>, lines: &[&[u8]]) {
    lines.iter().for_each(|line| result.extend_from_slice(line));
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABELS: Labels<'static> = Labels { ours: "ours", theirs: "theirs" };

    fn merged(base: &str, ours: &str, theirs: &str) -> Merged {
        merge(base.as_bytes(), ours.as_bytes(), theirs.as_bytes(), &LABELS)
    }

    fn clean(text: &str) -> Merged {
        Merged::Clean(text.into())
    }

    #[test]
    fn changes_of_different_regions_merge() {
        let base = "1\n2\n3\n4\n5\n";
        assert_eq!(
            merged(base, "one\n2\n3\n4\n5\n", "1\n2\n3\n4\nfive\n"),
            clean("one\n2\n3\n4\nfive\n")
        );
        assert_eq!(merged(base, "0\n1\n2\n3\n4\n5\n", "1\n2\n3\n5\n6"), clean("0\n1\n2\n3\n5\n6"));
        assert_eq!(merged(base, base, "x\n"), clean("x\n"));
        assert_eq!(merged(base, "", base), clean(""));
        assert_eq!(merged(base, "1\nb\n3\n4\n5\n", "1\nb\n3\n4\n5\n"), clean("1\nb\n3\n4\n5\n"));
        assert_eq!(merged("", "a\n", ""), clean("a\n"));
    }

    #[test]
    fn changes_of_the_same_lines_are_marked() {
        let Merged::Conflicts(text) = merged("1\n2\n3\n", "1\nours\n3\n", "1\ntheirs\n3\n") else {
            panic!("both changed the second line");
        };
        let expected = "1\n<<<<<<< ours\nours\n=======\ntheirs\n>>>>>>> theirs\n3\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }

    #[test]
    fn changes_that_touch_are_a_conflict() {
        assert!(matches!(merged("1\n2\n", "a\n2\n", "1\nb\n"), Merged::Conflicts(_)));
        assert!(matches!(merged("1\n2\n3\n", "a\n2\n3\n", "1\n2\nb\n"), Merged::Clean(_)));
    }

    #[test]
    fn marks_begin_on_lines_of_their_own() {
        let Merged::Conflicts(text) = merged("", "a", "b") else { panic!("both added") };
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n"
        );
    }
}
