//! How much of one file is in another, for finding out that a file was renamed and changed.

use std::hash::{DefaultHasher, Hasher};

/// Longest piece of a line that is taken as one, for files without lines.
const LONGEST_PIECE: usize = 64;

/// The pieces of some contents, by digest, with how many bytes each has in all.
#[derive(Clone, Debug)]
pub struct Fingerprint {
    /// Sorted.
    pieces: Vec<(u64, u64)>,
    length: u64,
}

impl Fingerprint {
    /// Of these contents.
    pub fn of(contents: &[u8]) -> Self {
        let lines = contents.split_inclusive(|byte| *byte == b'\n');
        let pieces = lines.flat_map(|line| line.chunks(LONGEST_PIECE));
        let mut pieces: Vec<(u64, u64)> =
            pieces.map(|piece| (digest(piece), piece.len() as u64)).collect();
        pieces.sort_unstable();
        pieces.dedup_by(|next, first| {
            let same = next.0 == first.0;
            if same {
                first.1 += next.1;
            }
            same
        });
        Self { pieces, length: contents.len() as u64 }
    }
}

/// Hundredths of the longer one that both have.
pub fn similarity(one: &Fingerprint, other: &Fingerprint) -> u8 {
    let longest = one.length.max(other.length);
    if longest == 0 {
        return 100;
    }
    let mut common = 0;
    let (mut left, mut right) = (one.pieces.iter().peekable(), other.pieces.iter().peekable());
    while let (Some((first, bytes)), Some((second, others))) = (left.peek(), right.peek()) {
        match first.cmp(second) {
            std::cmp::Ordering::Less => drop(left.next()),
            std::cmp::Ordering::Greater => drop(right.next()),
            std::cmp::Ordering::Equal => {
                common += bytes.min(others);
                left.next();
                right.next();
            }
        }
    }
    (common * 100 / longest) as u8
}

fn digest(piece: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(piece);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(one: &str, other: &str) -> u8 {
        similarity(&Fingerprint::of(one.as_bytes()), &Fingerprint::of(other.as_bytes()))
    }

    #[test]
    fn common_lines_count_by_their_length() {
        assert_eq!(compared("", ""), 100);
        assert_eq!(compared("a\n", ""), 0);
        assert_eq!(compared("a\nb\n", "b\na\n"), 100);
        assert_eq!(compared("a\nb\nc\nd\n", "a\nb\nc\nx\n"), 75);
        assert_eq!(compared("a\na\n", "a\n"), 50);
        assert_eq!(compared("x\n", "y\n"), 0);
    }
}
