//! `.dockerignore`: the patterns in it, ready for who matches them.
//!
//! The rules of matching (anchored at the root, the last match wins, `!` takes back, `**` spans directories)
//! are those of every other list of patterns in this program; only the file is read here.

use crate::Error;

/// Reads the patterns of an ignore file.
pub fn ignored(text: &str) -> Result<Vec<String>, Error> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut patterns = vec![];
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('#') {
            continue;
        }
        let line = line.trim();
        let (sign, body) = match line.strip_prefix('!') {
            Some(body) => ("!", body.trim()),
            None => ("", line),
        };
        match (sign, body) {
            ("!", "") => {
                return Err(Error::new(index + 1, "illegal exclusion pattern: \"!\""));
            }
            (_, "") => {}
            _ => patterns.push(format!("{sign}{body}")),
        }
    }
    Ok(patterns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_pattern() {
        let text = "\u{feff}# comment\n\n  a/b  \n! keep\n #not a comment\r\n/rooted\n**/*.log\n";
        let expected = ["a/b", "!keep", "#not a comment", "/rooted", "**/*.log"];
        assert_eq!(ignored(text).unwrap(), expected);
        assert_eq!(ignored("a\n!\n").unwrap_err().line, 2);
    }
}
