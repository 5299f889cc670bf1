//! "Did you mean": names that resemble what was typed.

/// How many letters may differ.
const MAX_DISTANCE: usize = 2;
/// How many names are suggested.
const MAX_NAMES: usize = 6;

/// Names that begin with the typed one, then those within two letters of it, nearest first.
pub(crate) fn suggestions(typed: &str, names: &[String]) -> Vec<String> {
    let typed = typed.to_lowercase();
    // Among very short words everything is near to everything.
    let far = MAX_DISTANCE.min(typed.chars().count() / 2);
    let mut near: Vec<(bool, usize, &String)> = names
        .iter()
        .filter_map(|name| {
            let distance = distance(&typed, &name.to_lowercase());
            let starts = !typed.is_empty() && name.to_lowercase().starts_with(&typed);
            (starts || distance <= far).then_some((!starts, distance, name))
        })
        .collect();
    near.sort();
    near.dedup();
    near.into_iter().take(MAX_NAMES).map(|(_, _, name)| name.clone()).collect()
}

/// The suggestions as they are appended to a message; empty without any.
pub(crate) fn list(names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let names: String = names.iter().map(|name| format!("\n\t{name}")).collect();
    format!("\n\nDid you mean this?{names}")
}

/// How many letters must be added, removed or replaced to get from one word to the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (from, to, expected) in
            [("", "", 0), ("a", "", 1), ("kitten", "sitting", 3), ("form", "from", 2)]
        {
            assert_eq!(distance(from, to), expected, "{from} {to}");
        }
    }

    #[test]
    fn near_names_and_beginnings() {
        let names: Vec<String> =
            ["from", "with-exec", "with-env-variable", "stdout"].map(str::to_owned).into();
        assert_eq!(suggestions("form", &names), ["from"]);
        assert_eq!(suggestions("with-e", &names), ["with-exec", "with-env-variable"]);
        assert_eq!(suggestions("Stdotu", &names), ["stdout"]);
        assert_eq!(suggestions("id", &["io".into()]), ["io"]);
        assert_eq!(suggestions("wit", &["id".into()]), [""; 0]);
        assert_eq!(suggestions("nothing-like-it", &names), [""; 0]);
        assert_eq!(list(&["a".into(), "b".into()]), "\n\nDid you mean this?\n\ta\n\tb");
    }
}
