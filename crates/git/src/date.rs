//! Dates of commits: seconds and an offset, as a text that everybody reads.

/// `2026-11-15T23:50:27+01:00`; none for what is no time.
pub(crate) fn date(seconds: i64, offset: &str) -> Option<String> {
    let (sign, digits) = match offset.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let number: i64 = digits.parse().ok().filter(|_| digits.len() == 4)?;
    let (hours, minutes) = (number / 100, number % 100);
    let local = seconds.checked_add(sign * (hours * 3600 + minutes * 60))?;
    let (days, second) = (local.div_euclid(86_400), local.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let zone = match number {
        0 => "Z".to_owned(),
        _ => format!("{}{hours:02}:{minutes:02}", if sign < 0 { '-' } else { '+' }),
    };
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{zone}"))
}

/// Year, month and day of a day since 1970. The year is taken to begin in March, so that the day that some years
/// have more is their last; 400 such years are a cycle of 146,097 days.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (cycle, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + cycle * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_of_their_place() {
        for (seconds, offset, expect) in [
            (0, "+0000", "1970-01-01T00:00:00Z"),
            (951_782_400, "+0000", "2000-02-29T00:00:00Z"),
            (1_700_000_000, "+0100", "2023-11-14T23:13:20+01:00"),
            (1_700_000_000, "-0330", "2023-11-14T18:43:20-03:30"),
            (-1, "+0000", "1969-12-31T23:59:59Z"),
        ] {
            assert_eq!(date(seconds, offset).as_deref(), Some(expect));
        }
        for offset in ["", "0000", "+1", "+abcd", "é000"] {
            assert_eq!(date(0, offset), None, "{offset}");
        }
    }
}
