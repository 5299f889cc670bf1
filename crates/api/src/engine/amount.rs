//! Amounts of space in arguments: `1000`, `200GB`, `1.5GiB`, `80%`.

use protocol::Error;

const UNITS: [(&str, u64); 10] = [
    ("", 1),
    ("b", 1),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
];

/// Bytes that the argument `name` stands for on a disk of this size; none where it is empty.
pub(super) fn parse(name: &str, text: &str, disk: u64) -> Result<Option<u64>, Error> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let bytes = if let Some(share) = text.strip_suffix('%') {
        let share = number(share).filter(|share| *share <= 100.0);
        share.map(|share| disk as f64 * share / 100.0)
    } else {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let unit = text[end..].trim().to_ascii_lowercase();
        let unit = UNITS.iter().find(|(name, _)| *name == unit);
        number(&text[..end]).zip(unit).map(|(number, (_, factor))| number * *factor as f64)
    };
    let readable = bytes.filter(|bytes| *bytes <= u64::MAX as f64);
    let unreadable = || {
        let message = format!("invalid {name} value: `{text}`");
        Error::user(message).with_hint("give bytes, a size like `200GB`, or a share like `80%`")
    };
    readable.map(|bytes| Some(bytes as u64)).ok_or_else(unreadable)
}

/// A number that is neither negative nor anything but digits and a point.
fn number(text: &str) -> Option<f64> {
    let plain = text.trim().chars().all(|c| c.is_ascii_digit() || c == '.');
    text.trim().parse().ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_units_and_shares() {
        let read = |text: &str| parse("maxUsedSpace", text, 1_000_000).unwrap();
        for (text, bytes) in [
            ("", None),
            ("0", Some(0)),
            ("1000", Some(1000)),
            ("200GB", Some(200_000_000_000)),
            ("1.5 GiB", Some(1_610_612_736)),
            ("80%", Some(800_000)),
            (" 5mb ", Some(5_000_000)),
        ] {
            assert_eq!(read(text), bytes, "{text}");
        }
    }

    #[test]
    fn what_is_no_amount_is_named() {
        for text in
            ["x", "-1", "1e3", "10 apples", "101%", "%", "GB", "1.2.3MB", "inf", "9999999TB9"]
        {
            let error = parse("minFreeSpace", text, 1).unwrap_err();
            assert!(error.message.contains("invalid minFreeSpace value"), "{text}: {error:?}");
        }
    }
}
