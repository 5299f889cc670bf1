//! Sizes like `2GiB` and durations like `1h30m`, as people write them in a settings file.
//!
//! A unit is always needed: a bare number would leave open whether seconds or minutes were meant.

use std::time::Duration;

/// A size or a duration that cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// Not the form of a duration.
    #[error("`{0}` is no duration, which is written like `90s`, `10m` or `1h30m`")]
    Duration(String),
    /// Not the form of a size.
    #[error("`{0}` is no size, which is written like `512MiB` or `2GB`")]
    Size(String),
}

const DURATION_UNITS: &[(&str, u64)] =
    &[("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

const SIZE_UNITS: &[(&str, u64)] = &[
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

/// Reads a duration: one or more numbers, each with `ms`, `s`, `m`, `h` or `d`.
pub fn parse_duration(text: &str) -> Result<Duration, QuantityError> {
    let fail = || QuantityError::Duration(text.to_owned());
    let mut rest = text.trim();
    let mut total: u64 = 0;
    if rest.is_empty() {
        return Err(fail());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(fail)?;
        let number: u64 = rest[..digits].parse().map_err(|_| fail())?;
        rest = &rest[digits..];
        let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let factor = unit(DURATION_UNITS, &rest[..end]).ok_or_else(fail)?;
        total = number.checked_mul(factor).and_then(|n| total.checked_add(n)).ok_or_else(fail)?;
        rest = &rest[end..];
    }
    Ok(Duration::from_millis(total))
}

/// Reads a size in bytes: a number, which may have a fraction, and a unit. `GiB` counts in powers of
/// 1024, `GB` in powers of 1000.
pub fn parse_size(text: &str) -> Result<u64, QuantityError> {
    let fail = || QuantityError::Size(text.to_owned());
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(fail)?;
    let factor = unit(SIZE_UNITS, &trimmed[end..].trim().to_ascii_lowercase()).ok_or_else(fail)?;
    if let Ok(whole) = trimmed[..end].parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(fail);
    }
    let bytes = trimmed[..end].parse::<f64>().map_err(|_| fail())? * factor as f64;
    if bytes > u64::MAX as f64 { Err(fail()) } else { Ok(bytes as u64) }
}

fn unit(table: &[(&str, u64)], name: &str) -> Option<u64> {
    table.iter().find(|(unit, _)| *unit == name).map(|(_, factor)| *factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, millis) in [
            ("500ms", 500),
            ("10s", 10_000),
            ("10m", 600_000),
            ("1h30m", 5_400_000),
            ("24h", 86_400_000),
            ("2d", 172_800_000),
            ("0s", 0),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "10", "s", "10 minutes", "1h30", "-1s", "99999999999999999999s", "10y"] {
            assert_eq!(parse_duration(text), Err(QuantityError::Duration(text.into())), "{text}");
        }
    }

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("1B", 1),
            ("2GiB", 2 << 30),
            ("512 MiB", 512 << 20),
            ("2GB", 2_000_000_000),
            ("1.5KiB", 1536),
            ("1tib", 1 << 40),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "10", "GiB", "1.2.3MB", "-1MB", "99999999999TiB", "1EB"] {
            assert_eq!(parse_size(text), Err(QuantityError::Size(text.into())), "{text}");
        }
    }
}
