//! From text to lines: directives, comments, continuations, here-documents.

use crate::heredoc::{self, Heredoc};
use crate::{Error, words};
use std::iter::{Enumerate, Peekable};
use std::str::Lines;

/// The names of the frontend that this crate is.
const STANDARD_FRONTENDS: &[&str] = &["docker/dockerfile", "docker/dockerfile-upstream"];
/// Instructions that may have here-documents.
const WITH_HEREDOCS: &[&str] = &["ADD", "COPY", "RUN"];

/// One instruction with all of its lines put together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Where it begins, counted from 1.
    pub(crate) number: usize,
    pub(crate) text: String,
    pub(crate) heredocs: Vec<Heredoc>,
}

/// A whole file.
#[derive(Debug)]
pub(crate) struct Text {
    /// What joins lines and takes meaning away: a backslash, or a backtick by directive.
    pub(crate) escape: char,
    pub(crate) lines: Vec<Line>,
}

/// Reads a file.
pub(crate) fn read(text: &str) -> Result<Text, Error> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let escape = directives(text)?;
    let mut reader = Reader { lines: text.lines().enumerate().peekable(), escape };
    let mut lines = vec![];
    while let Some(line) = reader.next_line()? {
        lines.push(line);
    }
    Ok(Text { escape, lines })
}

/// Reads what the first lines say about the rest, and gives the escape character.
fn directives(text: &str) -> Result<char, Error> {
    let mut escape = None;
    for (index, line) in text.lines().enumerate() {
        let Some((name, value)) = directive(line) else { break };
        let wrong = |message: String| Err(Error::new(index + 1, message));
        match name.as_str() {
            "escape" if escape.is_some() => {
                return wrong("only one escape parser directive can be used".into());
            }
            "escape" => match value {
                "\\" => escape = Some('\\'),
                "`" => escape = Some('`'),
                _ => return wrong(format!("invalid escape character `{value}`: use \\ or `")),
            },
            "syntax" if !is_standard(value) => {
                let message = format!("syntax frontend `{value}` is unsupported");
                let hint = "take the line out: the standard language needs none";
                return Err(Error::new(index + 1, message).with_hint(hint));
            }
            _ => {}
        }
    }
    Ok(escape.unwrap_or('\\'))
}

fn directive(line: &str) -> Option<(String, &str)> {
    let (name, value) = line.trim().strip_prefix('#')?.split_once('=')?;
    let name = name.trim().to_ascii_lowercase();
    let known = matches!(name.as_str(), "escape" | "syntax" | "check");
    known.then(|| (name, value.trim()))
}

fn is_standard(frontend: &str) -> bool {
    let image = frontend.split_whitespace().next().unwrap_or_default();
    let image = image.strip_prefix("docker.io/").unwrap_or(image);
    let name = image.split(['@', ':']).next().unwrap_or_default();
    STANDARD_FRONTENDS.contains(&name)
}

struct Reader<'a> {
    lines: Peekable<Enumerate<Lines<'a>>>,
    escape: char,
}

impl Reader<'_> {
    fn next_line(&mut self) -> Result<Option<Line>, Error> {
        let (number, first) = loop {
            let Some((index, line)) = self.lines.next() else { return Ok(None) };
            let line = line.trim_start();
            if !line.is_empty() && !line.starts_with('#') {
                break (index + 1, line);
            }
        };
        let (mut text, mut goes_on) = self.without_continuation(first);
        while goes_on {
            let Some((_, line)) = self.lines.next() else { break };
            let trimmed = line.trim();
            if trimmed.is_empty() || trimmed.starts_with('#') {
                continue;
            }
            let (piece, more) = self.without_continuation(line);
            text.push_str(&piece);
            goes_on = more;
        }
        let text = text.trim().to_owned();
        let heredocs = self.heredocs(number, &text)?;
        Ok(Some(Line { number, text, heredocs }))
    }

    /// The line without the escape character that joins it to the next, and whether there was one.
    fn without_continuation(&self, line: &str) -> (String, bool) {
        let trimmed = line.trim_end_matches([' ', '\t', '\r']);
        let before = trimmed.trim_end_matches(self.escape);
        // One that is escaped itself joins nothing.
        match trimmed[before.len()..].chars().count() {
            1 => (before.to_owned(), true),
            _ => (line.trim_end_matches('\r').to_owned(), false),
        }
    }

    fn heredocs(&mut self, number: usize, text: &str) -> Result<Vec<Heredoc>, Error> {
        let (mut name, mut rest) = words::first(text);
        while name.eq_ignore_ascii_case("ONBUILD") {
            (name, rest) = words::first(rest);
        }
        let name = name.to_ascii_uppercase();
        if !WITH_HEREDOCS.contains(&name.as_str()) {
            return Ok(vec![]);
        }
        let (_, rest) = words::flags(rest, self.escape);
        if words::json(rest).is_some() {
            return Ok(vec![]);
        }
        let mut found = heredoc::all_announced(rest, self.escape)?;
        for heredoc in &mut found {
            loop {
                let Some((_, line)) = self.lines.next() else {
                    let message =
                        format!("unterminated heredoc: no line `{}` ends it", heredoc.name);
                    return Err(Error::new(number, message));
                };
                if heredoc.ends_with(line) {
                    break;
                }
                heredoc.text.push_str(line);
                heredoc.text.push('\n');
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<(usize, String)> {
        let read = read(text).unwrap();
        read.lines.into_iter().map(|line| (line.number, line.text)).collect()
    }

    #[test]
    fn lines_are_joined_and_comments_left_out() {
        let text = "# c\n\n  FROM a\nRUN x \\  \n  # inside\n\n  && y \\\n&& z\r\nCMD c";
        let expected = [(3, "FROM a"), (4, "RUN x   && y && z"), (9, "CMD c")];
        assert_eq!(texts(text), expected.map(|(number, text)| (number, text.to_owned())));
        assert_eq!(texts("RUN a \\"), [(1, "RUN a".to_owned())]);
        assert_eq!(texts("RUN a \\\\\nCMD b").len(), 2);
    }

    #[test]
    fn the_escape_character_is_chosen_by_directive() {
        let text = "# escape=`\nFROM a\nRUN x `\n y\\\nRUN z";
        let lines = texts(text);
        assert_eq!(lines[1], (3, "RUN x  y\\".to_owned()));
        assert_eq!(lines.len(), 3);
        assert!(read("# escape=x\n").unwrap_err().message.contains("invalid escape"));
        assert!(read("#escape=`\n#escape=`\n").is_err());
        // After anything else it is a comment.
        assert_eq!(read("# hello\n# escape=`\nFROM a").unwrap().escape, '\\');
    }

    #[test]
    fn only_the_standard_frontend_is_known() {
        for line in
            ["docker/dockerfile:1", "docker.io/docker/dockerfile:1.4-labs", "docker/dockerfile"]
        {
            assert!(read(&format!("# syntax={line}\nFROM a")).is_ok(), "{line}");
        }
        let error = read("#syntax = example/other:2\nFROM a").unwrap_err();
        assert_eq!(error.line, 1);
        assert_eq!(error.message, "syntax frontend `example/other:2` is unsupported");
    }

    #[test]
    fn here_documents_belong_to_their_line() {
        let text = "RUN <<A cat <<-B\n one\n# kept\nA\n\ttwo\n\tB\nCMD x\n";
        let read = read(text).unwrap();
        let found = &read.lines[0].heredocs;
        assert_eq!(found[0].text, " one\n# kept\n");
        assert_eq!((found[1].text.as_str(), found[1].contents()), ("\ttwo\n", "two\n".to_owned()));
        assert_eq!(read.lines[1].number, 7);
        let error = super::read("FROM a\nCOPY <<EOF /x\nhello").unwrap_err();
        assert_eq!(error.line, 2);
        assert!(error.message.contains("unterminated heredoc"));
        // Neither a JSON list nor another instruction has any.
        assert_eq!(texts("RUN [\"cat\", \"<<EOF\"]\nENV A=<<EOF").len(), 2);
        assert_eq!(texts("ONBUILD COPY <<EOF /x\nhello\nEOF\nCMD a").len(), 2);
    }
}
