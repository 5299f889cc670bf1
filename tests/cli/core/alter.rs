//! Directories and files whose entries are changed: owners, times, links, text, choice; and their digests.

use serde_json::{Value, json};
use testkit::{Session, State};

/// What a command says of a directory at `/t`.
fn seen(session: &Session, directory: &str, script: &str) -> String {
    let directory = session.leaf(&format!("{{ directory {{ {directory} }} }}"));
    let script = Value::from(script);
    session.container(&format!(
        r#"withMountedDirectory(path: "/t", source: {directory}) {{ withExec(args: ["sh", "-c", {script}]) {{ stdout }} }}"#
    ))
}

#[test]
fn owners_by_number_and_by_the_directory_s_own_names() {
    let state = State::new();
    let session = Session::start(&state);
    let tree = r#"withNewFile(path: "etc/passwd", contents: "ann:x:1000:1001::/:\n") {
        withNewFile(path: "etc/group", contents: "staff:x:50:\n") {
        withNewFile(path: "d/f", contents: "x", permissions: 3564) { withSymlink(target: "/etc", linkName: "d/l") {"#;
    let list = "cd /t; stat -c '%n %u:%g %a' d d/f d/l etc/passwd";
    let chown = |owner: &str, path: &str| {
        let change = format!(r#"chown(path: "{path}", owner: "{owner}") {{ id }}"#);
        seen(&session, &format!("{tree} {change} }} }} }} }}"), list)
    };
    assert_eq!(
        chown("ann:staff", "d"),
        "d 1000:50 755\nd/f 1000:50 754\nd/l 1000:50 777\netc/passwd 0:0 644\n"
    );
    assert_eq!(chown("7", "/d/f"), "d 0:0 755\nd/f 7:0 754\nd/l 0:0 777\netc/passwd 0:0 644\n");
    let error = |change: &str| {
        session.error(&format!("{{ directory {{ {tree} {change} {{ sync }} }} }} }} }} }} }}"))
    };
    assert!(error(r#"chown(path: "d", owner: "nobody")"#).contains("unable to find user `nobody`"));
    assert!(
        error(r#"chown(path: "none", owner: "1")"#).contains("none: no such file or directory")
    );
    let file = session.leaf(r#"{ file(name: "f", contents: "x") { chown(owner: "5:6") { id } } }"#);
    let kept = session.leaf(&format!(r#"{{ loadFileFromID(id: {file}) {{ contents }} }}"#));
    assert_eq!(kept, "x");
    let said =
        session.error(r#"{ file(name: "f", contents: "") { chown(owner: "ann") { sync } } }"#);
    assert!(said.contains("owner `ann`"), "{said}");
}

#[test]
fn times_make_archives_that_stay_the_same() {
    let state = State::new();
    let session = Session::start(&state);
    let tree = |contents: &str| {
        format!(
            r#"withNewFile(path: "d/f", contents: "{contents}") {{ withSymlink(target: "f", linkName: "d/l") {{
                withTimestamps(timestamp: 1000000000) {{ id }} }} }}"#
        )
    };
    let times = seen(
        &session,
        &tree("x"),
        "cd /t; stat -c '%n %Y' d d/f d/l; test $(stat -c %Y .) -gt 1000000000 && echo own",
    );
    assert_eq!(times, "d 1000000000\nd/f 1000000000\nd/l 1000000000\nown\n");
    let tar = |contents: &str| seen(&session, &tree(contents), "cd /t; tar c d | sha256sum");
    assert_eq!(tar("x"), tar("x"));
    assert_ne!(tar("x"), tar("y"));
    let file = session
        .leaf(r#"{ file(name: "f", contents: "x") { withTimestamps(timestamp: 5) { id } } }"#);
    let time = session.container(&format!(
        r#"withFile(path: "/f", source: {file}) {{ withExec(args: ["stat", "-c", "%Y", "/f"]) {{ stdout }} }}"#
    ));
    assert_eq!(time, "5\n");
    let far = r#"{ directory { withTimestamps(timestamp: 99999999999999) { sync } } }"#;
    assert!(session.error(far).contains("timestamp 99999999999999"));
}

#[test]
fn links_are_made_where_nothing_is() {
    let state = State::new();
    let session = Session::start(&state);
    let tree =
        r#"withNewFile(path: "d/f", contents: "x") { withSymlink(target: "d", linkName: "to-d") {"#;
    let made =
        format!(r#"{tree} withSymlink(target: "../f", linkName: "to-d/sub/l") {{ id }} }} }}"#);
    let read = seen(&session, &made, "readlink /t/d/sub/l; cat /t/d/sub/l");
    assert_eq!(read, "../f\nx", "links in parents are followed");
    for (name, expected) in [
        ("d/f", "file exists"),
        ("to-d", "file exists"),
        ("../out", "cannot create directory outside parent"),
    ] {
        let said = session.error(&format!(
            r#"{{ directory {{ {tree} withSymlink(target: "x", linkName: "{name}") {{ sync }} }} }} }} }}"#
        ));
        assert!(said.contains(expected), "{name}: {said}");
    }
}

#[test]
fn text_is_replaced() {
    let state = State::new();
    let session = Session::start(&state);
    let ask = |arguments: &str, rest: &str| {
        format!(
            r#"{{ file(name: "f.txt", contents: "one\ntwo\none two\n", permissions: 448) {{ withReplaced({arguments}) {{ {rest} }} }} }}"#
        )
    };
    let contents = |arguments: &str| session.leaf(&ask(arguments, "contents"));
    assert_eq!(contents(r#"search: "two\none", replacement: "2\n1""#), "one\n2\n1 two\n");
    assert_eq!(contents(r#"search: "one", replacement: "1", all: true"#), "1\ntwo\n1 two\n");
    assert_eq!(contents(r#"search: "one", replacement: "1", firstFrom: 2"#), "one\ntwo\n1 two\n");
    assert_eq!(contents(r#"search: "zz", replacement: "1", all: true"#), "one\ntwo\none two\n");
    let kept = session
        .query(&ask(r#"search: "zz", replacement: "", all: true"#, "name stat { permissions }"));
    assert_eq!(
        kept["file"]["withReplaced"],
        json!({"name": "f.txt", "stat": {"permissions": 448}})
    );
    for (arguments, expected) in [
        (r#"search: "zz", replacement: "1""#, "not found"),
        (r#"search: "one", replacement: "1""#, "multiple times in `f.txt`: in lines 1, 3"),
        (r#"search: "two", replacement: "1", firstFrom: 4"#, "not found"),
        (r#"search: "", replacement: "1""#, "`search` is empty"),
        (r#"search: "one", replacement: "1", firstFrom: 0"#, "`firstFrom` is 0"),
    ] {
        let said = session.error(&ask(arguments, "contents"));
        assert!(said.contains(expected), "{arguments}: {said}");
    }
    let file = session.leaf(
        r#"{ file(name: "f", contents: "one\ntwo") { withReplaced(search: "one\n", replacement: "") {
            withReplaced(search: "two", replacement: "three") { withName(name: "g") { id } } } } }"#,
    );
    let entries = session.leaf(&format!(
        r#"{{ directory {{ withFile(path: "", source: {file}) {{ entries }} }} }}"#
    ));
    assert_eq!(entries, json!(["g"]));
}

#[test]
fn a_directory_is_filtered() {
    let state = State::new();
    let session = Session::start(&state);
    let tree = r#"withNewFile(path: "a.txt", contents: "") { withNewFile(path: "sub/b.txt", contents: "") {
        withNewFile(path: "sub/b.o", contents: "") { withNewFile(path: ".gitignore", contents: "*.o\n") {"#;
    let ask = |ask: &str| session.leaf(&format!("{{ directory {{ {tree} {ask} }} }} }} }} }} }}"));
    let all = |filter: &str| ask(&format!(r#"filter({filter}) {{ glob(pattern: "**/*") }}"#));
    assert_eq!(all(r#"include: ["sub"]"#), json!(["sub/", "sub/b.o", "sub/b.txt"]));
    assert_eq!(all(r#"include: ["**/*.txt"], exclude: ["a*"]"#), json!(["sub/", "sub/b.txt"]));
    assert_eq!(all("gitignore: true"), json!([".gitignore", "a.txt", "sub/", "sub/b.txt"]));
    assert_eq!(all(r#"include: ["none"]"#), json!([]));
    assert_eq!(ask(r#"filter(exclude: ["none"]) { digest }"#), ask("digest"));
    let below = r#"directory(path: "sub") { filter(exclude: ["*.o"]) { entries } }"#;
    assert_eq!(ask(below), json!(["b.txt"]));
}

#[test]
fn equal_trees_have_equal_digests() {
    let state = State::new();
    state.file("tree/foo.txt", "Hello, World!");
    state.file("tree/d/x", "x");
    for (path, mode) in
        [("tree", 0o755), ("tree/d", 0o755), ("tree/d/x", 0o644), ("tree/foo.txt", 0o644)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(state.workdir().join(path), mode).unwrap();
    }
    let session = Session::start(&state);
    let digest = |chain: &str| {
        let digest = session.leaf(chain).as_str().unwrap().to_owned();
        assert!(digest.starts_with("sha256:") && digest.len() == 71, "{digest}");
        digest
    };
    let made = digest(
        r#"{ directory { withNewFile(path: "d/x", contents: "x") { withNewFile(path: "foo.txt", contents: "Hello, World!") { digest } } } }"#,
    );
    let imported = digest(r#"{ host { directory(path: "tree") { digest } } }"#);
    let run = r#"withExec(args: ["sh", "-c", "mkdir -p /far/away/d; cd /far/away; printf x > d/x; printf 'Hello, World!' > foo.txt"]) {
        directory(path: "/far/away") { digest } }"#;
    let run = digest(&session.on_container(run));
    let edited = digest(
        r#"{ directory { withNewFile(path: "below/d/y", contents: "?") { withNewFile(path: "below/d/x", contents: "old") {
            withNewFile(path: "below/foo.txt", contents: "Hello, World!") { withNewFile(path: "below/d/x", contents: "x") {
            withoutFile(path: "below/d/y") { directory(path: "below") { withTimestamps(timestamp: 1) { digest } } } } } } } } }"#,
    );
    assert_eq!([&imported, &run, &edited], [&made; 3]);
    let other = digest(
        r#"{ directory { withNewFile(path: "d/x", contents: "x", permissions: 448) { withNewFile(path: "foo.txt", contents: "Hello, World!") { digest } } } }"#,
    );
    assert_ne!(made, other, "permissions count");

    // Users keep these: they must never change.
    let one = r#"withNewFile(path: "foo.txt", contents: "Hello, World!")"#;
    let golden = [
        digest("{ directory { digest } }"),
        digest(&format!("{{ directory {{ {one} {{ digest }} }} }}")),
        digest(&format!(r#"{{ directory {{ {one} {{ file(path: "foo.txt") {{ digest }} }} }} }}"#)),
        digest(&format!(
            r#"{{ directory {{ {one} {{ file(path: "foo.txt") {{ withName(name: "bar") {{ digest(excludeMetadata: true) }} }} }} }} }}"#
        )),
    ];
    let expected = [
        "sha256:0e5db88383bce812f795689f5318a2b2f4fde740ef31c2a2365a46368aafddd2",
        "sha256:48ac4b4b73af8a75a3c77e9dc6211d89321c6ed4f13c6987c6837ac58645bd89",
        "sha256:8a887cdd3e476c79e1a14a65a6c401673b56071a24561dadb5e152605e72a613",
        "sha256:042a7d64a581ef2ee983f21058801cc35663b705e6c55f62fa8e0f18ecc70989",
    ];
    assert_eq!(golden, expected);
}
