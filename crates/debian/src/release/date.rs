//! Dates as Release files write them: `Sat, 07 Jun 2025 09:13:06 UTC`.

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Seconds since the Unix epoch, where the text is such a date.
pub(super) fn parse(text: &str) -> Option<i64> {
    let text = text.split_once(',').map_or(text, |(_, rest)| rest);
    let words: Vec<&str> = text.split_whitespace().collect();
    let [day, month, year, time, zone] = words[..] else { return None };
    let month = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month))? as i64 + 1;
    let mut clock = time.split(':').map(str::parse::<i64>);
    let (hour, minute, second) = (clock.next()?.ok()?, clock.next()?.ok()?, clock.next()?.ok()?);
    let days = days_from_civil(year.parse().ok()?, month, day.parse().ok()?);
    Some(days * 86_400 + hour * 3600 + minute * 60 + second - offset(zone)?)
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar, counting years from March so that
/// the leap day is the last of its year.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn offset(zone: &str) -> Option<i64> {
    if matches!(zone, "UTC" | "GMT" | "Z") {
        return Some(0);
    }
    let sign = match zone.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits: i64 = zone.get(1..5)?.parse().ok()?;
    Some(sign * (digits / 100 * 3600 + digits % 100 * 60))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn dates() {
        let table = [
            ("Thu, 01 Jan 1970 00:00:00 UTC", Some(0)),
            ("Sat, 07 Jun 2025 09:13:06 UTC", Some(1_749_287_586)),
            ("Thu, 29 Feb 2024 23:59:59 +0000", Some(1_709_251_199)),
            ("Sat, 1 Mar 2025 01:00:00 +0100", Some(1_740_787_200)),
            ("2025-06-07", None),
            ("Sat, 07 Foo 2025 09:13:06 UTC", None),
        ];
        for (text, expect) in table {
            assert_eq!(parse(text), expect, "{text}");
        }
    }
}
