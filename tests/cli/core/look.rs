//! Looking at single entries of directories, files and containers.

use serde_json::{Value, json};
use testkit::{Session, State};

/// Files, directories and links of all sorts, as a chain of fields that ends in `ask`.
fn in_tree(ask: &str) -> String {
    format!(
        r#"{{ directory {{ withNewFile(path: "a/b/c.txt", contents: "12345", permissions: 416) {{
            withNewFile(path: "a/.hidden", contents: "") {{ withNewFile(path: "top.md", contents: "") {{
            withSymlink(target: "c.txt", linkName: "a/b/link") {{
            withSymlink(target: "/none", linkName: "dangling") {{
            withSymlink(target: "/a/b", linkName: "deep/to-b") {{
            withSymlink(target: "loop", linkName: "loop") {{ {ask} }} }} }} }} }} }} }} }} }}"#
    )
}

#[test]
fn whether_something_is_there() {
    let state = State::new();
    let session = Session::start(&state);
    let long = "n".repeat(300);
    let cases = [
        (r#"path: "a/b/c.txt""#, true),
        (r#"path: "/a/b/../b/c.txt""#, true),
        (r#"path: "deep/to-b/c.txt""#, true),
        (r#"path: ".""#, true),
        (r#"path: """#, false),
        (r#"path: "none""#, false),
        (r#"path: "top.md/below""#, false),
        (r#"path: "../../../etc""#, false),
        (r#"path: "a", expectedType: DIRECTORY_TYPE"#, true),
        (r#"path: "a", expectedType: REGULAR_TYPE"#, false),
        (r#"path: "a/b/link", expectedType: REGULAR_TYPE"#, true),
        (r#"path: "a/b/link", expectedType: SYMLINK_TYPE"#, true),
        (r#"path: "a/b/c.txt", expectedType: SYMLINK_TYPE"#, false),
        (r#"path: "a/b/link", expectedType: REGULAR_TYPE, doNotFollowSymlinks: true"#, false),
        (r#"path: "dangling""#, false),
        (r#"path: "dangling", doNotFollowSymlinks: true"#, true),
        (r#"path: "loop""#, false),
        (r#"path: "loop", doNotFollowSymlinks: true"#, true),
        (&format!(r#"path: "{long}""#), false),
    ];
    let asked = cases
        .iter()
        .enumerate()
        .map(|(index, (arguments, _))| format!("q{index}: exists({arguments})\n"));
    let data = session.query(&in_tree(&asked.collect::<String>()));
    let mut found = &data["directory"];
    while let Some(next) = found.get("withNewFile").or_else(|| found.get("withSymlink")) {
        found = next;
    }
    for (index, (arguments, expected)) in cases.iter().enumerate() {
        assert_eq!(found[format!("q{index}")], *expected, "{arguments}");
    }
}

#[test]
fn what_is_known_of_an_entry() {
    let state = State::new();
    let session = Session::start(&state);
    let stat = |arguments: &str| {
        let ask = format!("stat({arguments}) {{ name size fileType permissions }}");
        let mut data = session.query(&in_tree(&ask))["directory"].clone();
        while let Some(next) = data.get("withNewFile").or_else(|| data.get("withSymlink")) {
            data = next.clone();
        }
        data["stat"].clone()
    };
    assert_eq!(
        stat(r#"path: "a/b/link""#),
        json!({"name": "link", "size": 5, "fileType": "REGULAR", "permissions": 0o640})
    );
    assert_eq!(
        stat(r#"path: "a/b/link", doNotFollowSymlinks: true"#),
        json!({"name": "link", "size": 5, "fileType": "SYMLINK", "permissions": 0o777})
    );
    assert_eq!(
        stat(r#"path: "a/""#),
        json!({"name": "a", "size": 4096, "fileType": "DIRECTORY", "permissions": 0o755})
    );
    assert_eq!(stat(r#"path: ".""#)["name"], "/");
    for (arguments, expected) in [
        (r#"path: "nope""#, "stat nope: no such file or directory"),
        (r#"path: """#, "stat : no such file or directory"),
        (r#"path: "dangling""#, "stat dangling: no such file or directory"),
        (r#"path: "loop""#, "too many levels of symbolic links"),
    ] {
        let said = session.error(&in_tree(&format!("stat({arguments}) {{ name }}")));
        assert!(said.contains(expected), "{said}");
    }
    let file = r#"{ file(name: "f", contents: "abc") { withName(name: "g") { stat { name size fileType permissions } } } }"#;
    let expected = json!({"name": "g", "size": 3, "fileType": "REGULAR", "permissions": 0o644});
    assert_eq!(session.query(file)["file"]["withName"]["stat"], expected);
    let said =
        session.error(r#"{ file(name: "f", contents: "") { withName(name: "a/b") { name } } }"#);
    assert!(said.contains("not contain a directory"), "{said}");
}

#[test]
fn patterns_and_the_way_up() {
    let state = State::new();
    let session = Session::start(&state);
    let glob =
        |pattern: &str| session.leaf(&in_tree(&format!("glob(pattern: {})", Value::from(pattern))));
    assert_eq!(glob("*"), json!(["a/", "dangling", "deep/", "loop", "top.md"]));
    assert_eq!(glob("**/*.{txt,md}"), json!(["a/b/c.txt", "top.md"]));
    assert_eq!(glob("a/**"), json!(["a/.hidden", "a/b/", "a/b/c.txt", "a/b/link"]));
    assert_eq!(glob("[x-z]*"), json!([]));
    assert_eq!(session.leaf(r#"{ directory { glob(pattern: "**") } }"#), json!([]));
    let said = session.error(&in_tree(r#"directory(path: "none") { glob(pattern: "*") }"#));
    assert!(said.contains("none: no such file or directory"), "{said}");
    let said = session.error(&in_tree(r#"glob(pattern: "[")"#));
    assert!(said.contains("is no pattern"), "{said}");

    let up = |name: &str, start: &str| {
        session.leaf(&in_tree(&format!(r#"findUp(name: "{name}", start: "{start}")"#)))
    };
    assert_eq!(up("c.txt", "a/b"), "a/b/c.txt");
    assert_eq!(up(".hidden", "a/b/deeper/still"), "a/.hidden");
    assert_eq!(up("top.md", "/a/b/c.txt"), "top.md");
    assert_eq!(up("a", "."), "a");
    assert_eq!(up("c.txt", "a"), Value::Null, "children are not looked into");
    assert_eq!(up("passwd", "../../../etc"), Value::Null);
    assert!(session.error(&in_tree(r#"findUp(name: "../x", start: "a")"#)).contains("no name"));
    let long = "a/".repeat(1 << 20);
    let said = session.error(&in_tree(&format!(r#"findUp(name: "x", start: "{long}")"#)));
    assert!(said.contains("path is longer than 4096 bytes") && said.len() < 1000, "{said}");
}

#[test]
fn clients_of_old_get_names_of_old() {
    let state = State::new();
    let session = Session::start_with(&state, &["--version=0.16.3"]);
    assert_eq!(
        session.leaf(&in_tree(r#"glob(pattern: "*")"#)),
        json!(["a", "dangling", "deep", "loop", "top.md"])
    );
    assert_eq!(
        session.leaf(&in_tree("entries")),
        json!(["a", "dangling", "deep", "loop", "top.md"])
    );
    assert_eq!(session.leaf(&in_tree(r#"directory(path: "a") { name }"#)), "a");
    assert_eq!(session.leaf("{ directory { name } }"), "/");
}

#[test]
fn paths_of_a_container_wherever_they_are_kept() {
    let state = State::new();
    let session = Session::start(&state);
    let directory =
        session.leaf(r#"{ directory { withNewFile(path: "in", contents: "abc") { id } } }"#);
    let file = session.leaf(r#"{ file(name: "own", contents: "12") { id } }"#);
    let mounted = format!(
        r#"withMountedDirectory(path: "/m", source: {directory}) {{ withMountedFile(path: "/one", source: {file}) {{
            withMountedTemp(path: "/tmp/t") {{ withWorkdir(path: "/m") {{ withEnvVariable(name: "WHERE", value: "in") {{"#
    );
    let leaf =
        |ask: &str| session.leaf(&session.on_container(&format!("{mounted} {ask} }} }} }} }} }}")));
    for (arguments, expected) in [
        (r#"path: "in""#, true),
        (r#"path: "$WHERE", expand: true"#, true),
        (r#"path: "$WHERE""#, false),
        (r#"path: "/m", expectedType: DIRECTORY_TYPE"#, true),
        (r#"path: "/one", expectedType: REGULAR_TYPE"#, true),
        (r#"path: "/one/below""#, false),
        (r#"path: "/bin/sh""#, true),
        (r#"path: "/m/none""#, false),
    ] {
        assert_eq!(leaf(&format!("exists({arguments})")), expected, "{arguments}");
    }
    assert_eq!(leaf(r#"stat(path: "in") { size }"#), 3);
    assert_eq!(leaf(r#"stat(path: "/one") { name }"#), "one");
    let error = |ask: &str| {
        session.error(&session.on_container(&format!("{mounted} {ask} }} }} }} }} }}")))
    };
    assert!(error(r#"exists(path: "/tmp/t/x")"#).contains("cannot retrieve path from tmpfs"));
    assert!(
        error(r#"stat(path: "nope") { name }"#).contains("stat nope: no such file or directory")
    );
    let link = r#"withSymlink(target: "$WHERE", linkName: "sub/$WHERE", expand: true)"#;
    let seen =
        leaf(&format!(r#"{link} {{ withExec(args: ["readlink", "/m/sub/in"]) {{ stdout }} }}"#));
    assert_eq!(seen, "in\n");
    let said = error(r#"withSymlink(target: "x", linkName: "in") { sync }"#);
    assert!(said.contains("file exists"), "{said}");
}
