//! The hunks of a patch, brought into the contents of a file.
//!
//! A hunk goes where its lines are: at the line it names, moved as the hunks before it were, or else
//! at the nearest place that has the same lines. If there is none, up to two lines of context at
//! either end are left out of account, as the program `patch` does it. Hunks keep their order.

use crate::lines::split;
use crate::merge::extend;
use crate::read::PatchHunk;

/// Lines of context at an end that may differ.
const MOST_FUZZ: usize = 2;

/// Names of the two versions that marks stand between.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a> {
    /// Of the first.
    pub ours: &'a str,
    /// Of the second.
    pub theirs: &'a str,
}

/// The numbers of the hunks that have no place, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected(pub Vec<usize>);

/// What came of a patch whose conflicts are marked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The contents.
    pub contents: Vec<u8>,
    /// How many hunks had no place and are between marks.
    pub conflicts: usize,
}

/// Brings all hunks in, or says which of them have no place.
pub fn apply(contents: &[u8], hunks: &[PatchHunk]) -> Result<Vec<u8>, Rejected> {
    let lines = split(contents);
    let mut applying = Applying::new(&lines);
    let mut rejected = vec![];
    for (index, hunk) in hunks.iter().enumerate() {
        match applying.find(hunk) {
            Some(found) => applying.put(hunk, found),
            None => rejected.push(index + 1),
        }
    }
    if rejected.is_empty() { Ok(applying.finish()) } else { Err(Rejected(rejected)) }
}

/// Brings hunks in. Where one has no place, what is there and what the patch wants are both kept,
/// between marks.
pub fn apply_leaving_marks(contents: &[u8], hunks: &[PatchHunk], labels: &Labels<'_>) -> Applied {
    let lines = split(contents);
    let mut applying = Applying::new(&lines);
    let mut conflicts = 0;
    for hunk in hunks {
        match applying.find(hunk) {
            Some(found) => applying.put(hunk, found),
            None => {
                applying.mark(hunk, labels);
                conflicts += 1;
            }
        }
    }
    Applied { contents: applying.finish(), conflicts }
}

/// Where a hunk goes.
struct Found {
    line: usize,
    /// Lines of the hunk that are left out of account at its start and at its end.
    skipped: (usize, usize),
}

struct Applying<'a> {
    lines: &'a [&'a [u8]],
    /// Lines that are dealt with.
    done: usize,
    /// How far the last hunk was from the line it named.
    moved: isize,
    result: Vec<u8>,
}

impl<'a> Applying<'a> {
    fn new(lines: &'a [&'a [u8]]) -> Self {
        Self { lines, done: 0, moved: 0, result: vec![] }
    }

    /// The line where a hunk should be, counted from 0.
    fn expected(&self, hunk: &PatchHunk) -> usize {
        // A hunk without old lines names the line that it comes after.
        let first = if hunk.old.is_empty() { hunk.start } else { hunk.start.saturating_sub(1) };
        first.saturating_add_signed(self.moved).clamp(self.done, self.lines.len())
    }

    fn find(&self, hunk: &PatchHunk) -> Option<Found> {
        let context = hunk.leading.max(hunk.trailing);
        for fuzz in 0..=MOST_FUZZ.min(context) {
            let skip = |lines: usize| (fuzz + lines).saturating_sub(context);
            let skipped = (skip(hunk.leading), skip(hunk.trailing));
            let wanted = &hunk.old[skipped.0..hunk.old.len() - skipped.1];
            if fuzz > 0 && wanted.is_empty() {
                return None;
            }
            if let Some(line) = self.nearest(wanted, self.expected(hunk) + skipped.0) {
                return Some(Found { line, skipped });
            }
        }
        None
    }

    /// The line nearest to the expected one where these lines are.
    fn nearest(&self, wanted: &[Vec<u8>], expected: usize) -> Option<usize> {
        if wanted.is_empty() {
            return Some(expected.min(self.lines.len()));
        }
        let last = self.lines.len().checked_sub(wanted.len())?;
        let fits = |line: &usize| {
            wanted.iter().zip(&self.lines[*line..]).all(|(wanted, line)| wanted == line)
        };
        let mut below = (self.done..expected.min(last + 1)).rev();
        let mut above = expected.max(self.done)..last + 1;
        loop {
            let (one, other) = (above.next(), below.next());
            if one.is_none() && other.is_none() {
                return None;
            }
            if let Some(found) = [one, other].into_iter().flatten().find(fits) {
                return Some(found);
            }
        }
    }

    fn put(&mut self, hunk: &PatchHunk, found: Found) {
        let Found { line, skipped } = found;
        self.moved = line as isize - skipped.0 as isize - self.named(hunk);
        extend(&mut self.result, &self.lines[self.done..line]);
        self.end_line();
        let new = &hunk.new[skipped.0..hunk.new.len() - skipped.1];
        new.iter().for_each(|line| self.result.extend_from_slice(line));
        self.done = line + hunk.old.len() - skipped.0 - skipped.1;
    }

    fn mark(&mut self, hunk: &PatchHunk, labels: &Labels<'_>) {
        let start = self.expected(hunk);
        let end = (start + hunk.old.len()).min(self.lines.len());
        extend(&mut self.result, &self.lines[self.done..start]);
        let new: Vec<&[u8]> = hunk.new.iter().map(Vec::as_slice).collect();
        labels.conflict(&mut self.result, &self.lines[start..end], &new);
        self.done = end;
    }

    fn finish(mut self) -> Vec<u8> {
        if self.done < self.lines.len() {
            self.end_line();
        }
        extend(&mut self.result, &self.lines[self.done..]);
        self.result
    }

    /// Ends a line that has lost its end, before another follows.
    fn end_line(&mut self) {
        if self.result.last().is_some_and(|byte| *byte != b'\n') {
            self.result.push(b'\n');
        }
    }

    fn named(&self, hunk: &PatchHunk) -> isize {
        let first = if hunk.old.is_empty() { hunk.start } else { hunk.start.saturating_sub(1) };
        first as isize
    }
}

impl Labels<'_> {
    /// Writes two versions of some lines between marks. What they begin and end with in common
    /// stands outside.
    pub(crate) fn conflict(&self, result: &mut Vec<u8>, ours: &[&[u8]], theirs: &[&[u8]]) {
        let same = |(one, other): &(&&[u8], &&[u8])| one == other;
        let start = ours.iter().zip(theirs).take_while(same).count();
        let (common, ours) = ours.split_at(start);
        let theirs = &theirs[start..];
        let end = ours.iter().rev().zip(theirs.iter().rev()).take_while(same).count();
        let (ours, tail) = ours.split_at(ours.len() - end);
        let theirs = &theirs[..theirs.len() - end];
        extend(result, common);
        if ours.is_empty() && theirs.is_empty() {
            return extend(result, tail);
        }
        let mut line = |mark: &str, label: &str, lines: &[&[u8]]| {
            if result.last().is_some_and(|byte| *byte != b'\n') {
                result.push(b'\n');
            }
            result.extend_from_slice(mark.as_bytes());
            if !label.is_empty() {
                result.push(b' ');
                result.extend_from_slice(label.as_bytes());
            }
            result.push(b'\n');
            extend(result, lines);
        };
        line("<<<<<<<", self.ours, ours);
        line("=======", "", theirs);
        line(">>>>>>>", self.theirs, tail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Body, Reader};

    fn hunks(text: &str) -> Vec<PatchHunk> {
        let text = format!("--- a/f\n+++ b/f\n{text}");
        let patch = Reader::new(text.as_bytes()).next_patch().unwrap().unwrap();
        let Body::Hunks(hunks) = patch.body else { panic!("it has hunks") };
        hunks
    }

    fn applied(contents: &str, text: &str) -> Result<String, Rejected> {
        let result = apply(contents.as_bytes(), &hunks(text))?;
        Ok(String::from_utf8(result).unwrap())
    }

    const CHANGE: &str = "@@ -2,3 +2,3 @@\n b\n-c\n+C\n d\n";

    #[test]
    fn hunks_are_found_where_their_lines_are() {
        assert_eq!(applied("a\nb\nc\nd\ne\n", CHANGE).unwrap(), "a\nb\nC\nd\ne\n");
        assert_eq!(applied("0\n0\n0\na\nb\nc\nd\n", CHANGE).unwrap(), "0\n0\n0\na\nb\nC\nd\n");
        assert_eq!(applied("b\nc\nd\n", CHANGE).unwrap(), "b\nC\nd\n");
        assert_eq!(applied("x\nc\nd\n", CHANGE).unwrap(), "x\nC\nd\n", "context may differ a bit");
        assert_eq!(applied("a\nb\nx\nd\n", CHANGE), Err(Rejected(vec![1])));
        assert_eq!(applied("", CHANGE), Err(Rejected(vec![1])));
    }

    #[test]
    fn later_hunks_move_with_earlier_ones() {
        let two = "@@ -1,2 +1,3 @@\n a\n+new\n b\n@@ -5 +6 @@\n-x\n+y\n";
        assert_eq!(applied("a\nb\nc\nd\nx\nx\n", two).unwrap(), "a\nnew\nb\nc\nd\ny\nx\n");
        let moved = "1\na\nb\nc\nd\nx\nx\n";
        assert_eq!(applied(moved, two).unwrap(), "1\na\nnew\nb\nc\nd\ny\nx\n");
    }

    #[test]
    fn lines_without_context_and_without_ends() {
        assert_eq!(applied("a\nb\n", "@@ -1,0 +2 @@\n+new\n").unwrap(), "a\nnew\nb\n");
        assert_eq!(applied("", "@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n").unwrap(), "a");
        let end = "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n";
        assert_eq!(applied("a", end).unwrap(), "a\n");
        assert_eq!(applied("a\n", end), Err(Rejected(vec![1])));
        assert_eq!(applied("a\n", "@@ -1 +0,0 @@\n-a\n").unwrap(), "");
    }

    #[test]
    fn what_has_no_place_is_marked() {
        let labels = Labels { ours: "workspace", theirs: "patch" };
        let patch = "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n@@ -5,2 +5,2 @@\n e\n-f\n+F\n";
        let applied = apply_leaving_marks(b"a\nother\nc\nd\ne\nf\n", &hunks(patch), &labels);
        assert_eq!(applied.conflicts, 1);
        assert_eq!(
            String::from_utf8(applied.contents).unwrap(),
            "a\n<<<<<<< workspace\nother\n=======\nB\n>>>>>>> patch\nc\nd\ne\nF\n"
        );
    }
}
