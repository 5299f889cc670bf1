//! Permission bits given as numbers.

use protocol::Error;

/// Permission bits that must be given.
pub(crate) fn required(bits: i64) -> Result<u32, Error> {
    u32::try_from(bits).ok().filter(|bits| *bits <= 0o7777).ok_or_else(|| {
        Error::user(format!("permissions {bits}: give a number from 0 to 4095 (0o7777)"))
    })
}

/// Permission bits that may be left out.
pub(crate) fn optional(bits: Option<i64>) -> Result<Option<u32>, Error> {
    bits.map(required).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds() {
        assert_eq!(required(0o7777).unwrap(), 0o7777);
        assert!(required(0o10000).is_err());
        assert!(required(-1).is_err());
        assert_eq!(optional(None).unwrap(), None);
    }
}
