//! Which of two versions is the older one.

use protocol::session::EngineVersion;
use protocol::{VERSION, WIRE_VERSION};
use std::cmp::Ordering;

/// Whether an engine is older than this program. One whose version cannot be read is not.
pub(super) fn is_older(engine: &EngineVersion) -> bool {
    match compare(&engine.version, VERSION) {
        Some(Ordering::Equal) => engine.wire < WIRE_VERSION,
        order => order == Some(Ordering::Less),
    }
}

/// The order of two versions such as `1.2.3` and `1.2.3-beta.4`, which comes before `1.2.3`.
fn compare(one: &str, other: &str) -> Option<Ordering> {
    let (one, other) = (parse(one)?, parse(other)?);
    let tails = match (one.1, other.1) {
        ("", "") => Ordering::Equal,
        ("", _) => Ordering::Greater,
        (_, "") => Ordering::Less,
        (one, other) => compare_tails(one, other),
    };
    Some(one.0.cmp(&other.0).then(tails))
}

/// The three numbers, and what follows a hyphen. What follows a plus does not count.
fn parse(version: &str) -> Option<([u64; 3], &str)> {
    let version = version.split('+').next()?;
    let (numbers, tail) = version.split_once('-').unwrap_or((version, ""));
    let mut parts = numbers.split('.').map(|part| part.parse().ok());
    let numbers = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some((numbers, tail))
}

/// Word by word: numbers by value and before words, words by bytes, fewer before more.
fn compare_tails(one: &str, other: &str) -> Ordering {
    let word = |word: &str| match word.parse::<u64>() {
        Ok(number) => (0, number, String::new()),
        Err(_) => (1, 0, word.to_owned()),
    };
    one.split('.').map(word).cmp(other.split('.').map(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_order() {
        let ordered = [
            "0.0.9",
            "0.1.0-alpha",
            "0.1.0-alpha.1",
            "0.1.0-beta.2",
            "0.1.0-beta.11",
            "0.1.0",
            "0.1.1",
            "0.10.0",
            "1.0.0",
        ];
        for pair in ordered.windows(2) {
            assert_eq!(compare(pair[0], pair[1]), Some(Ordering::Less), "{pair:?}");
            assert_eq!(compare(pair[1], pair[0]), Some(Ordering::Greater), "{pair:?}");
        }
        assert_eq!(compare("1.2.3+a", "1.2.3+b"), Some(Ordering::Equal));
        for odd in ["", "1", "1.2", "1.2.3.4", "a.b.c", "v1.2.3"] {
            assert_eq!(compare(odd, "1.2.3"), None, "{odd}");
        }
    }

    #[test]
    fn of_equal_versions_the_wire_decides() {
        let engine = |version: &str, wire| EngineVersion { version: version.into(), wire, pid: 1 };
        assert!(is_older(&engine("0.0.1", 99)));
        assert!(is_older(&engine(VERSION, WIRE_VERSION - 1)));
        assert!(!is_older(&engine(VERSION, WIRE_VERSION + 1)));
        assert!(!is_older(&engine("999.0.0", 0)));
        assert!(!is_older(&engine("strange", 0)));
    }
}
