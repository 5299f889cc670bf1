//! Searching files and directories.

use serde_json::{Value, json};
use testkit::{Session, State};

/// A directory with these files, as a chain of fields that ends in `ask`.
fn in_tree(files: &[(&str, &str)], ask: &str) -> String {
    let made = files.iter().map(|(path, contents)| {
        let (path, contents) = (Value::from(*path), Value::from(*contents));
        format!("withNewFile(path: {path}, contents: {contents}) {{ ")
    });
    let made: String = made.collect();
    format!("{{ directory {{ {made} {ask} {} }} }}", "}".repeat(files.len()))
}

const FILES: &[(&str, &str)] = &[
    ("src/main.rs", "fn main() {\n    print(\"Hello\"); // hello, Hello\n}\n"),
    ("src/lib.rs", "pub fn hello() {}\n"),
    (".config/x", "say hello\n"),
    ("docs/a.md", "-v is *not* a.b\nbegin\nmiddle\nend\n"),
    (".rgignore", "docs\n"),
    ("data.bin", "hello\u{0}hello\n"),
];

/// What a search finds, as `path:line`.
fn found(session: &Session, arguments: &str) -> Vec<String> {
    let ask = format!("search({arguments}) {{ filePath lineNumber }}");
    let results = session.leaf(&in_tree(FILES, &ask));
    let line = |result: &Value| {
        format!("{}:{}", result["filePath"].as_str().unwrap(), result["lineNumber"])
    };
    results.as_array().unwrap().iter().map(line).collect()
}

#[test]
fn what_is_found_where() {
    let state = State::new();
    let session = Session::start(&state);
    let check = |arguments: &str, expected: &[&str]| {
        assert_eq!(found(&session, arguments), expected, "{arguments}");
    };
    check(r#"pattern: "hello""#, &[".config/x:1", "src/lib.rs:1", "src/main.rs:2"]);
    check(r#"pattern: "^Hello""#, &[]);
    check(
        r#"pattern: "HELLO", insensitive: true, skipHidden: true"#,
        &["src/lib.rs:1", "src/main.rs:2"],
    );
    check(r#"pattern: "fn \\w+\\(\\)""#, &["src/lib.rs:1", "src/main.rs:1"]);
    check(r#"pattern: "a.b""#, &["docs/a.md:1"]);
    check(r#"pattern: "e.l", literal: true"#, &[]);
    check(r#"pattern: "*not*", literal: true"#, &["docs/a.md:1"]);
    check(r#"pattern: "-v""#, &["docs/a.md:1"]);
    check(r#"pattern: "-v", skipIgnored: true"#, &[]);
    check(r#"pattern: "begin.middle""#, &[]);
    check(r#"pattern: "begin\\nmiddle", multiline: true"#, &["docs/a.md:2"]);
    check(r#"pattern: "begin.middle", multiline: true"#, &[]);
    check(r#"pattern: "begin.*end", multiline: true, dotall: true"#, &["docs/a.md:2"]);
    check(r#"pattern: "hello", globs: ["*.rs", "!main*"]"#, &["src/lib.rs:1"]);
    check(
        r#"pattern: "hello", paths: ["/src/../src/main.rs", ".config"]"#,
        &[".config/x:1", "src/main.rs:2"],
    );
    check(r#"pattern: "hello", limit: 2"#, &[".config/x:1", "src/lib.rs:1"]);
    check(
        r#"pattern: "hello", filesOnly: true"#,
        &[".config/x:0", "src/lib.rs:0", "src/main.rs:0"],
    );
    let asked = r#"search(pattern: "x") { filePath }"#;
    assert_eq!(session.leaf(&format!("{{ directory {{ {asked} }} }}")), json!([]));
}

#[test]
fn lines_offsets_and_matches() {
    let state = State::new();
    let session = Session::start(&state);
    let all = "filePath lineNumber absoluteOffset matchedLines submatches { text start end }";
    let asked = format!(r#"search(pattern: "[Hh]ello", globs: ["main.rs"]) {{ {all} }}"#);
    let matches = json!([
        {"text": "Hello", "start": 11, "end": 16},
        {"text": "hello", "start": 23, "end": 28},
        {"text": "Hello", "start": 30, "end": 35},
    ]);
    let expected = json!([{
        "filePath": "src/main.rs", "lineNumber": 2, "absoluteOffset": 12,
        "matchedLines": "    print(\"Hello\"); // hello, Hello\n", "submatches": matches,
    }]);
    assert_eq!(session.leaf(&in_tree(FILES, &asked)), expected);
    let asked = format!(r#"search(pattern: "gin\\nmid", multiline: true) {{ {all} }}"#);
    let expected = json!([{
        "filePath": "docs/a.md", "lineNumber": 2, "absoluteOffset": 16,
        "matchedLines": "begin\nmiddle\n", "submatches": [{"text": "gin\nmid", "start": 2, "end": 9}],
    }]);
    assert_eq!(session.leaf(&in_tree(FILES, &asked)), expected);
    let file = format!(
        r#"{{ file(name: "note", contents: "one\ntwo") {{ withName(name: "b") {{ search(pattern: "t(w)o|$") {{ {all} }} }} }} }}"#
    );
    let results = session.leaf(&file);
    assert_eq!(results[1]["filePath"], "b");
    assert_eq!(results[1]["matchedLines"], "two", "the last line has no end");
    assert_eq!(results[0]["submatches"], json!([{"text": "", "start": 3, "end": 3}]));
    // Elements can be loaded again, as client libraries do it.
    let ids = session.leaf(&in_tree(FILES, r#"search(pattern: "hello") { id }"#));
    let id = &ids[1]["id"];
    let loaded = session.leaf(&format!("{{ loadSearchResultFromID(id: {id}) {{ filePath }} }}"));
    assert_eq!(loaded, "src/lib.rs");
}

#[test]
fn bad_questions_are_one_clear_error() {
    let state = State::new();
    let session = Session::start(&state);
    for (arguments, expected) in [
        (r#"pattern: "(""#, "the pattern cannot be used"),
        (r#"pattern: "a\nb", literal: true"#, "the pattern holds the end of a line"),
        (r#"pattern: "a", paths: ["../../etc/passwd"]"#, "path cannot escape directory"),
        (r#"pattern: "a", paths: ["x/../../y"]"#, "path cannot escape directory"),
        (r#"pattern: "a", paths: ["none"]"#, "none: no such file or directory"),
        (r#"pattern: "a", globs: ["["]"#, "is no pattern"),
        (r#"pattern: "a", limit: 0"#, "limit must be at least 1"),
    ] {
        let said = session.error(&in_tree(FILES, &format!("search({arguments}) {{ filePath }}")));
        assert!(said.contains(expected), "{arguments}: {said}");
    }
    // Links are followed inside the directory, whatever they say.
    let files = [("symlink", "innocent"), ("sub/etc/passwd", "root:inside")];
    let ask = r#"withSymlink(target: "/etc/passwd", linkName: "sub/symlink") {
        directory(path: "sub") { search(pattern: "root", paths: ["symlink"]) { matchedLines filePath } } }"#;
    let expected = json!([{"matchedLines": "root:inside", "filePath": "etc/passwd"}]);
    assert_eq!(session.leaf(&in_tree(&files, ask)), expected);
}
