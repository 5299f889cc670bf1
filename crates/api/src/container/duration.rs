//! Spans of time as images and health checks write them: `1m30s`, `1.5s`, `100ms`.

use protocol::Error;
use std::time::Duration;

/// Units, each with its length in nanoseconds.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Reads a span of time; `what` is for the error.
pub(super) fn parse(text: &str, what: &str) -> Result<Duration, Error> {
    let refused = || {
        Error::user(format!("`{text}` is no {what}")).with_hint("write it like `30s` or `1m30s`")
    };
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    if text.is_empty() {
        return Err(refused());
    }
    let (mut rest, mut total) = (text, 0.0);
    while !rest.is_empty() {
        let digits = rest.find(|it: char| !it.is_ascii_digit() && it != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|it: char| it.is_ascii_digit() || it == '.');
        let (unit, after) = after.split_at(letters.unwrap_or(after.len()));
        let number: f64 = number.parse().map_err(|_| refused())?;
        let length = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(refused)?.1;
        total += number * length as f64;
        rest = after;
    }
    if total > i64::MAX as f64 {
        return Err(refused());
    }
    Ok(Duration::from_nanos(total.round() as u64))
}

/// Writes a span of time with all units from the largest that it has down to seconds.
pub(super) fn write(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let fraction = |unit: u128| {
        let text = format!("{}.{:0>9}", nanos / unit, (nanos % unit) * (1_000_000_000 / unit));
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match nanos {
        0 => "0s".to_owned(),
        1..1_000 => format!("{nanos}ns"),
        1_000..1_000_000 => format!("{}\u{b5}s", fraction(1_000)),
        1_000_000..1_000_000_000 => format!("{}ms", fraction(1_000_000)),
        _ => {
            let seconds = duration.as_secs();
            let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
            let part = u128::from(seconds / 60 * 60) * 1_000_000_000;
            let rest = Duration::from_nanos((nanos - part) as u64);
            let rest = format!("{}.{:09}", rest.as_secs(), rest.subsec_nanos());
            let rest = rest.trim_end_matches('0').trim_end_matches('.');
            match (hours, minutes) {
                (0, 0) => format!("{rest}s"),
                (0, _) => format!("{minutes}m{rest}s"),
                _ => format!("{hours}h{minutes}m{rest}s"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_time_are_read_and_written() {
        for (text, written, nanos) in [
            ("0", "0s", 0),
            ("0s", "0s", 0),
            ("60s", "1m0s", 60_000_000_000),
            ("1m30s", "1m30s", 90_000_000_000),
            ("1.5s", "1.5s", 1_500_000_000),
            ("1h", "1h0m0s", 3_600_000_000_000),
            ("90m", "1h30m0s", 5_400_000_000_000),
            ("100ms", "100ms", 100_000_000),
            ("1500us", "1.5ms", 1_500_000),
            ("7ns", "7ns", 7),
            ("2m0.25s", "2m0.25s", 120_250_000_000),
        ] {
            let duration = parse(text, "interval").unwrap();
            assert_eq!(duration, Duration::from_nanos(nanos), "{text}");
            assert_eq!(write(duration), written, "{text}");
        }
        for text in ["", "5", "s", "-1s", "1 s", "1x", "99999999h"] {
            assert!(parse(text, "interval").is_err(), "{text}");
        }
    }
}
