//! Rules about one source file: its name, its head, its length, words that must not be in it.

use super::{Finding, TextFile};

/// Names that say nothing: what would go there belongs to somebody.
const EMPTY_NAMES: [&str; 7] = ["util", "utils", "common", "helper", "helpers", "misc", "shared"];

/// Longest source file, without its tests.
const MAX_LINES: usize = 600;

/// Packages whose files called `sys.rs`, or folders called `sys`, may hold what the compiler cannot
/// check.
const SYSTEM_PACKAGES: [&str; 3] = ["crates/store", "crates/sandbox", "benches"];

/// All rules about one file.
pub(super) fn check(file: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(name(file));
    if !file.path.ends_with(".rs") {
        return findings;
    }
    findings.extend(head(file));
    findings.extend(length(file));
    findings.extend(unchecked_code(file));
    findings.extend(unfinished(file));
    findings
}

fn name(file: &TextFile) -> Option<Finding> {
    let empty = file.path.split('/').find(|part| {
        let stem = part.split('.').next().unwrap_or_default();
        EMPTY_NAMES.contains(&stem)
    })?;
    Some(Finding::of_file(&file.path, format!("`{empty}` is no name: say what it is for")))
}

fn head(file: &TextFile) -> Option<Finding> {
    if file.text.starts_with("//!") {
        return None;
    }
    Some(Finding::of_line(&file.path, 1, "the file does not begin with `//!`: what it is and why"))
}

fn length(file: &TextFile) -> Option<Finding> {
    let is_test = file.path.split('/').any(|part| part == "tests" || part == "tests.rs");
    let lines = file.text.lines().take_while(|line| *line != "mod tests {").count();
    if is_test || lines <= MAX_LINES {
        return None;
    }
    Some(Finding::of_file(&file.path, format!("{lines} lines: more than {MAX_LINES}")))
}

fn unchecked_code(file: &TextFile) -> Vec<Finding> {
    if is_system_file(&file.path) {
        return Vec::new();
    }
    let word = "unsafe";
    lines_with(&code_only(&file.text), &[word])
        .map(|(line, _)| Finding::of_line(&file.path, line, format!("`{word}` outside a `sys.rs`")))
        .collect()
}

fn is_system_file(path: &str) -> bool {
    SYSTEM_PACKAGES.iter().any(|package| {
        let inside = path.strip_prefix(package).and_then(|rest| rest.strip_prefix("/src/"));
        inside.is_some_and(|rest| rest.split('/').any(|part| part == "sys.rs" || part == "sys"))
    })
}

fn unfinished(file: &TextFile) -> Vec<Finding> {
    // Put together here, so that this file does not hold the words itself.
    let marks =
        [["TO", "DO"], ["FIX", "ME"], ["XX", "X"], ["HA", "CK"]].map(|parts| parts.concat());
    let marks: Vec<&str> = marks.iter().map(String::as_str).collect();
    let mut findings: Vec<Finding> = lines_with(&file.text, &marks)
        .map(|(line, mark)| Finding::of_line(&file.path, line, format!("unfinished: `{mark}`")))
        .collect();
    let code = code_only(&file.text);
    for (line, name) in lines_with(&code, &["todo", "unimplemented"]) {
        let text = code.lines().nth(line - 1).unwrap_or_default();
        if text.contains(&format!("{name}!(")) {
            findings.push(Finding::of_line(&file.path, line, format!("unfinished: `{name}!`")));
        }
    }
    findings
}

/// Lines (from one) that hold one of the words as a whole word, with the word.
fn lines_with<'a>(text: &'a str, words: &'a [&'a str]) -> impl Iterator<Item = (usize, &'a str)> {
    text.lines().enumerate().filter_map(move |(index, line)| {
        let mut parts = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        let word = parts.find_map(|part| words.iter().find(|word| **word == part))?;
        Some((index + 1, *word))
    })
}

/// The text with comments and literals blanked out, line by line the same.
pub(super) fn code_only(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = skip_length(rest);
        if skipped == 0 {
            code.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            code.extend(rest[..skipped].chars().filter(|c| *c == '\n'));
            code.push(' ');
            rest = &rest[skipped..];
        }
    }
    code
}

/// Bytes of the comment or literal that the text begins with; 0 when it begins with neither.
fn skip_length(text: &str) -> usize {
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if let Some(rest) = text.strip_prefix("/*") {
        return rest.find("*/").map_or(text.len(), |end| end + 4);
    }
    if text.starts_with("r\"") || text.starts_with("r#") {
        return raw_literal(text);
    }
    if text.starts_with('"') {
        return quoted(text, '"');
    }
    // A lifetime is no literal: a character literal is closed after one character or an escape.
    let mut characters = text.chars();
    let (quote, second, third) = (characters.next(), characters.next(), characters.next());
    if quote == Some('\'') && (second == Some('\\') || third == Some('\'')) {
        return quoted(text, '\'');
    }
    0
}

fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (index, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return index + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

fn raw_literal(text: &str) -> usize {
    let hashes = text[1..].chars().take_while(|c| *c == '#').count();
    // `r#name` is an identifier.
    if !text[1 + hashes..].starts_with('"') {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let body = 2 + hashes;
    text[body..].find(&end).map_or(text.len(), |found| body + found + end.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, text: &str) -> Vec<String> {
        let file = TextFile { path: path.to_owned(), text: text.to_owned() };
        check(&file).iter().map(ToString::to_string).collect()
    }

    fn finds(path: &str, text: &str, expected: &str) {
        let found = messages(path, text);
        assert!(found.iter().any(|message| message.contains(expected)), "{expected}: {found:?}");
    }

    #[test]
    fn a_good_file_has_no_findings() {
        let text =
            "//! Good: says todo and unsafe in words.\nfn f() -> &'static str { \"todo!()\" }\n";
        assert_eq!(messages("crates/store/src/lib.rs", text), Vec::<String>::new());
    }

    #[test]
    fn names_that_say_nothing_are_found() {
        for path in ["crates/cli/src/utils.rs", "crates/helpers/src/lib.rs", "docs/misc.md"] {
            finds(path, "//! Text.\n", "is no name");
        }
        assert!(messages("crates/cli/src/commonly.rs", "//! Text.\n").is_empty());
    }

    #[test]
    fn a_file_without_a_head_is_found() {
        finds("xtask/src/a.rs", "use std::fs;\n", "does not begin");
    }

    #[test]
    fn a_long_file_is_found_and_its_tests_do_not_count() {
        let long = format!("//! Long.\n{}", "fn f() {}\n".repeat(600));
        finds("xtask/src/a.rs", &long, "601 lines");
        let tested = format!("//! Short.\nmod tests {{\n{}}}\n", "fn f() {}\n".repeat(600));
        assert!(messages("xtask/src/a.rs", &tested).is_empty());
        assert!(messages("crates/api/src/tests/exec.rs", &long).is_empty());
    }

    #[test]
    fn unchecked_code_is_found_outside_system_files() {
        let text = format!("//! Text.\nfn f() {{ {} {{ g() }} }}\n", "unsafe");
        finds("crates/store/src/lib.rs", &text, "lib.rs:2: `unsafe`");
        finds("crates/api/src/sys.rs", &text, "outside");
        assert!(messages("crates/store/src/sys.rs", &text).is_empty());
        assert!(messages("crates/sandbox/src/sys/process.rs", &text).is_empty());
        assert!(messages("benches/src/floor/sys.rs", &text).is_empty());
    }

    #[test]
    fn unfinished_marks_are_found() {
        let comment = ["//! Text.\n// TO", "DO later\n"].concat();
        finds("xtask/src/a.rs", &comment, "a.rs:2: unfinished");
        let macro_call = ["//! Text.\nfn f() { to", "do!() }\n"].concat();
        finds("xtask/src/a.rs", &macro_call, "unfinished: `todo!`");
    }

    #[test]
    fn literals_and_comments_are_blanked_line_by_line() {
        for (text, expected) in [
            ("a // b\nc", "a  \nc"),
            ("a /* b\nc */ d", "a \n  d"),
            ("f(\"x \\\" y\")z", "f( )z"),
            ("r#\"a \" b\"# c", "  c"),
            ("r#type", "r#type"),
            ("'a' 'b: &'static str", "  'b: &'static str"),
            ("'\\'' x", "  x"),
        ] {
            assert_eq!(code_only(text), expected, "{text}");
        }
    }
}
