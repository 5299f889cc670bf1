//! Directories as values.

use serde_json::json;
use testkit::{Session, State};

/// The chain of fields on an empty directory.
fn on_directory(chain: &str) -> String {
    format!("{{ directory {{ {chain} }} }}")
}

#[test]
fn entries_are_sorted_and_directories_are_marked() {
    let state = State::new();
    let session = Session::start(&state);
    let chain = r#"withNewFile(path: "z", contents: "") { withNewFile(path: "a/b", contents: "") { withNewDirectory(path: "m") {"#;
    let names = session.leaf(&on_directory(&format!("{chain} entries }} }} }}")));
    assert_eq!(names, json!(["a/", "m/", "z"]));
    let below = session.leaf(&on_directory(&format!("{chain} entries(path: \"a\") }} }} }}")));
    assert_eq!(below, json!(["b"]));
    let said = session.error(&on_directory(r#"entries(path: "none")"#));
    assert!(said.contains("none: no such file or directory"), "{said}");
}

#[test]
fn what_is_selected_is_checked_when_used() {
    let state = State::new();
    let session = Session::start(&state);
    let start = r#"withNewFile(path: "d/f", contents: "x")"#;
    let said =
        session.error(&on_directory(&format!(r#"{start} {{ file(path: "d") {{ contents }} }}"#)));
    assert!(said.contains("is a directory, not a file"), "{said}");
    let said = session
        .error(&on_directory(&format!(r#"{start} {{ directory(path: "d/f") {{ entries }} }}"#)));
    assert!(said.contains("is a file, not a directory"), "{said}");
    let said = session
        .error(&on_directory(&format!(r#"{start} {{ file(path: "d/../this") {{ contents }} }}"#)));
    assert!(said.contains("d/../this: no such file or directory"), "as it was typed: {said}");
    assert_eq!(
        session.leaf(&on_directory(&format!(r#"{start} {{ directory(path: "d") {{ name }} }}"#))),
        "d/"
    );
    assert_eq!(session.leaf(&on_directory("name")), "/");
}

#[test]
fn values_do_not_change() {
    let state = State::new();
    let session = Session::start(&state);
    let data = session.query(
        r#"{ directory { withNewFile(path: "f", contents: "1") {
            one: withNewFile(path: "f", contents: "2") { file(path: "f") { contents } }
            two: withoutFile(path: "f") { entries }
            file(path: "f") { contents } } } }"#,
    );
    assert_eq!(
        data["directory"]["withNewFile"],
        json!({"one": {"file": {"contents": "2"}}, "two": {"entries": []}, "file": {"contents": "1"}})
    );
}

#[test]
fn directories_are_merged_with_filters() {
    let state = State::new();
    let session = Session::start(&state);
    let source = session.leaf(&on_directory(
        r#"withNewFile(path: "src/a.rs", contents: "") { withNewFile(path: "src/a.o", contents: "") {
            withNewFile(path: "docs/a.md", contents: "") { id } } }"#,
    ));
    let merge = |filter: &str, read: &str| {
        session.leaf(&on_directory(&format!(
            r#"withNewFile(path: "to/own", contents: "") {{ withDirectory(path: "to", source: {source}{filter}) {{ entries(path: "{read}") }} }}"#
        )))
    };
    assert_eq!(merge("", "to"), json!(["docs/", "own", "src/"]));
    assert_eq!(merge(r#", include: ["src"]"#, "to"), json!(["own", "src/"]));
    assert_eq!(merge(r#", exclude: ["**/*.o"]"#, "to/src"), json!(["a.rs"]));
    assert_eq!(merge(r#", include: ["src"], exclude: ["**/*.o"]"#, "to/src"), json!(["a.rs"]));
    let said = session.error(&on_directory(r#"withDirectory(path: "x") { entries }"#));
    assert!(!said.is_empty(), "one of the two names of the source is needed");
    let old = session.leaf(&on_directory(&format!(
        r#"withDirectory(path: "x", directory: {source}) {{ entries }}"#
    )));
    assert_eq!(old, json!(["x/"]));
}

#[test]
fn removing_takes_patterns_and_forgives() {
    let state = State::new();
    let session = Session::start(&state);
    let chain = |rest: &str| {
        session.leaf(&on_directory(&format!(
            r#"withNewFile(path: "a.o", contents: "") {{ withNewFile(path: "b.o", contents: "") {{
                withNewFile(path: "c/d", contents: "") {{ {rest} {{ entries }} }} }} }}"#
        )))
    };
    assert_eq!(chain(r#"withoutFile(path: "*.o")"#), json!(["c/"]));
    assert_eq!(chain(r#"withoutFiles(paths: ["a.o", "none"])"#), json!(["b.o", "c/"]));
    assert_eq!(chain(r#"withoutDirectory(path: "c")"#), json!(["a.o", "b.o"]));
    assert_eq!(chain(r#"withoutFile(path: "missing")"#), json!(["a.o", "b.o", "c/"]));
}

#[test]
fn permissions_of_what_is_made() {
    let state = State::new();
    let session = Session::start(&state);
    let directory = session.leaf(&on_directory(
        r#"withNewFile(path: "p/f", contents: "x") { withNewDirectory(path: "d", permissions: 448) { id } }"#,
    ));
    let modes = session.container(&format!(
        r#"withDirectory(path: "/m", source: {directory}) {{ withExec(args: ["stat", "-c", "%n %a", "/m/p", "/m/p/f", "/m/d"]) {{ stdout }} }}"#
    ));
    assert_eq!(modes, "/m/p 755\n/m/p/f 644\n/m/d 700\n");
}

#[test]
fn names_that_are_too_long_or_lead_out() {
    let state = State::new();
    let session = Session::start(&state);
    let long = "n".repeat(256);
    let said = session.error(&on_directory(&format!(
        r#"withNewFile(path: "{long}", contents: "") {{ entries }}"#
    )));
    assert!(
        said.contains("File name length exceeds the maximum supported 255 characters"),
        "{said}"
    );
    let said = session.error(&on_directory(r#"withNewDirectory(path: "../out") { entries }"#));
    assert!(said.contains("cannot create directory outside parent"), "{said}");
}
