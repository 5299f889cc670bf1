//! What differs between two texts, line by line.

use imara_diff::{Algorithm, Diff, InternedInput};
use std::ops::Range;

/// Bytes that are looked at to tell a text from something else, as git does it.
const LOOKED_AT: usize = 8_000;

/// Lines that were replaced by others. Either side may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// Lines of the older text.
    pub before: Range<usize>,
    /// Lines of the newer text.
    pub after: Range<usize>,
}

/// The lines of a text, each with its end.
pub fn split(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// What differs, in order. Between two hunks there is at least one common line.
pub fn differences(before: &[&[u8]], after: &[&[u8]]) -> Vec<Hunk> {
    let (input, diff) = compute(before, after);
    drop(input);
    let range = |range: Range<u32>| range.start as usize..range.end as usize;
    diff.hunks().map(|hunk| Hunk { before: range(hunk.before), after: range(hunk.after) }).collect()
}

/// How many lines were added and removed.
pub fn count(before: &[u8], after: &[u8]) -> (u64, u64) {
    let (_, diff) = compute(&split(before), &split(after));
    (diff.count_additions().into(), diff.count_removals().into())
}

/// Whether these bytes are no text.
pub fn is_binary(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(LOOKED_AT)].contains(&0)
}

fn compute<'a>(before: &[&'a [u8]], after: &[&'a [u8]]) -> (InternedInput<&'a [u8]>, Diff) {
    let mut input = InternedInput::default();
    input.update_before(before.iter().copied());
    input.update_after(after.iter().copied());
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    (input, diff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_compared_with_their_ends() {
        assert_eq!(split(b"a\nb"), [b"a\n".as_slice(), b"b"]);
        assert_eq!(count(b"a\nb\nc\n", b"a\nx\nc\ny"), (2, 1));
        assert_eq!(count(b"a\n", b"a"), (1, 1), "the missing end of a line is a change");
        assert_eq!(count(b"", b""), (0, 0));
        let hunks = differences(&split(b"a\nb\nc\n"), &split(b"b\nc\nd\n"));
        assert_eq!(hunks, [Hunk { before: 0..1, after: 0..0 }, Hunk { before: 3..3, after: 2..3 }]);
    }

    #[test]
    fn a_zero_byte_early_makes_no_text() {
        assert!(is_binary(b"a\0b"));
        assert!(!is_binary(b"\xff\xfe not text, but lines"));
        let mut late = vec![b'a'; LOOKED_AT];
        late.push(0);
        assert!(!is_binary(&late));
    }
}
