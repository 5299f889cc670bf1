//! Text for people: durations, sizes, and foreign text made safe to print.

use protocol::{Outcome, Unit};
use telemetry::{Pace, Span};
use unicode_width::UnicodeWidthChar;

/// Items are counted by the second from this many on; fewer are told one by one.
const FAST: u64 = 10;
/// Work of fewer microseconds has no rate worth reading.
const SHORT: u64 = 100_000;
/// Longest string literal in the name of a step.
const MAX_LITERAL_CHARS: usize = 256;

/// Microseconds as `1.2s`, `2m5s`, `1h2m3s` or `1d2h3m4s`.
pub fn duration(micros: u64) -> String {
    let seconds = micros / 1_000_000;
    if seconds < 60 {
        let tenths = (micros / 100_000) % 10;
        return format!("{seconds}.{tenths}s");
    }
    let (days, hours) = (seconds / 86_400, seconds / 3_600 % 24);
    let (minutes, seconds) = (seconds / 60 % 60, seconds % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes}m{seconds}s"),
        (0, _) => format!("{hours}h{minutes}m{seconds}s"),
        _ => format!("{days}d{hours}h{minutes}m{seconds}s"),
    }
}

/// A number of bytes as `999 B`, `1.2 kB`, `34.5 MB`.
pub fn bytes(count: u64) -> String {
    let mut value = count as f64;
    for unit in ["B", "kB", "MB", "GB", "TB"] {
        if value < 999.95 || unit == "TB" {
            return match unit {
                "B" => format!("{count} B"),
                _ => format!("{value:.1} {unit}"),
            };
        }
        value /= 1000.0;
    }
    format!("{count} B")
}

/// Output of a program on one line of ours: nothing in it moves the cursor, rings or retitles.
/// Colours stay if `colour`, and end with the line.
pub fn clean(text: &str, colour: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut coloured = false;
    let mut rest = text;
    while let Some(position) = rest.find(misleads) {
        out.push_str(&rest[..position]);
        rest = &rest[position..];
        if rest.starts_with('\x1b') {
            let length = escape_length(rest);
            if colour && rest[..length].starts_with("\x1b[") && rest[..length].ends_with('m') {
                out.push_str(&rest[..length]);
                coloured = true;
            }
            rest = &rest[length..];
            continue;
        }
        if rest.starts_with(['\t', '\n']) {
            out.push_str(if rest.starts_with('\t') { "    " } else { " " });
        }
        let control = rest.chars().next().map_or(0, char::len_utf8);
        rest = &rest[control..];
    }
    out.push_str(rest);
    if coloured {
        out.push_str("\x1b[0m");
    }
    out
}

/// Whether a character does something to a terminal instead of standing on it: moves the cursor, or
/// turns the direction of what follows.
fn misleads(character: char) -> bool {
    character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Length in bytes of the escape sequence at the start of `text`.
fn escape_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    match bytes.get(1) {
        Some(b'[') => {
            let end = bytes[2..].iter().position(|byte| (0x40..=0x7e).contains(byte));
            end.map_or(text.len(), |end| end + 3)
        }
        // Titles and the like: up to a bell or a string terminator.
        Some(b']' | b'P' | b'^' | b'_') => match text[2..].find(['\x07', '\x1b']) {
            Some(end) if text[2 + end..].starts_with("\x1b\\") => end + 4,
            Some(end) => end + 3,
            None => text.len(),
        },
        Some(byte) if byte.is_ascii() => 2,
        _ => 1,
    }
}

/// How many columns clean text takes. Each character counts for itself: a terminal that joins some
/// of them takes fewer columns, never more.
pub fn width(text: &str) -> usize {
    let mut last = 0;
    text.chars().map(|character| columns_of(character, &mut last)).sum()
}

/// How many columns a character adds; `last` is how many the one before it took.
fn columns_of(character: char, last: &mut usize) -> usize {
    // Asks for the picture form of the character before, which may be wide.
    if character == '\u{fe0f}' && *last == 1 {
        *last = 2;
        return 1;
    }
    let columns = character.width().unwrap_or(0);
    if columns > 0 {
        *last = columns;
    }
    columns
}

/// Clean text cut to a number of columns, with `…` at the end if something is missing.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let (mut used, mut last) = (0, 0);
    let mut out = String::new();
    for character in text.chars() {
        used += columns_of(character, &mut last);
        if used + 1 > columns {
            break;
        }
        out.push(character);
    }
    if columns > 0 {
        out.push('…');
    }
    out
}

/// Clean text with colours cut to a number of columns, and how many it takes.
pub(crate) fn cut_coloured(text: &str, columns: usize) -> (String, usize) {
    let mut lines = wrap(text, columns);
    if lines.len() <= 1 {
        return lines.pop().unwrap_or_default();
    }
    let Some(room) = columns.checked_sub(1) else { return Default::default() };
    let (mut line, used) = wrap(text, room).swap_remove(0);
    line.push('…');
    (line, used + 1)
}

/// Clean text with colours in lines of at most so many columns, each with the columns it takes. The
/// colours of a line end with it and are there again in the next. What is wider than a line is left out.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<(String, usize)> {
    let mut lines = vec![];
    let (mut line, mut style) = (String::new(), String::new());
    let (mut used, mut last) = (0, 0);
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        if character == '\x1b' {
            let (sequence, after) = rest.split_at(escape_length(rest));
            line.push_str(sequence);
            match sequence {
                "\x1b[0m" | "\x1b[m" => style.clear(),
                _ => style.push_str(sequence),
            }
            rest = after;
            continue;
        }
        let wide = columns_of(character, &mut last);
        rest = &rest[character.len_utf8()..];
        if wide > columns {
            continue;
        }
        if used + wide > columns {
            end_line(&mut line, &style);
            lines.push((std::mem::replace(&mut line, style.clone()), used));
            used = 0;
        }
        line.push(character);
        used += wide;
    }
    end_line(&mut line, &style);
    lines.push((line, used));
    lines
}

fn end_line(line: &mut String, style: &str) {
    if !style.is_empty() {
        line.push_str("\x1b[0m");
    }
}

/// The name of a step on one line, with long string literals cut.
pub(crate) fn step_name(name: &str) -> String {
    let name = clean(name, false);
    if name.len() <= MAX_LITERAL_CHARS {
        return name;
    }
    let mut out = String::with_capacity(name.len());
    let mut literal = None;
    let mut escaped = false;
    for character in name.chars() {
        let ends = character == '"' && !escaped;
        escaped = character == '\\' && !escaped;
        match &mut literal {
            None => literal = ends.then_some(0),
            Some(length) if ends => {
                if *length > MAX_LITERAL_CHARS {
                    out.push('…');
                }
                literal = None;
            }
            Some(length) => {
                *length += 1;
                if *length > MAX_LITERAL_CHARS {
                    continue;
                }
            }
        }
        out.push(character);
    }
    out
}

/// The name of a step without its arguments.
pub(crate) fn short_name(name: &str) -> String {
    let end = name.find('(').unwrap_or(name.len());
    clean(&name[..end], false)
}

/// `12.3 MB / 45.0 MB, 4.1 MB/s, 8s left`, `3 / 17`.
pub(crate) fn progress(pace: &Pace) -> String {
    progress_parts(pace).join(", ")
}

/// The parts of a progress, what matters most first.
pub(crate) fn progress_parts(pace: &Pace) -> Vec<String> {
    let done = amount(pace.unit, pace.done);
    let mut parts = vec![match pace.total {
        Some(total) => format!("{done} / {}", amount(pace.unit, total)),
        None => done,
    }];
    if let Some(rate) = pace.rate.filter(|rate| pace.unit == Unit::Bytes || *rate >= FAST) {
        parts.push(format!("{}/s", amount(pace.unit, rate)));
        let seconds = pace.left().map(|micros| micros / 1_000_000).filter(|seconds| *seconds > 0);
        parts.extend(seconds.map(|seconds| format!("{} left", rough(seconds))));
    }
    parts
}

/// What a step that ended well has moved, `45.0 MB` and `11.2 MB/s`. Nothing where no bytes were
/// counted.
pub(crate) fn moved_parts(span: &Span) -> Vec<String> {
    let Some((at, Outcome::Done)) = &span.ended else { return vec![] };
    let pace = span.progress.map(|progress| progress.at(*at));
    let Some(pace) = pace.filter(|pace| pace.unit == Unit::Bytes && pace.done > 0) else {
        return vec![];
    };
    let mut parts = vec![bytes(pace.done)];
    let micros = span.elapsed(*at);
    if micros >= SHORT {
        let rate = u128::from(pace.done) * 1_000_000 / u128::from(micros);
        parts.push(format!("{}/s", bytes(u64::try_from(rate).unwrap_or(u64::MAX))));
    }
    parts
}

fn amount(unit: Unit, count: u64) -> String {
    match unit {
        Unit::Bytes => bytes(count),
        Unit::Items => count.to_string(),
    }
}

/// `8s`, `2m5s`, `3h10m`.
fn rough(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds}s"),
        (hours, minutes, _) => format!("{hours}h{minutes}m"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_durations() {
        let check = |seconds: f64, expected| {
            assert_eq!(duration((seconds * 1e6) as u64), expected);
        };
        check(0.0, "0.0s");
        check(1.25, "1.2s");
        check(59.99, "59.9s");
        check(125.0, "2m5s");
        check(3723.0, "1h2m3s");
        check(93_784.0, "1d2h3m4s");
    }

    #[test]
    fn writes_sizes() {
        let sizes: Vec<_> = [0, 999, 1000, 34_500_000, 999_999].map(bytes).into();
        assert_eq!(sizes, ["0 B", "999 B", "1.0 kB", "34.5 MB", "1.0 MB"]);
    }

    #[test]
    fn writes_progress() {
        let check = |done, total, unit, rate, expected| {
            assert_eq!(progress(&Pace { done, total, unit, rate }), expected);
        };
        check(12_300_000, None, Unit::Bytes, None, "12.3 MB");
        check(12_300_000, Some(45_000_000), Unit::Bytes, None, "12.3 MB / 45.0 MB");
        check(10, Some(90), Unit::Bytes, Some(10), "10 B / 90 B, 10 B/s, 8s left");
        check(0, Some(7_500), Unit::Bytes, Some(60), "0 B / 7.5 kB, 60 B/s, 2m5s left");
        check(0, Some(11_400), Unit::Bytes, Some(1), "0 B / 11.4 kB, 1 B/s, 3h10m left");
        check(90, Some(90), Unit::Bytes, Some(10), "90 B / 90 B, 10 B/s");
        check(5, Some(9), Unit::Bytes, Some(0), "5 B / 9 B, 0 B/s");
        check(3, Some(17), Unit::Items, Some(2), "3 / 17");
        check(3_000, Some(90_000), Unit::Items, Some(1_500), "3000 / 90000, 1500/s, 58s left");
    }

    #[test]
    fn foreign_text_cannot_move_the_cursor() {
        let check = |text, expected| assert_eq!(clean(text, false), expected);
        check("plain ✔", "plain ✔");
        check("\x1b[31mred\x1b[0m", "red");
        check("a\x1b[2Jb\x1b[10;10Hc", "abc");
        check("\x1b]0;title\x07x\x1b]8;;http://h\x1b\\y", "xy");
        check("a\tb\x07\x08c", "a    bc");
        check("cut \x1b[3", "cut ");
        check("end \x1b", "end ");
        check("two\nlines", "two lines");
    }

    #[test]
    fn colours_stay_where_wanted_and_end_with_the_line() {
        assert_eq!(clean("\x1b[31mred\x1b[K", true), "\x1b[31mred\x1b[0m");
    }

    #[test]
    fn cuts_by_columns_not_bytes() {
        assert_eq!(cut("hello", 5), "hello");
        assert_eq!(cut("hello", 4), "hel…");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("x", 0), "");
    }

    #[test]
    fn every_character_counts_for_itself() {
        for (text, columns) in
            [("a", 1), ("日本", 4), ("e\u{301}", 1), ("👩\u{200d}🔧", 4), ("⚠\u{fe0f}", 2)]
        {
            assert_eq!(width(text), columns, "{text}");
        }
    }

    #[test]
    fn coloured_text_is_wrapped_and_cut_with_its_colours() {
        let wrapped = wrap("ab\x1b[31mcdef\x1b[0mg", 3);
        let expected = [("ab\x1b[31mc\x1b[0m", 3), ("\x1b[31mdef\x1b[0m", 3), ("g", 1)];
        assert_eq!(wrapped, expected.map(|(line, columns)| (line.to_owned(), columns)));
        assert_eq!(cut_coloured("\x1b[31mabcd", 3), ("\x1b[31mab\x1b[0m…".to_owned(), 3));
        assert_eq!(cut_coloured("abc", 3), ("abc".to_owned(), 3));
        assert_eq!(cut_coloured("日本", 3), ("日…".to_owned(), 3));
        assert_eq!(cut_coloured("ab", 0), (String::new(), 0));
    }

    #[test]
    fn foreign_text_cannot_turn_around() {
        assert_eq!(clean("a\u{202e}b\u{2066}c", false), "abc");
    }

    #[test]
    fn long_literals_are_cut_inside_their_quotes() {
        let name = format!("file(contents: \"{}\\\"\", mode: 1)", "x".repeat(400));
        let expected = format!("file(contents: \"{}…\", mode: 1)", "x".repeat(256));
        assert_eq!(step_name(&name), expected);
        assert_eq!(short_name(&name), "file");
    }
}
