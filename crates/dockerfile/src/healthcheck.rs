//! `HEALTHCHECK`: how a program that runs from an image is found to be well.

use crate::{CommandLine, Error, words};

/// Nanoseconds of the units that durations are written in.
const UNITS: &[(&str, f64)] = &[
    ("ns", 1.0),
    ("us", 1e3),
    ("\u{b5}s", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("h", 3600e9),
];
/// The shortest duration that means something, in nanoseconds.
const SHORTEST: i64 = 1_000_000;

/// A health check. Durations are nanoseconds; none leaves the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Healthcheck {
    /// What is run; none says that there is no check.
    pub command: Option<CommandLine>,
    /// Between two checks.
    pub interval: Option<i64>,
    /// For one check.
    pub timeout: Option<i64>,
    /// How long the program may take to start.
    pub start_period: Option<i64>,
    /// Between two checks while it starts.
    pub start_interval: Option<i64>,
    /// How many checks must fail.
    pub retries: Option<i64>,
}

impl Healthcheck {
    pub(crate) fn parse(flags: &[(String, Option<String>)], rest: &str) -> Result<Self, Error> {
        let (kind, rest) = words::first(rest);
        let mut check = Self::default();
        match kind.to_ascii_uppercase().as_str() {
            "" => return Err(Error::of("HEALTHCHECK requires at least one argument")),
            "NONE" if rest.is_empty() && flags.is_empty() => return Ok(check),
            "NONE" => return Err(Error::of("HEALTHCHECK NONE takes no arguments")),
            "CMD" if rest.is_empty() => {
                return Err(Error::of("Missing command after HEALTHCHECK CMD"));
            }
            "CMD" => {}
            other => {
                return Err(Error::of(format!(
                    "unknown type \"{other}\" of HEALTHCHECK (try CMD)"
                )));
            }
        }
        check.command = Some(match words::json(rest) {
            Some(words) => CommandLine::Exec(words),
            None => CommandLine::Shell(rest.to_owned()),
        });
        for (name, value) in flags {
            let text = value.as_deref().unwrap_or_default();
            match name.as_str() {
                "interval" => check.interval = duration(name, text)?,
                "timeout" => check.timeout = duration(name, text)?,
                "start-period" => check.start_period = duration(name, text)?,
                "start-interval" => check.start_interval = duration(name, text)?,
                "retries" => {
                    let number = text.parse().ok().filter(|number: &i64| *number >= 0);
                    let wrong =
                        || Error::of(format!("--retries must be a whole number, not \"{text}\""));
                    check.retries = Some(number.ok_or_else(wrong)?).filter(|number| *number > 0);
                }
                _ => return Err(Error::of(format!("unknown flag: --{name}"))),
            }
        }
        Ok(check)
    }
}

/// Reads a duration such as `1m30s`; zero leaves the default.
fn duration(name: &str, text: &str) -> Result<Option<i64>, Error> {
    let wrong = || Error::of(format!("--{name}: \"{text}\" is no duration, e.g. 30s or 1m30s"));
    let (mut rest, mut sum) = (text, 0.0);
    if rest == "0" {
        return Ok(None);
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let number: f64 = rest[..digits].parse().map_err(|_| wrong())?;
        rest = &rest[digits..];
        let end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let unit = UNITS.iter().find(|(unit, _)| *unit == &rest[..end]).ok_or_else(wrong)?;
        sum += number * unit.1;
        rest = &rest[end..];
    }
    match sum as i64 {
        0 if text.is_empty() => Err(wrong()),
        0 => Ok(None),
        short if short < SHORTEST => Err(Error::of(format!("--{name} cannot be less than 1ms"))),
        nanoseconds => Ok(Some(nanoseconds)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, expected) in [
            ("30s", Some(30_000_000_000)),
            ("1m30s", Some(90_000_000_000)),
            ("1.5h", Some(5_400_000_000_000)),
            ("500ms", Some(500_000_000)),
            ("0", None),
            ("0s", None),
        ] {
            assert_eq!(duration("interval", text), Ok(expected), "{text}");
        }
        for text in ["", "5", "x", "5y", "s", "-1s", "1us"] {
            assert!(duration("interval", text).is_err(), "{text}");
        }
    }
}
