//! Splits a line into words by the rules of a shell: blanks divide, quotes and backslashes keep together.
//! Nothing is expanded.

/// The words of a line; what is wrong with it, if it is no line of words.
pub(crate) fn split(line: &str) -> Result<Vec<String>, &'static str> {
    let mut words = vec![];
    let mut word: Option<String> = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' => quoted(&mut characters, word.get_or_insert_default())?,
            '"' => double_quoted(&mut characters, word.get_or_insert_default())?,
            '\\' => {
                let next = characters.next().ok_or("it ends with a backslash")?;
                word.get_or_insert_default().push(next);
            }
            character => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    Ok(words)
}

fn quoted(characters: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), &'static str> {
    for character in characters {
        if character == '\'' {
            return Ok(());
        }
        word.push(character);
    }
    Err("a single quote is not closed")
}

fn double_quoted(
    characters: &mut std::str::Chars<'_>,
    word: &mut String,
) -> Result<(), &'static str> {
    while let Some(character) = characters.next() {
        match character {
            '"' => return Ok(()),
            '\\' => match characters.next().ok_or("a double quote is not closed")? {
                next @ ('"' | '\\' | '$' | '`') => word.push(next),
                next => word.extend(['\\', next]),
            },
            character => word.push(character),
        }
    }
    Err("a double quote is not closed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_a_shell() {
        for (line, expected) in [
            ("/bin/sh", &["/bin/sh"][..]),
            ("  bash  -l\t-c 'a b' ", &["bash", "-l", "-c", "a b"]),
            (r#"a"b c"d \"e\" "\"\$\x" '' "#, &["ab cd", "\"e\"", "\"$\\x", ""]),
            (r"a\ b 'c\'", &["a b", "c\\"]),
            ("", &[]),
        ] {
            assert_eq!(split(line).unwrap(), expected, "{line}");
        }
        for line in ["'a", "\"a", "a\\", "\"a\\"] {
            split(line).unwrap_err();
        }
    }
}
