//! The question whether changes are to be applied, on the terminal that the command runs on.

use crate::error::Error;
use std::io::{BufRead, Write};

const QUESTION: &str = "Apply changes? [y/N] ";

/// Shows a text and asks until there is an answer.
pub(super) async fn ask(text: &str) -> Result<bool, Error> {
    let text = text.to_owned();
    let asked = tokio::task::spawn_blocking(move || {
        converse(&text, &mut std::io::stdin().lock(), &mut std::io::stderr())
    });
    asked.await.map_err(std::io::Error::other)?.map_err(Error::from)
}

fn converse(text: &str, from: &mut dyn BufRead, to: &mut dyn Write) -> std::io::Result<bool> {
    writeln!(to, "{text}")?;
    loop {
        write!(to, "{QUESTION}")?;
        to.flush()?;
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            writeln!(to)?;
            return Ok(false);
        }
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" | "apply" => return Ok(true),
            "" | "n" | "no" | "discard" => return Ok(false),
            _ => writeln!(to, "Answer `y` to apply them, or `n` to discard them.")?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(typed: &str) -> (bool, String) {
        let mut shown = vec![];
        let answer = converse("what", &mut typed.as_bytes(), &mut shown).unwrap();
        (answer, String::from_utf8(shown).unwrap())
    }

    #[test]
    fn only_a_yes_is_a_yes() {
        for (typed, expected) in
            [("y\n", true), ("YES\n", true), ("\n", false), ("n\n", false), ("", false)]
        {
            assert_eq!(answer(typed).0, expected, "{typed:?}");
        }
        let (applied, shown) = answer("what?\ny\n");
        assert!(applied && shown.matches(QUESTION).count() == 2, "{shown}");
    }
}
