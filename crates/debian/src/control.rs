//! Paragraphs of `Field: value` lines: the form of every control file of Debian.
//!
//! This reader keeps all fields and is for small texts; the package index, a thousand times
//! larger, has a scanner of its own in [`crate::index`].

/// One paragraph: its fields in the order they were written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paragraph {
    fields: Vec<(String, String)>,
}

impl Paragraph {
    /// The value of a field, whatever the case of its name. Lines of a folded value are joined by
    /// `\n` and lose their indentation; a line that is a single dot is an empty line.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(field, _)| field.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The words of a field, none where it is absent.
    pub fn words(&self, name: &str) -> Vec<String> {
        self.get(name).unwrap_or_default().split_whitespace().map(str::to_owned).collect()
    }

    /// Whether the field is there and says yes.
    pub fn is_yes(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| says_yes(value.trim()))
    }
}

/// How apt reads a truth value.
pub(crate) fn says_yes(value: &str) -> bool {
    ["yes", "true", "with", "on", "enable", "1"].iter().any(|yes| yes.eq_ignore_ascii_case(value))
}

/// The paragraphs of `text`. Lines that begin with `#` are comments, even inside a folded value.
pub fn paragraphs(text: &str) -> Vec<Paragraph> {
    let mut all = vec![];
    let mut current = Paragraph::default();
    for line in text.lines() {
        if line.starts_with('#') {
            continue;
        }
        if line.trim().is_empty() {
            if !current.fields.is_empty() {
                all.push(std::mem::take(&mut current));
            }
            continue;
        }
        add_line(&mut current, line);
    }
    if !current.fields.is_empty() {
        all.push(current);
    }
    all
}

fn add_line(paragraph: &mut Paragraph, line: &str) {
    if line.starts_with([' ', '\t']) {
        let Some((_, value)) = paragraph.fields.last_mut() else { return };
        let line = line.trim();
        value.push('\n');
        value.push_str(if line == "." { "" } else { line });
        return;
    }
    if let Some((name, value)) = line.split_once(':') {
        paragraph.fields.push((name.to_owned(), value.trim().to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_folds_comments_and_blank_lines() {
        let text = "\n# top\nA: 1\nb:2\n x\n# inside\n .\n y\n\n\nC:\n";
        let all = paragraphs(text);
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].get("a"), Some("1"));
        assert_eq!(all[0].get("B"), Some("2\nx\n\ny"));
        assert_eq!(all[1].get("C"), Some(""));
        assert_eq!(all[1].get("D"), None);
    }

    #[test]
    fn truth_values() {
        for (value, expect) in [("yes", true), ("True", true), ("1", true), ("no", false)] {
            assert_eq!(says_yes(value), expect, "{value}");
        }
    }
}
