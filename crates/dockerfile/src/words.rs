//! Words of a line, with quotes and escapes as they stand: those go when variables are replaced.

use crate::Error;

/// Splits at white space outside of quotes. Quotes and escapes stay in the words.
pub(crate) fn split(text: &str, escape: char) -> Result<Vec<String>, Error> {
    let (mut words, mut word, mut quote) = (vec![], String::new(), None);
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match quote {
            None if c.is_whitespace() => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                continue;
            }
            None if matches!(c, '"' | '\'') => quote = Some(c),
            Some(open) if c == open => quote = None,
            _ => {}
        }
        word.push(c);
        if c == escape && quote != Some('\'') {
            word.extend(characters.next());
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    Ok(words)
}

/// A word without its quotes and escapes. Variables in it are plain text.
pub(crate) fn unquoted(word: &str, escape: char) -> String {
    let (mut plain, mut quote) = (String::new(), None);
    let mut characters = word.chars();
    while let Some(c) = characters.next() {
        match quote {
            None if matches!(c, '"' | '\'') => quote = Some(c),
            Some(open) if c == open => quote = None,
            Some('\'') => plain.push(c),
            _ if c == escape => plain.extend(characters.next()),
            _ => plain.push(c),
        }
    }
    plain
}

/// The first word of a line, and what follows it.
pub(crate) fn first(line: &str) -> (&str, &str) {
    let line = line.trim();
    match line.find(char::is_whitespace) {
        Some(end) => (&line[..end], line[end..].trim_start()),
        None => (line, ""),
    }
}

/// Takes the flags (`--name`, `--name=value`) off the beginning of what follows an instruction.
pub(crate) fn flags(mut rest: &str, escape: char) -> (Vec<(String, Option<String>)>, &str) {
    let mut flags = vec![];
    loop {
        rest = rest.trim_start();
        if !rest.starts_with("--") {
            return (flags, rest);
        }
        let end = end_of_word(rest, escape);
        let word = unquoted(&rest[2..end], escape);
        rest = &rest[end..];
        if word.is_empty() {
            return (flags, rest.trim_start());
        }
        flags.push(match word.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (word, None),
        });
    }
}

fn end_of_word(text: &str, escape: char) -> usize {
    let (mut quote, mut escaped) = (None, false);
    for (at, c) in text.char_indices() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match quote {
            None if c.is_whitespace() => return at,
            None if matches!(c, '"' | '\'') => quote = Some(c),
            Some(open) if c == open => quote = None,
            _ => {}
        }
        escaped = c == escape && quote != Some('\'');
    }
    text.len()
}

/// `name=value` pairs, or in the old form one name and the rest of the line. Values keep their quotes.
pub(crate) fn pairs(rest: &str, escape: char) -> Result<Vec<(String, String)>, Error> {
    let words = split(rest, escape)?;
    let Some(one) = words.first() else { return Ok(vec![]) };
    if !one.contains('=') {
        let (name, value) = first(rest);
        if value.is_empty() {
            return Err(Error::of(format!("`{name}` needs a value")));
        }
        return Ok(vec![(name.to_owned(), value.to_owned())]);
    }
    let pair = |word: &String| match word.split_once('=') {
        Some(("", _)) => Err(Error::of("a name is empty")),
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => {
            let message = format!("can't find = in \"{word}\": write name=value");
            Err(Error::of(message))
        }
    };
    words.iter().map(pair).collect()
}

/// A JSON list of texts, if that is what it is.
pub(crate) fn json(rest: &str) -> Option<Vec<String>> {
    let rest = rest.trim();
    if !rest.starts_with('[') {
        return None;
    }
    serde_json::from_str(rest).ok()
}

/// A JSON list, or else words between white space.
pub(crate) fn list(rest: &str) -> Vec<String> {
    json(rest).unwrap_or_else(|| rest.split_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_words_together_and_stay() {
        assert_eq!(
            split(r#"a "b c" 'd "e' f\ g"#, '\\').unwrap(),
            ["a", "\"b c\"", "'d \"e'", "f\\ g"]
        );
        assert_eq!(split("", '\\').unwrap(), Vec::<String>::new());
        assert_eq!(unquoted(r#"a"b c"'\d'\""#, '\\'), "ab c\\d\"");
    }

    #[test]
    fn flags_come_off_the_front() {
        let (found, rest) = flags("--from=a --link  --chown=\"x y\" b --c", '\\');
        let named = |name: &str, value: Option<&str>| (name.to_owned(), value.map(str::to_owned));
        assert_eq!(
            found,
            [named("from", Some("a")), named("link", None), named("chown", Some("x y"))]
        );
        assert_eq!(rest, "b --c");
        assert_eq!(flags("-- --x", '\\').1, "--x");
    }

    #[test]
    fn pairs_in_both_forms() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(pairs("A=1 B=\"2 3\"", '\\').unwrap(), [pair("A", "1"), pair("B", "\"2 3\"")]);
        assert_eq!(pairs("A one two", '\\').unwrap(), [pair("A", "one two")]);
        assert!(pairs("A=1 B", '\\').unwrap_err().message.contains("can't find ="));
        assert!(pairs("A", '\\').is_err());
    }
}
