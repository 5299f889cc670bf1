//! One header block: fixed places for fixed fields.

use super::BLOCK;
use crate::Error;

/// The fields of a header that are used here.
pub(super) struct Header {
    pub(super) path: Vec<u8>,
    pub(super) link: Vec<u8>,
    pub(super) kind: u8,
    pub(super) mode: u64,
    pub(super) uid: u64,
    pub(super) gid: u64,
    pub(super) size: u64,
    pub(super) mtime: i64,
    pub(super) major: u64,
    pub(super) minor: u64,
}

/// Places of the fields.
const NAME: std::ops::Range<usize> = 0..100;
const MODE: std::ops::Range<usize> = 100..108;
const UID: std::ops::Range<usize> = 108..116;
const GID: std::ops::Range<usize> = 116..124;
const SIZE: std::ops::Range<usize> = 124..136;
const MTIME: std::ops::Range<usize> = 136..148;
const CHECKSUM: std::ops::Range<usize> = 148..156;
const KIND: usize = 156;
const LINK: std::ops::Range<usize> = 157..257;
const MAGIC: std::ops::Range<usize> = 257..265;
const MAJOR: std::ops::Range<usize> = 329..337;
const MINOR: std::ops::Range<usize> = 337..345;
const PREFIX: std::ops::Range<usize> = 345..500;

/// The name of the format in a header of today's standard.
const STANDARD: &[u8] = b"ustar\x0000";
/// The same in a header of GNU's older format, whose last part means something else.
const GNU: &[u8] = b"ustar  \0";

/// Longest path and longest link target that a plain header holds.
pub(super) const SHORT: usize = 100;
/// Numbers below this fit into eight places.
pub(super) const SMALL: u64 = 1 << 21;
/// Numbers below this fit into twelve places.
pub(super) const LARGE: u64 = 1 << 33;

impl Header {
    pub(super) fn parse(block: &[u8; BLOCK]) -> Result<Self, Error> {
        if !checksum_matches(block) {
            return Err(Error::Tar("a header has a wrong checksum".to_owned()));
        }
        let standard = &block[MAGIC] == STANDARD;
        let known = standard || &block[MAGIC] == GNU || block[MAGIC].iter().all(|byte| *byte == 0);
        if !known {
            return Err(Error::Tar("a header has an unknown format".to_owned()));
        }
        let mut path = text(&block[NAME]);
        let prefix = if standard { text(&block[PREFIX]) } else { vec![] };
        if !prefix.is_empty() {
            path = [&prefix[..], b"/", &path].concat();
        }
        let number = |range: std::ops::Range<usize>, what| {
            let value = signed(&block[range]).and_then(|value| u64::try_from(value).ok());
            value.ok_or_else(|| Error::Tar(format!("a header has no valid {what}")))
        };
        let device = |range| match standard || &block[MAGIC] == GNU {
            true => number(range, "device number"),
            false => Ok(0),
        };
        let no_time = || Error::Tar("a header has no valid time".to_owned());
        Ok(Self {
            path,
            link: text(&block[LINK]),
            kind: block[KIND],
            mode: number(MODE, "mode")?,
            uid: number(UID, "user")?,
            gid: number(GID, "group")?,
            size: number(SIZE, "size")?,
            mtime: signed(&block[MTIME]).ok_or_else(no_time)?,
            major: device(MAJOR)?,
            minor: device(MINOR)?,
        })
    }

    /// The block of this header. What does not fit is left out: a record before it says it.
    pub(super) fn to_block(&self) -> [u8; BLOCK] {
        let mut block = [0_u8; BLOCK];
        put_text(&mut block[NAME], &self.path);
        put_number(&mut block[MODE], self.mode, SMALL);
        put_number(&mut block[UID], self.uid, SMALL);
        put_number(&mut block[GID], self.gid, SMALL);
        put_number(&mut block[SIZE], self.size, LARGE);
        put_number(&mut block[MTIME], u64::try_from(self.mtime).unwrap_or(0), LARGE);
        block[KIND] = self.kind;
        put_text(&mut block[LINK], &self.link);
        block[MAGIC].copy_from_slice(STANDARD);
        if matches!(self.kind, b'3' | b'4') {
            put_number(&mut block[MAJOR], self.major, SMALL);
            put_number(&mut block[MINOR], self.minor, SMALL);
        }
        let sum: u64 = sums(&block).0;
        block[CHECKSUM].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        block
    }
}

fn checksum_matches(block: &[u8; BLOCK]) -> bool {
    let (unsigned, signed_sum) = sums(block);
    let written = signed(&block[CHECKSUM]);
    written == i64::try_from(unsigned).ok() || written == Some(signed_sum)
}

/// The sum of all bytes with the checksum's own as spaces; some old writers took bytes as signed.
fn sums(block: &[u8; BLOCK]) -> (u64, i64) {
    let mut sums = (0_u64, 0_i64);
    for (index, byte) in block.iter().enumerate() {
        let byte = if CHECKSUM.contains(&index) { b' ' } else { *byte };
        sums.0 += u64::from(byte);
        sums.1 += i64::from(byte.cast_signed());
    }
    sums
}

/// The bytes before the first NUL.
fn text(field: &[u8]) -> Vec<u8> {
    field.split(|byte| *byte == 0).next().unwrap_or_default().to_vec()
}

/// A number: octal digits between spaces and NULs, or GNU's binary form.
fn signed(field: &[u8]) -> Option<i64> {
    let first = *field.first()?;
    if first & 0x80 != 0 {
        return binary(field);
    }
    let is_filler = |byte: &u8| matches!(*byte, b' ' | 0);
    let start = field.iter().position(|byte| !is_filler(byte)).unwrap_or(field.len());
    let digits = &field[start..];
    let length = digits.iter().position(is_filler).unwrap_or(digits.len());
    let (digits, rest) = digits.split_at(length);
    if !rest.iter().all(is_filler) {
        return None;
    }
    digits.iter().try_fold(0_i64, |number, digit| match digit {
        b'0'..=b'7' => number.checked_mul(8)?.checked_add(i64::from(digit - b'0')),
        _ => None,
    })
}

/// A number in two's complement over all bits of the field but the first.
fn binary(field: &[u8]) -> Option<i64> {
    let negative = field[0] & 0x40 != 0;
    let mut number: i128 = if negative { -1 } else { 0 };
    for (index, byte) in field.iter().enumerate() {
        let byte = match (index, negative) {
            (0, false) => byte & 0x7f,
            (0, true) => byte | 0x80,
            _ => *byte,
        };
        number = number << 8 | i128::from(byte);
    }
    i64::try_from(number).ok()
}

fn put_text(field: &mut [u8], text: &[u8]) {
    let length = text.len().min(field.len());
    field[..length].copy_from_slice(&text[..length]);
}

fn put_number(field: &mut [u8], number: u64, limit: u64) {
    let number = if number < limit { number } else { 0 };
    let digits = format!("{number:0width$o}", width = field.len() - 1);
    field[..digits.len()].copy_from_slice(digits.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_all_their_forms() {
        for (field, expected) in [
            (&b"0000644\0"[..], Some(0o644)),
            (b"   644 \0", Some(0o644)),
            (b"\0\0\0\0\0\0\0\0", Some(0)),
            (b"        ", Some(0)),
            (b"77777777", Some(0o7777_7777)),
            (b"64 4\0\0\0\0", None),
            (b"0x1\0\0\0\0\0", None),
            (b"-1\0\0\0\0\0\0", None),
            (b"\x80\0\0\0\0\0\x01\0", Some(256)),
            (b"\xff\xff\xff\xff\xff\xff\xff\xff", Some(-1)),
            (b"\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", None),
        ] {
            assert_eq!(signed(field), expected, "{field:?}");
        }
    }
}
