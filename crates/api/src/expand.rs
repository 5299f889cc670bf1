//! `$VAR` and `${VAR}` in arguments that ask for it, from the container's own environment.

/// The text with variables replaced. An unknown variable is empty; `$$` and a lone `$` stay.
pub(crate) fn expand(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        match variable(after) {
            Some((name, length)) => {
                out.push_str(&lookup(name).unwrap_or_default());
                rest = &after[length..];
            }
            None => {
                out.push('$');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// The variable at the start of `text` (behind the dollar sign), and how much of it that takes.
fn variable(text: &str) -> Option<(&str, usize)> {
    if let Some(braced) = text.strip_prefix('{') {
        let end = braced.find('}')?;
        let name = &braced[..end];
        return is_name(name).then_some((name, end + 2));
    }
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    let name = &text[..end];
    is_name(name).then_some((name, end))
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_variables_and_nothing_else() {
        let lookup = |name: &str| (name == "A").then(|| "x".to_owned());
        for (text, expected) in [
            ("plain", "plain"),
            ("$A/b", "x/b"),
            ("${A}b", "xb"),
            ("$B-", "-"),
            ("${B}", ""),
            ("$", "$"),
            ("$1", "$1"),
            ("${", "${"),
            ("${a b}", "${a b}"),
            ("a$$A", "a$x"),
            ("é$Aé", "éxé"),
        ] {
            assert_eq!(expand(text, &lookup), expected, "{text}");
        }
    }
}
