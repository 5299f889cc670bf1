//! [`Address`]: where a secret is, with what is said about caching taken off.

use protocol::Error;
use protocol::attach::SecretRequest;
use std::time::Duration;

/// The address of a secret, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Address {
    /// What the client is asked for.
    pub(super) uri: String,
    pub(super) cache_key: Option<String>,
    pub(super) time_to_live: Option<Duration>,
}

impl Address {
    /// Refuses an address that no secret can be at, without looking for one.
    pub(super) fn check(text: &str) -> Result<(), Error> {
        let Self { uri, .. } = Self::parse(text)?;
        SecretRequest { uri }.parts().map(drop)
    }

    /// Takes `cacheKey` and `ttl` off the end. Whatever else follows the question mark is the
    /// provider's: a command may have one of its own.
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let (mut cache_key, mut time_to_live) = (None, None);
        let Some((before, query)) = text.rsplit_once('?') else {
            return Ok(Self { uri: text.to_owned(), cache_key, time_to_live });
        };
        let mut others = vec![];
        for part in query.split('&') {
            match part.split_once('=') {
                Some(("cacheKey", key)) => cache_key = Some(key.to_owned()),
                Some(("ttl", limit)) => time_to_live = Some(duration(limit)?),
                _ => others.push(part),
            }
        }
        let uri = match &others[..] {
            [] => before.to_owned(),
            others => format!("{before}?{}", others.join("&")),
        };
        Ok(Self { uri, cache_key, time_to_live })
    }
}

/// A time such as `10m`, `1h30m` or `500ms`.
fn duration(text: &str) -> Result<Duration, Error> {
    let refused = || {
        Error::user(format!("the ttl `{text}` of a secret is no time"))
            .with_hint("write it like `30s`, `10m` or `1h30m`")
    };
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(refused)?;
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let number: u32 = number.parse().map_err(|_| refused())?;
        let unit = match unit {
            "ms" => Duration::from_millis(1),
            "s" => Duration::from_secs(1),
            "m" => Duration::from_secs(60),
            "h" => Duration::from_secs(3600),
            _ => return Err(refused()),
        };
        total += unit * number;
        rest = after;
    }
    if total.is_zero() { Err(refused()) } else { Ok(total) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_about_caching_is_taken_off() {
        for (text, uri, cache_key, seconds) in [
            ("env://A", "env://A", None, None),
            ("env://A?cacheKey=k", "env://A", Some("k"), None),
            ("file://a?ttl=10m&cacheKey=k=1", "file://a", Some("k=1"), Some(600)),
            ("cmd://get x?y=1", "cmd://get x?y=1", None, None),
            ("cmd://get x?y=1?ttl=1h30m", "cmd://get x?y=1", None, Some(5400)),
            ("libsecret://a/b?attr=v&ttl=90s", "libsecret://a/b?attr=v", None, Some(90)),
            ("cmd://echo really?", "cmd://echo really?", None, None),
        ] {
            let address = Address::parse(text).unwrap();
            let expect = Address {
                uri: uri.into(),
                cache_key: cache_key.map(str::to_owned),
                time_to_live: seconds.map(Duration::from_secs),
            };
            assert_eq!(address, expect, "{text}");
        }
    }

    #[test]
    fn providers_that_nobody_knows_are_refused() {
        for (uri, said) in [
            ("env://A?ttl=5s", None),
            ("vault://a.b", Some("unsupported secret provider: \"vault\"")),
            ("hunter2-is-secret", Some("malformed id of a secret: \"hun...\"")),
        ] {
            let refused = Address::check(uri).err().map(|error| error.message);
            assert_eq!(refused.as_deref(), said, "{uri}");
        }
    }

    #[test]
    fn times_that_make_no_sense_are_refused() {
        for ttl in ["", "5", "m", "5x", "-5m", "0s", "99999999999s", "1h x"] {
            let error = Address::parse(&format!("env://A?ttl={ttl}")).unwrap_err();
            assert!(error.message.contains("is no time"), "{ttl}: {error}");
        }
        assert_eq!(duration("500ms").unwrap(), Duration::from_millis(500));
    }
}
