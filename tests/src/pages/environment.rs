//! The environment variables, read from where they are declared.

use std::fmt::Write as _;

/// The one file that declares them.
const SOURCE: &str = include_str!("../../../crates/protocol/src/env.rs");

/// The page.
pub(super) fn page() -> String {
    let mut page = String::from(
        "# Environment variables\n\nAll that the program reads, or sets for the commands that it \
         starts.\n\n| variable | meaning |\n|---|---|\n",
    );
    for (name, meaning) in declared(SOURCE) {
        writeln!(page, "| `{name}` | {meaning} |").expect("writing to a string does not fail");
    }
    page
}

/// Names and meanings: the doc comment above each constant, which is a name or a list of names.
fn declared(source: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut comment: Vec<&str> = Vec::new();
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        if let Some(text) = line.strip_prefix("/// ") {
            comment.push(text);
        } else if line.starts_with("pub const ") {
            let mut names: Vec<&str> = line.split('"').skip(1).step_by(2).collect();
            if line.ends_with('[') {
                let list = lines.by_ref().take_while(|line| !line.starts_with(']'));
                names.extend(list.filter_map(|line| line.split('"').nth(1)));
            }
            found.push((names.join("`, `"), comment.join(" ")));
            comment.clear();
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_has_a_name_and_a_meaning() {
        let found = declared(SOURCE);
        assert_eq!(found.len(), SOURCE.matches("pub const").count());
        assert!(found.iter().all(|(name, meaning)| !name.is_empty() && !meaning.is_empty()));
        assert!(found.iter().any(|(name, _)| name == protocol::env::STATE_DIR));
    }

    #[test]
    fn a_comment_of_several_lines_is_one_meaning() {
        let source =
            "/// One\n/// two.\npub const A: &str = \"X_A\";\npub const B: &str = \"X_B\";\n";
        assert_eq!(
            declared(source),
            [("X_A".into(), "One two.".into()), ("X_B".into(), String::new())]
        );
        let list = "/// Many.\npub const C: [&str; 2] = [\n    \"X\",\n    \"Y\",\n];\n";
        assert_eq!(declared(list), [("X`, `Y".into(), "Many.".into())]);
    }
}
