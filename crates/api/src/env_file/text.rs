//! The language of env files: lines that set variables, and what their values mean.
//!
//! A value is read as a shell would read it: text in single quotes stands for itself, in double
//! quotes and outside of quotes `$NAME`, `${NAME}` and `${NAME:-default}` are replaced and a backslash
//! takes the meaning from what follows. Nothing is ever run.

use protocol::Error;
use std::sync::Arc;

/// One line of an env file, or several where a quote spans them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Sets nothing: a comment, or empty.
    Other(Arc<str>),
    Variable(Variable),
}

/// A line that sets a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Variable {
    pub(super) name: Arc<str>,
    /// The value as it is written.
    pub(super) raw: Arc<str>,
    /// The whole line as it is written, without its end.
    text: Arc<str>,
}

/// A piece of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Text(String),
    /// Another variable, and what stands for it where it is not set or empty.
    Reference(String, Option<String>),
}

impl Line {
    /// The line as it is written.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Other(text) => text,
            Self::Variable(variable) => &variable.text,
        }
    }
}

impl Variable {
    /// A variable as it would be written.
    pub(super) fn new(name: &str, raw: &str) -> Result<Self, Error> {
        check_name(name)?;
        if raw.contains('\0') {
            return Err(Error::user(format!("the value of `{name}` contains a NUL byte")));
        }
        let plain = format!("{name}={raw}");
        let text = match &parse(&plain)[..] {
            [Ok(Line::Variable(read))] if *read.raw == *raw => plain,
            // As it is, it would read as something else.
            _ => format!("{name}=\"{}\"", raw.replace('\\', "\\\\").replace('"', "\\\"")),
        };
        Ok(Self { name: name.into(), raw: raw.into(), text: text.into() })
    }

    /// A variable whose value means exactly this text.
    pub(super) fn literal(name: &str, value: &str) -> Result<Self, Error> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@,+%".contains(c);
        if value.chars().all(plain) {
            return Self::new(name, value);
        }
        let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "\\$");
        Self::new(name, &format!("\"{}\"", escaped.replace('`', "\\`")))
    }
}

/// The lines of a text; where one cannot be read, why.
pub(super) fn parse(text: &str) -> Vec<Result<Line, Error>> {
    let mut lines = vec![];
    let (mut rest, mut number) = (text, 0);
    while !rest.is_empty() {
        number += 1;
        let first = rest.split('\n').next().unwrap_or_default();
        let length = assignment(first).map_or(first.len(), |(_, start)| value_end(rest, start).1);
        let line = &rest[..length];
        lines.push(read_line(rest, line, number));
        number += line.matches('\n').count();
        rest = rest[length..].strip_prefix('\n').unwrap_or(&rest[length..]);
    }
    lines
}

fn read_line(rest: &str, line: &str, number: usize) -> Result<Line, Error> {
    let bare = line.trim();
    if bare.is_empty() || bare.starts_with('#') {
        return Ok(Line::Other(line.into()));
    }
    let Some((name, start)) = assignment(line) else {
        let message = format!("line {number} of the env file sets no variable: `{bare}`");
        return Err(Error::user(message).with_hint("write `NAME=value`"));
    };
    check_name(name).map_err(|mut error| {
        error.message = format!("line {number} of the env file: {}", error.message);
        error
    })?;
    let (end, _) = value_end(rest, start);
    let raw = rest[start..end].trim();
    Ok(Line::Variable(Variable { name: name.into(), raw: raw.into(), text: line.into() }))
}

/// The name that a line sets, and where its value begins.
fn assignment(line: &str) -> Option<(&str, usize)> {
    let (before, _) = line.split_once('=')?;
    let name = before.trim();
    if name.starts_with('#') {
        return None;
    }
    let name = match name.split_once(char::is_whitespace) {
        Some(("export", name)) => name.trim_start(),
        _ => name,
    };
    Some((name, before.len() + 1))
}

/// Where a value that begins at `start` ends, and where its line ends. A quote that the value begins
/// with may span lines; outside of quotes a `#` after white space begins a comment.
fn value_end(text: &str, start: usize) -> (usize, usize) {
    let mut at = start;
    let mut before = ' ';
    while let Some(c) = text[at..].chars().next() {
        let next = at + c.len_utf8();
        let line_end = || at + text[at..].find('\n').unwrap_or(text.len() - at);
        match c {
            '\n' => return (at, at),
            '#' if before.is_whitespace() => return (at, line_end()),
            '"' | '\'' => {
                let first = text[start..at].trim().is_empty();
                let limit = if first { text.len() } else { line_end() };
                at = closing(&text[next..limit], c).map_or(next, |length| next + length + 1);
            }
            '\\' => at = next + text[next..].chars().next().map_or(0, char::len_utf8),
            _ => at = next,
        }
        before = c;
    }
    (text.len(), text.len())
}

/// Where a quote is closed; one that never is stands for itself.
fn closing(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quote == '"' => escaped = true,
            _ if c == quote => return Some(at),
            _ => {}
        }
    }
    None
}

fn check_name(name: &str) -> Result<(), Error> {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    let other = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    match name.chars().next().is_some_and(first) && name.chars().all(other) {
        true => Ok(()),
        false => Err(Error::user(format!("`{name}` cannot be the name of a variable"))),
    }
}

/// What a written value is made of. Without `expand` a dollar sign stands for itself.
pub(super) fn parts(raw: &str, expand: bool) -> Result<Vec<Part>, Error> {
    let mut reader = Reader { rest: raw, parts: vec![], text: String::new() };
    let mut quote = None;
    while let Some(c) = reader.next() {
        match (quote, c) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('\''), _) => reader.text.push(c),
            (None, '"' | '\'') if closing(reader.rest, c).is_some() => quote = Some(c),
            (_, '\\') => reader.escape(quote.is_some()),
            (_, '`') if expand => return Err(no_commands()),
            (_, '$') if expand => reader.reference()?,
            _ => reader.text.push(c),
        }
    }
    reader.end_text();
    Ok(reader.parts)
}

fn no_commands() -> Error {
    Error::user("commands in env files are not run").with_hint("put the value into single quotes")
}

/// Reads a value from left to right.
struct Reader<'a> {
    rest: &'a str,
    parts: Vec<Part>,
    text: String,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn end_text(&mut self) {
        if !self.text.is_empty() {
            self.parts.push(Part::Text(std::mem::take(&mut self.text)));
        }
    }

    /// What a backslash makes of the next character. In quotes it stands for itself before most.
    fn escape(&mut self, quoted: bool) {
        match self.next() {
            Some('n') if quoted => self.text.push('\n'),
            Some('r') if quoted => self.text.push('\r'),
            Some('t') if quoted => self.text.push('\t'),
            Some(c @ ('"' | '\\' | '$' | '`')) => self.text.push(c),
            Some(c) if quoted => self.text.extend(['\\', c]),
            Some(c) => self.text.push(c),
            None => self.text.push('\\'),
        }
    }

    /// What follows a dollar sign.
    fn reference(&mut self) -> Result<(), Error> {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        match self.rest.chars().next() {
            Some('(') => return Err(no_commands()),
            Some('{') => {
                let Some((inside, rest)) = self.rest[1..].split_once('}') else {
                    return Err(Error::user("a `${` in an env file is not closed"));
                };
                self.rest = rest;
                let (name, default) = match inside.split_once(":-") {
                    Some((name, default)) => (name, Some(default.to_owned())),
                    None => (inside, None),
                };
                if name.is_empty() || !name.chars().all(word) {
                    let message = format!("`${{{inside}}}` in an env file cannot be read");
                    let hint = "write `${NAME}` or `${NAME:-default}`";
                    return Err(Error::user(message).with_hint(hint));
                }
                self.end_text();
                self.parts.push(Part::Reference(name.to_owned(), default));
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let end = self.rest.find(|c: char| !word(c)).unwrap_or(self.rest.len());
                let (name, rest) = self.rest.split_at(end);
                self.rest = rest;
                self.end_text();
                self.parts.push(Part::Reference(name.to_owned(), None));
            }
            _ => self.text.push('$'),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raws(text: &str) -> Vec<(String, String)> {
        let lines = parse(text).into_iter().map(Result::unwrap);
        let pairs = lines.filter_map(|line| match line {
            Line::Variable(variable) => Some((variable.name.to_string(), variable.raw.to_string())),
            Line::Other(_) => None,
        });
        pairs.collect()
    }

    fn meaning(raw: &str) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Reference(name, default) => {
                format!("<{name}|{}>", default.as_deref().unwrap_or(""))
            }
        };
        parts(raw, true).unwrap().iter().map(part).collect()
    }

    #[test]
    fn lines_set_variables() {
        for (text, expected) in [
            ("A=1\nB=2", vec![("A", "1"), ("B", "2")]),
            ("# A=1\n\n  B = 2 \n", vec![("B", "2")]),
            ("export   A=1\nexportable=2", vec![("A", "1"), ("exportable", "2")]),
            (
                "A=a # comment\nB=a#b\nC='a # b' # c",
                vec![("A", "a"), ("B", "a#b"), ("C", "'a # b'")],
            ),
            ("A=\"one\ntwo\"\nB=2", vec![("A", "\"one\ntwo\""), ("B", "2")]),
            ("A=it's\nB=it's", vec![("A", "it's"), ("B", "it's")]),
            ("A='never closed\nB=2", vec![("A", "'never closed"), ("B", "2")]),
            ("A=\r\nB=2\r\n", vec![("A", ""), ("B", "2")]),
            ("A==b=c", vec![("A", "=b=c")]),
        ] {
            let expected: Vec<_> =
                expected.into_iter().map(|(name, raw)| (name.to_owned(), raw.to_owned())).collect();
            assert_eq!(raws(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_text_is_kept() {
        let text = "# one\n\nexport A = \"x\ny\"  # two\nB=1";
        let lines: Vec<String> =
            parse(text).into_iter().map(|line| line.unwrap().text().to_owned()).collect();
        assert_eq!(lines.join("\n"), text);
    }

    #[test]
    fn lines_that_set_nothing_are_named() {
        let error = parse("A=1\nB=\"x\ny\"\nwhat").into_iter().find_map(Result::err).unwrap();
        assert_eq!(error.message, "line 4 of the env file sets no variable: `what`");
        let error = parse("1A=1").into_iter().find_map(Result::err).unwrap();
        assert!(error.message.contains("`1A` cannot be the name"), "{error}");
    }

    #[test]
    fn values_are_read_as_a_shell_would() {
        for (raw, expected) in [
            ("a   b c", "a   b c"),
            ("'a $B'", "a $B"),
            ("\"a $B\"", "a <B|>"),
            ("a ${B}c '$D'", "a <B|>c $D"),
            ("${B:-c d}", "<B|c d>"),
            ("a\\ b", "a b"),
            ("\"a\\nb\\\"\"", "a\nb\""),
            ("\\$A", "$A"),
            ("!@#$%^&*()", "!@#$%^&*()"),
            ("[\"ga\", 42]", "[ga, 42]"),
            ("'[\"ga\", 42]'", "[\"ga\", 42]"),
            ("it's", "it's"),
            ("", ""),
        ] {
            assert_eq!(meaning(raw), expected, "{raw}");
        }
        assert_eq!(parts("$A", false).unwrap(), [Part::Text("$A".into())]);
        for raw in ["$(date)", "`date`", "${A", "${A!}", "${}"] {
            assert!(parts(raw, true).is_err(), "{raw}");
        }
    }

    #[test]
    fn what_is_written_reads_the_same() {
        for raw in ["a", "a # b", "\"x\"", "a\nb", "it's # $A", ""] {
            let variable = Variable::new("A", raw).unwrap();
            let read = raws(&variable.text);
            assert_eq!(read.len(), 1, "{raw}: {}", variable.text);
            assert_eq!(meaning(&read[0].1), meaning(raw), "{raw}: {}", variable.text);
        }
        for value in ["a", "$A", "a'b\"c", "a\nb\\n", "`x`", "# no"] {
            let variable = Variable::literal("A", value).unwrap();
            assert_eq!(meaning(&raws(&variable.text)[0].1), value, "{}", variable.text);
        }
    }
}
