//! Names: camelCase in the API, kebab-case on the command line, any casing when typed.

/// The name as it is shown and typed on the command line.
pub(crate) fn kebab(name: &str) -> String {
    let characters: Vec<char> = name.chars().collect();
    let mut out = String::with_capacity(name.len() + 4);
    for (index, character) in characters.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| characters[before]);
        let after = characters.get(index + 1);
        let starts_word = character.is_uppercase()
            && before.is_some_and(|before| {
                !before.is_uppercase() || after.is_some_and(|after| after.is_lowercase())
            });
        if starts_word && !out.ends_with('-') {
            out.push('-');
        }
        out.push(if *character == '_' { '-' } else { character.to_ascii_lowercase() });
    }
    out
}

/// Whether a typed word means this name.
pub(crate) fn matches(typed: &str, name: &str) -> bool {
    let plain = |text: &str| -> Vec<u8> {
        let bytes = text.bytes().filter(|byte| !matches!(byte, b'-' | b'_'));
        bytes.map(|byte| byte.to_ascii_lowercase()).collect()
    };
    typed == name || (!typed.is_empty() && plain(typed) == plain(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_in_kebab_case() {
        for (name, expected) in [
            ("withExec", "with-exec"),
            ("stdout", "stdout"),
            ("loadContainerFromID", "load-container-from-id"),
            ("asHTTPState", "as-http-state"),
            ("traceURL", "trace-url"),
            ("experimentalWithAllGPUs", "experimental-with-all-gp-us"),
            ("snake_case", "snake-case"),
        ] {
            assert_eq!(kebab(name), expected);
        }
    }

    #[test]
    fn typed_in_any_casing() {
        for typed in ["withExec", "with-exec", "WITH_EXEC", "WithExec", "withexec"] {
            assert!(matches(typed, "withExec"), "{typed}");
        }
        assert!(!matches("with-exe", "withExec"));
        assert!(!matches("", "x"));
    }
}
