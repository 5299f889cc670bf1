//! [`Expander`]: replaces variables in a word, and takes its quotes and escapes away.
//!
//! The forms are those of a shell: `$name`, `${name}`, `${name:-word}`, `${name-word}`, `${name:+word}`, `${name+word}`,
//! `${name:?word}`, `${name?word}`, `${name#pattern}`, `##`, `%`, `%%`, `${name/pattern/word}` and `//`.

use crate::Error;
use crate::glob::{Pattern, Which};

/// How deep forms may lie in forms.
const DEEPEST: u32 = 64;
/// Longest text that comes of one word.
const LONGEST: usize = 4 << 20;

/// Gives the value of a variable, if it is set.
pub type Variables<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Replaces variables.
pub struct Expander<'a> {
    escape: char,
    variables: &'a Variables<'a>,
}

impl<'a> Expander<'a> {
    /// Replaces variables by these values; `escape` takes the meaning of the next character away.
    pub fn new(escape: char, variables: &'a Variables<'a>) -> Self {
        Self { escape, variables }
    }

    /// One word: quotes go, white space stays.
    pub fn word(&self, text: &str) -> Result<String, Error> {
        Ok(self.run(text, Quotes::Processed)?.text)
    }

    /// The words that a text becomes: values of variables outside of quotes are split too.
    pub fn words(&self, text: &str) -> Result<Vec<String>, Error> {
        let mut state = self.run(text, Quotes::Processed)?;
        state.end_word();
        Ok(state.words)
    }

    /// The text of a here-document: quotes are plain characters.
    pub fn text(&self, text: &str) -> Result<String, Error> {
        Ok(self.run(text, Quotes::Plain)?.text)
    }

    fn run(&self, text: &str, quotes: Quotes) -> Result<Output, Error> {
        let characters: Vec<char> = text.chars().collect();
        let mut scan = Scan { expander: self, characters: &characters, at: 0, depth: 0 };
        let mut output = Output::default();
        scan.until(None, quotes, &mut output)?;
        Ok(output)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    Processed,
    Plain,
}

/// What comes of a text, as one text and as words.
#[derive(Default)]
struct Output {
    text: String,
    words: Vec<String>,
    word: String,
    /// Whether the word is one even if it is empty.
    quoted: bool,
}

impl Output {
    /// A character that splits words if it is white space.
    fn plain(&mut self, c: char) {
        self.text.push(c);
        if c.is_whitespace() { self.end_word() } else { self.word.push(c) }
    }

    /// A character that never splits words.
    fn kept(&mut self, c: char) {
        self.text.push(c);
        self.word.push(c);
    }

    fn end_word(&mut self) {
        if !self.word.is_empty() || std::mem::take(&mut self.quoted) {
            self.words.push(std::mem::take(&mut self.word));
        }
        self.quoted = false;
    }

    fn value(&mut self, value: &str, in_quotes: bool) -> Result<(), Error> {
        if self.text.len() + value.len() > LONGEST {
            return Err(Error::of("a word becomes too long"));
        }
        value.chars().for_each(|c| if in_quotes { self.kept(c) } else { self.plain(c) });
        Ok(())
    }
}

struct Scan<'a> {
    expander: &'a Expander<'a>,
    characters: &'a [char],
    at: usize,
    depth: u32,
}

impl Scan<'_> {
    fn peek(&self) -> Option<char> {
        self.characters.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    fn takes(&mut self, c: char) -> bool {
        let there = self.peek() == Some(c);
        self.at += usize::from(there);
        there
    }

    /// Goes on to a character, or to the end.
    fn until(
        &mut self,
        stop: Option<char>,
        quotes: Quotes,
        output: &mut Output,
    ) -> Result<(), Error> {
        while let Some(c) = self.next() {
            match c {
                c if Some(c) == stop => return Ok(()),
                '$' => {
                    let value = self.dollar(quotes)?;
                    output.value(&value, false)?;
                }
                '\'' if quotes == Quotes::Processed => self.single_quoted(output)?,
                '"' if quotes == Quotes::Processed => self.double_quoted(output)?,
                c if c == self.expander.escape => {
                    if let Some(c) = self.next() {
                        output.kept(c);
                    }
                }
                c => output.plain(c),
            }
        }
        match stop {
            None => Ok(()),
            Some(stop) => Err(Error::of(format!("syntax error: missing `{stop}`"))),
        }
    }

    fn single_quoted(&mut self, output: &mut Output) -> Result<(), Error> {
        output.quoted = true;
        loop {
            match self.next() {
                Some('\'') => return Ok(()),
                Some(c) => output.kept(c),
                None => return Err(unfinished("single")),
            }
        }
    }

    fn double_quoted(&mut self, output: &mut Output) -> Result<(), Error> {
        output.quoted = true;
        let escape = self.expander.escape;
        loop {
            match self.next() {
                Some('"') => return Ok(()),
                Some('$') => {
                    let value = self.dollar(Quotes::Processed)?;
                    output.value(&value, true)?;
                }
                Some(c) if c == escape => match self.peek() {
                    Some(next) if matches!(next, '"' | '$') || next == escape => {
                        self.at += 1;
                        output.kept(next);
                    }
                    _ => output.kept(c),
                },
                Some(c) => output.kept(c),
                None => return Err(unfinished("double")),
            }
        }
    }

    /// What follows a dollar sign.
    fn dollar(&mut self, quotes: Quotes) -> Result<String, Error> {
        if self.takes('{') {
            return self.braces(quotes);
        }
        let name = self.name();
        Ok(if name.is_empty() { "$".to_owned() } else { self.lookup(&name).unwrap_or_default() })
    }

    fn lookup(&self, name: &str) -> Option<String> {
        (self.expander.variables)(name)
    }

    /// A name, or one of the special ones of a shell.
    fn name(&mut self) -> String {
        let mut name = String::new();
        match self.peek() {
            Some(c) if c.is_ascii_digit() || matches!(c, '@' | '*' | '#') => {
                name.extend(self.next());
                return name;
            }
            Some(c) if c.is_alphabetic() || c == '_' => {}
            _ => return name,
        }
        while let Some(c) = self.peek().filter(|c| c.is_alphanumeric() || *c == '_') {
            name.push(c);
            self.at += 1;
        }
        name
    }

    fn braces(&mut self, quotes: Quotes) -> Result<String, Error> {
        let name = self.name();
        if name.is_empty() {
            return Err(Error::of("syntax error: bad substitution"));
        }
        let value = self.lookup(&name);
        match self.next() {
            Some('}') => Ok(value.unwrap_or_default()),
            Some(':') => match self.next() {
                Some(sign @ ('-' | '+' | '?')) => {
                    let set = value.filter(|value| !value.is_empty());
                    self.alternative((sign, &name), set, quotes)
                }
                other => Err(unsupported(other)),
            },
            Some(sign @ ('-' | '+' | '?')) => self.alternative((sign, &name), value, quotes),
            Some(sign @ ('#' | '%')) => {
                let which = if self.takes(sign) { Which::Longest } else { Which::Shortest };
                let pattern = Pattern::new(&self.raw_until(&['}'])?.0)?;
                let value = value.unwrap_or_default();
                Ok(match sign {
                    '#' => pattern.without_prefix(&value, which),
                    _ => pattern.without_suffix(&value, which),
                })
            }
            Some('/') => {
                let every = self.takes('/');
                let (pattern, end) = self.raw_until(&['/', '}'])?;
                let by = match end {
                    '/' => self.nested(quotes)?,
                    _ => String::new(),
                };
                Pattern::new(&pattern)?.replaced(&value.unwrap_or_default(), &by, every)
            }
            other => Err(unsupported(other)),
        }
    }

    /// `-`, `+` and `?`: another word where the value is not set, or is.
    fn alternative(
        &mut self,
        (sign, name): (char, &str),
        value: Option<String>,
        quotes: Quotes,
    ) -> Result<String, Error> {
        let word = self.nested(quotes)?;
        match (sign, value) {
            ('-', Some(value)) | ('?', Some(value)) => Ok(value),
            ('-', None) | ('+', Some(_)) => Ok(word),
            ('+', None) => Ok(String::new()),
            _ if word.is_empty() => Err(Error::of(format!("{name}: is not allowed to be unset"))),
            _ => Err(Error::of(format!("{name}: {word}"))),
        }
    }

    /// A word in braces, up to the one that closes them.
    fn nested(&mut self, quotes: Quotes) -> Result<String, Error> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Error::of("variables in variables are nested too deep"));
        }
        let mut output = Output::default();
        self.until(Some('}'), quotes, &mut output)?;
        self.depth -= 1;
        Ok(output.text)
    }

    /// A pattern, up to one of these characters: variables in it are replaced, escapes stay.
    fn raw_until(&mut self, ends: &[char]) -> Result<(String, char), Error> {
        let mut text = String::new();
        while let Some(c) = self.next() {
            match c {
                c if ends.contains(&c) => return Ok((text, c)),
                '$' => text.push_str(&self.dollar(Quotes::Processed)?),
                c if c == self.expander.escape => {
                    text.push('\\');
                    text.extend(self.next());
                }
                c => text.push(c),
            }
        }
        Err(Error::of("syntax error: missing `}`"))
    }
}

fn unfinished(which: &str) -> Error {
    Error::of(format!("unexpected end of statement while looking for matching {which}-quote"))
}

fn unsupported(found: Option<char>) -> Error {
    match found {
        None => Error::of("syntax error: missing `}`"),
        Some(c) => Error::of(format!("unsupported modifier ({c}) in substitution")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(name: &str) -> Option<String> {
        let value = match name {
            "A" => "one",
            "EMPTY" => "",
            "TWO" => "x y",
            "FILE" => "/a/b.tar.gz",
            _ => return None,
        };
        Some(value.to_owned())
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let expander = Expander::new('\\', &value);
        assert_eq!(
            expander.word(text).unwrap_or_else(|error| format!("error: {error}")),
            expected,
            "{text}"
        );
    }

    #[test]
    fn forms() {
        for (text, expected) in [
            ("$A", "one"),
            ("${A}b$A", "onebone"),
            ("$A-$NONE-", "one--"),
            ("$", "$"),
            ("a$ b", "a$ b"),
            ("$1x", "x"),
            ("${NONE:-d}${EMPTY:-d}${EMPTY-d}${A:-d}", "ddone"),
            ("${NONE-d}", "d"),
            ("${NONE:+d}${EMPTY:+d}${EMPTY+d}${A:+d}", "dd"),
            ("${NONE:-${A}}${NONE:-${NONE:-z}}", "onez"),
            ("${NONE:-'a}b'}", "a}b"),
            ("${A:?no}", "one"),
            ("${NONE:?not there}", "error: NONE: not there"),
            ("${EMPTY:?}", "error: EMPTY: is not allowed to be unset"),
            ("${EMPTY?}", ""),
            ("${FILE#*/}", "a/b.tar.gz"),
            ("${FILE##*/}", "b.tar.gz"),
            ("${FILE%.*}", "/a/b.tar"),
            ("${FILE%%.*}", "/a/b"),
            ("${FILE/a/c}", "/c/b.tar.gz"),
            ("${FILE//a/c}", "/c/b.tcr.gz"),
            ("${FILE//\\//_}", "_a_b.tar.gz"),
            ("${FILE/.tar.gz}", "/a/b"),
            ("${A/$A/two}", "two"),
        ] {
            check(text, expected);
        }
    }

    #[test]
    fn quotes_and_escapes() {
        for (text, expected) in [
            ("'$A'", "$A"),
            ("\"$A b\"", "one b"),
            ("\\$A", "$A"),
            ("\"\\$A \\\" \\n \\\\\"", "$A \" \\n \\"),
            ("a\\ b", "a b"),
            ("'a' \"b\"c", "a bc"),
            ("'open", "error: unexpected end of statement while looking for matching single-quote"),
            (
                "\"open",
                "error: unexpected end of statement while looking for matching double-quote",
            ),
            ("${A", "error: syntax error: missing `}`"),
            ("${A:", "error: syntax error: missing `}`"),
            ("${A:x}", "error: unsupported modifier (x) in substitution"),
            ("${A!}", "error: unsupported modifier (!) in substitution"),
            ("${}", "error: syntax error: bad substitution"),
        ] {
            check(text, expected);
        }
    }

    #[test]
    fn words_and_texts() {
        let expander = Expander::new('\\', &value);
        assert_eq!(expander.words("$TWO \"$TWO\" '' z").unwrap(), ["x", "y", "x y", "", "z"]);
        assert_eq!(expander.text("it's \"$A\" \\$A\n").unwrap(), "it's \"one\" $A\n");
        let windows = Expander::new('`', &value);
        assert_eq!(windows.word("C:\\$A `$A").unwrap(), "C:\\one $A");
    }

    #[test]
    fn depth_is_bounded() {
        let deep = format!("{}x{}", "${N:-".repeat(10_000), "}".repeat(10_000));
        let error = Expander::new('\\', &value).word(&deep).unwrap_err();
        assert!(error.message.contains("nested too deep"), "{error}");
    }
}
