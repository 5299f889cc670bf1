//! [`Heredoc`]: text that stands below an instruction, up to a line of its own choice.

use crate::Error;
use crate::words;

/// A here-document of `RUN`, `COPY` or `ADD`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heredoc {
    /// What ends it, and what a file made from it is called.
    pub name: String,
    /// Whether variables in it are replaced: nothing of its name was quoted.
    pub expand: bool,
    /// Whether tabs at the beginning of its lines mean nothing.
    pub strip_tabs: bool,
    /// The text as written, with the end of its last line.
    pub text: String,
}

impl Heredoc {
    /// The text, without the tabs that mean nothing.
    pub fn contents(&self) -> String {
        if !self.strip_tabs {
            return self.text.clone();
        }
        self.text.split_inclusive('\n').map(|line| line.trim_start_matches('\t')).collect()
    }

    /// Whether a line ends it.
    pub(crate) fn ends_with(&self, line: &str) -> bool {
        let line = if self.strip_tabs { line.trim_start_matches('\t') } else { line };
        line == self.name
    }
}

/// The here-document that a word announces: `<<EOF`, `<<-EOF`, `<<"EOF"`, also with a number before.
pub(crate) fn announced(word: &str, escape: char) -> Option<Heredoc> {
    let rest = word.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix("<<")?;
    let (strip_tabs, rest) = match rest.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    if rest.is_empty() || rest.contains('<') {
        return None;
    }
    let name = words::unquoted(rest, escape);
    let expand = name == rest;
    (!name.is_empty()).then(|| Heredoc { name, expand, strip_tabs, text: String::new() })
}

/// All here-documents that a line announces, in order.
pub(crate) fn all_announced(line: &str, escape: char) -> Result<Vec<Heredoc>, Error> {
    if !line.contains("<<") {
        return Ok(vec![]);
    }
    let words = words::split(line, escape)?;
    Ok(words.iter().filter_map(|word| announced(word, escape)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_announce() {
        let flags = |word: &str| {
            announced(word, '\\').map(|found| (found.name, found.expand, found.strip_tabs))
        };
        assert_eq!(flags("<<EOF"), Some(("EOF".into(), true, false)));
        assert_eq!(flags("<<-EOF"), Some(("EOF".into(), true, true)));
        assert_eq!(flags("<<\"E O\""), Some(("E O".into(), false, false)));
        assert_eq!(flags("3<<'EOF'"), Some(("EOF".into(), false, false)));
        for word in ["<<", "<<<word", "<EOF", "a<<EOF", "\"<<EOF\""] {
            assert_eq!(flags(word), None, "{word}");
        }
    }
}
