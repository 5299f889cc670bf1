//! The order of versions, exactly as dpkg has it.

use std::cmp::Ordering;

/// Compares two versions `[epoch:]upstream[-revision]`.
pub fn compare(left: &str, right: &str) -> Ordering {
    let (left, right) = (split(left), split(right));
    left.epoch
        .cmp(&right.epoch)
        .then_with(|| compare_part(left.upstream, right.upstream))
        .then_with(|| compare_part(left.revision, right.revision))
}

struct Parts<'a> {
    epoch: u64,
    upstream: &'a [u8],
    revision: &'a [u8],
}

fn split(version: &str) -> Parts<'_> {
    let version = version.trim();
    let (epoch, rest) = match version.split_once(':') {
        Some((epoch, rest)) => (epoch.parse().unwrap_or(0), rest),
        None => (0, version),
    };
    let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, ""));
    Parts { epoch, upstream: upstream.as_bytes(), revision: revision.as_bytes() }
}

/// A tilde sorts before the end, letters before everything else that is not a digit.
fn weight(byte: Option<u8>) -> i32 {
    match byte {
        None => 0,
        Some(b'~') => -1,
        Some(digit) if digit.is_ascii_digit() => 0,
        Some(letter) if letter.is_ascii_alphabetic() => i32::from(letter),
        Some(other) => i32::from(other) + 256,
    }
}

/// Runs of non-digits by weight and runs of digits by value, in turn.
fn compare_part(mut left: &[u8], mut right: &[u8]) -> Ordering {
    let is_word = |part: &[u8]| part.first().is_some_and(|byte| !byte.is_ascii_digit());
    while !left.is_empty() || !right.is_empty() {
        while is_word(left) || is_word(right) {
            let order = weight(left.first().copied()).cmp(&weight(right.first().copied()));
            if order.is_ne() {
                return order;
            }
            left = left.get(1..).unwrap_or_default();
            right = right.get(1..).unwrap_or_default();
        }
        let (left_number, right_number);
        (left_number, left) = take_number(left);
        (right_number, right) = take_number(right);
        let order = left_number.len().cmp(&right_number.len()).then(left_number.cmp(right_number));
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

/// The leading digits without leading zeros, and what follows. Numbers of equal length compare
/// as text, so there is no limit to their size.
fn take_number(part: &[u8]) -> (&[u8], &[u8]) {
    let end = part.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(part.len());
    let (digits, rest) = part.split_at(end);
    let zeros = digits.iter().position(|&byte| byte != b'0').unwrap_or(digits.len());
    (&digits[zeros..], rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_that_of_dpkg() {
        use Ordering::{Equal, Greater, Less};
        let table = [
            ("0", "0", Equal),
            ("0:0-0", "0", Equal),
            ("1.0", "1.0-0", Equal),
            ("00001", "1", Equal),
            ("1.00", "1.0", Equal),
            ("0:0-00", "0:0-0", Equal),
            ("1:1", "2", Greater),
            ("1.0-1", "1.0-2", Less),
            ("1.0-1+deb12u2", "1.0-1+deb12u10", Less),
            ("1.0~rc1", "1.0", Less),
            ("1.0~~", "1.0~", Less),
            ("1.0~~a", "1.0~", Less),
            ("1.0~", "1.0", Less),
            ("1.0~rc1-1", "1.0-1~bpo", Less),
            ("1.0a", "1.0+", Less),
            ("1.0", "1.0a", Less),
            ("1.0+", "1.0a", Greater),
            ("1.2.3", "1.2.10", Less),
            ("1.2-3-4", "1.2-3", Greater),
            ("2.36-9+deb12u9", "2.36-9", Greater),
            ("5.2.15+b1", "5.2.15", Greater),
            ("1.18446744073709551616", "1.18446744073709551617", Less),
            ("a", "b", Less),
            ("1b", "1a", Greater),
            ("1-1~exp1", "1-1", Less),
            ("7.88.1-10+deb12u5", "7.88.1-10+deb12u12", Less),
        ];
        for (left, right, expect) in table {
            assert_eq!(compare(left, right), expect, "{left} against {right}");
            assert_eq!(compare(right, left), expect.reverse(), "{right} against {left}");
        }
    }
}
