//! Contents that are no text, as git puts them into patches: deflated, in base 85.

use flate2::Compression;
use flate2::read::{ZlibDecoder, ZlibEncoder};
use std::io::Read;

/// The digits, in order.
const DIGITS: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
/// Bytes that one line holds.
const A_LINE: usize = 52;
/// Bytes that git allows a copy to have when it says 0.
const WHOLE_COPY: usize = 0x1_0000;

/// New contents of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binary {
    /// These.
    Literal(Vec<u8>),
    /// Pieces of the old contents and new ones.
    Delta(Vec<u8>),
}

/// A change of contents that does not fit what is there, or is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotApplied;

impl Binary {
    /// The new contents.
    pub fn apply(self, old: &[u8]) -> Result<Vec<u8>, NotApplied> {
        match self {
            Self::Literal(contents) => Ok(contents),
            Self::Delta(delta) => follow(&delta, old).ok_or(NotApplied),
        }
    }
}

/// Contents of a length, out of the lines of a patch; none if they are broken.
pub(crate) fn decode(lines: &[Vec<u8>], length: usize) -> Option<Vec<u8>> {
    let mut deflated = vec![];
    for line in lines {
        let (first, digits) = line.split_first()?;
        let held = match first {
            b'A'..=b'Z' => first - b'A' + 1,
            b'a'..=b'z' => first - b'a' + 27,
            _ => return None,
        };
        let start = deflated.len();
        if digits.len() % 5 != 0 {
            return None;
        }
        for group in digits.chunks_exact(5) {
            let digit = |byte: &u8| DIGITS.iter().position(|digit| digit == byte);
            let add = |number: u64, byte: &u8| Some(number * 85 + digit(byte)? as u64);
            let number = u32::try_from(group.iter().try_fold(0, add)?).ok()?;
            deflated.extend(number.to_be_bytes());
        }
        let end = start + usize::from(held);
        if end > deflated.len() || deflated.len() - end > 3 {
            return None;
        }
        deflated.truncate(end);
    }
    let mut contents = vec![];
    // One more than was promised, to see that there is no more: a small patch may deflate a lot.
    let limit = u64::try_from(length).ok()?.checked_add(1)?;
    ZlibDecoder::new(deflated.as_slice()).take(limit).read_to_end(&mut contents).ok()?;
    (contents.len() == length).then_some(contents)
}

/// Writes contents as the lines of a patch, with the empty line at their end.
pub(crate) fn encode(out: &mut Vec<u8>, contents: &[u8]) {
    out.extend(format!("literal {}\n", contents.len()).bytes());
    let mut deflated = vec![];
    let encoded = ZlibEncoder::new(contents, Compression::default()).read_to_end(&mut deflated);
    encoded.expect("reading from memory does not fail");
    for line in deflated.chunks(A_LINE) {
        let length = line.len() as u8;
        out.push(if length <= 26 { b'A' + length - 1 } else { b'a' + length - 27 });
        for group in line.chunks(4) {
            let mut bytes = [0; 4];
            bytes[..group.len()].copy_from_slice(group);
            let mut number = u32::from_be_bytes(bytes);
            let mut digits = [0; 5];
            for digit in digits.iter_mut().rev() {
                *digit = DIGITS[(number % 85) as usize];
                number /= 85;
            }
            out.extend(digits);
        }
        out.push(b'\n');
    }
    out.push(b'\n');
}

/// Follows the orders of a delta.
fn follow(delta: &[u8], old: &[u8]) -> Option<Vec<u8>> {
    let mut rest = delta;
    if size(&mut rest)? != old.len() {
        return None;
    }
    let length = size(&mut rest)?;
    let mut contents = vec![];
    while let Some((order, after)) = rest.split_first() {
        rest = after;
        if *order == 0 {
            return None;
        }
        if order & 0x80 == 0 {
            let count = usize::from(*order);
            contents.extend_from_slice(rest.get(..count)?);
            rest = &rest[count..];
        } else {
            let mut number = |bits: std::ops::Range<u32>| {
                let start = bits.start;
                bits.filter(|bit| order >> bit & 1 == 1).try_fold(0, |number, bit| {
                    let (byte, after) = rest.split_first()?;
                    rest = after;
                    Some(number | usize::from(*byte) << (8 * (bit - start)))
                })
            };
            let (offset, count) = (number(0..4)?, number(4..7)?);
            let count = if count == 0 { WHOLE_COPY } else { count };
            contents.extend_from_slice(old.get(offset..offset.checked_add(count)?)?);
        }
        if contents.len() > length {
            return None;
        }
    }
    (contents.len() == length).then_some(contents)
}

/// A number of seven bits a byte, the lowest first.
fn size(rest: &mut &[u8]) -> Option<usize> {
    let mut number = 0_usize;
    for shift in (0..usize::BITS).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        number |= usize::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Vec<Vec<u8>> {
        text.split(|byte| *byte == b'\n')
            .skip(1)
            .filter(|line| !line.is_empty())
            .map(<[u8]>::to_vec)
            .collect()
    }

    #[test]
    fn contents_of_every_length_read_back() {
        let mut number = 1_u32;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (number >> 24) as u8
        })
        .take(300)
        .collect();
        for length in 0..noise.len() {
            let mut text = vec![];
            encode(&mut text, &noise[..length]);
            assert_eq!(decode(&lines(&text), length).as_deref(), Some(&noise[..length]));
            assert_eq!(decode(&lines(&text), length + 1), None);
        }
    }

    #[test]
    fn broken_lines_are_refused() {
        for line in ["", "?00000", "D0000", "A~~~~~", "z00000"] {
            assert_eq!(decode(&[line.into()], 4), None, "{line}");
        }
    }

    #[test]
    fn deltas_copy_and_add() {
        let delta = [5, 7, 0x91, 1, 3, 2, b'x', b'y', 0x90, 2];
        assert_eq!(follow(&delta, b"abcde").unwrap(), b"bcdxyab");
        assert_eq!(follow(&delta, b"abcd"), None, "made for another length");
        for broken in [&[5, 7][..], &[5, 7, 0], &[5, 7, 0x91, 9, 9], &[5, 7, 9, b'x'], &[0x80; 20]]
        {
            assert_eq!(follow(broken, b"abcde"), None, "{broken:?}");
        }
    }
}
