//! Points in time given as numbers.

use protocol::Error;

/// What every file system that a store may be on can hold.
const EARLIEST: i64 = -(1 << 31);
const LATEST: i64 = (1 << 33) - 1;

/// Seconds since 1970 that a file can have been changed at.
pub(crate) fn seconds(given: i64) -> Result<i64, Error> {
    match given {
        EARLIEST..=LATEST => Ok(given),
        _ => Err(Error::user(format!(
            "timestamp {given}: give seconds since 1970, from {EARLIEST} to {LATEST}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds() {
        for fits in [0, 1_700_000_000, EARLIEST, LATEST] {
            assert_eq!(seconds(fits).unwrap(), fits);
        }
        for odd in [i64::MIN, i64::MAX, LATEST + 1] {
            assert!(seconds(odd).unwrap_err().message.contains("timestamp"));
        }
    }
}
