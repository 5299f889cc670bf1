//! What a changeset lists.

use super::{
    Directory, File, Gone, Program, chained, changes, contents, made, of_changes, of_directory,
    tree,
};
use serde_json::json;
use testkit::{Session, State};

#[test]
fn paths_that_came_went_and_changed() {
    let state = State::new();
    let session = Session::start(&state);
    let before = made(
        &session,
        None,
        &[
            File("same", "same"),
            File("changed", "1\n2\n3\n"),
            File("gone.txt", "x\n"),
            File("gone/deep/a", "a\n"),
            File("gone/b", "b\n"),
            File("old/name", "1\n2\n3\n4\n5\n6\n7\n8\n"),
            File("mode", "run"),
            File("swap/in", ""),
        ],
    );
    let after = made(
        &session,
        Some(&before),
        &[
            File("same", "same"),
            File("changed", "1\ntwo\n3\n4\n"),
            Gone("gone.txt"),
            Gone("gone"),
            Gone("old"),
            File("new/dir/name", "1\n2\n3\n4\n5\n6\n7\nlast\n"),
            Directory("empty"),
            Program("mode", "run"),
            Gone("swap"),
            File("swap", "a file now\n"),
            File("binary", "a\u{0}b\n"),
        ],
    );
    let changeset = changes(&session, &before, &after);
    let field = |field: &str| of_changes(&session, &changeset, field);
    assert_eq!(
        field("addedPaths"),
        json!(["binary", "empty/", "new/", "new/dir/", "new/dir/name", "swap"])
    );
    assert_eq!(field("modifiedPaths"), json!(["changed", "mode"]));
    assert_eq!(field("removedPaths"), json!(["gone/", "gone.txt", "old/", "swap/"]));
    assert_eq!(field("isEmpty"), json!(false));
    let stats = field("diffStats { path oldPath kind addedLines removedLines }");
    let row = |path: &str, old: Option<&str>, kind: &str, added: i64, removed: i64| json!({"path": path, "oldPath": old, "kind": kind, "addedLines": added, "removedLines": removed});
    assert_eq!(
        stats,
        json!([
            row("binary", None, "ADDED", 0, 0),
            row("changed", None, "MODIFIED", 2, 1),
            row("empty/", None, "ADDED", 0, 0),
            row("gone.txt", None, "REMOVED", 0, 1),
            row("gone/b", None, "REMOVED", 0, 1),
            row("gone/deep/a", None, "REMOVED", 0, 1),
            row("mode", None, "MODIFIED", 0, 0),
            row("new/dir/name", Some("old/name"), "RENAMED", 1, 1),
            row("swap", None, "ADDED", 1, 0),
            row("swap/in", None, "REMOVED", 0, 0),
        ])
    );
    assert_eq!(
        tree(&session, &field("layer { id }").to_string()),
        json!(["binary", "changed", "empty/", "mode", "new/", "new/dir/", "new/dir/name", "swap"]),
    );
    assert_eq!(field("before { file(path: \"changed\") { contents } }"), json!("1\n2\n3\n"));
    assert_eq!(field("after { file(path: \"changed\") { contents } }"), json!("1\ntwo\n3\n4\n"));
    let again = chained(
        &session,
        &format!("loadDirectoryFromID(id: {before})"),
        &[format!("withChanges(changes: {changeset})")],
    );
    let left = changes(&session, &after, &again);
    assert_eq!(of_changes(&session, &left, "isEmpty"), json!(true));
}

#[test]
fn nothing_done_is_nothing_listed() {
    let state = State::new();
    let session = Session::start(&state);
    let before = made(&session, None, &[File("a", "a"), File("d/b", "b")]);
    let there_and_back =
        made(&session, Some(&before), &[File("new", ""), Gone("a"), Gone("new"), File("a", "a")]);
    let touched = session.leaf(&session.on_container(&format!(
        r#"withDirectory(path: "/w", source: {before}) {{ withExec(args: ["sh", "-c", "touch /w/a; chmod 600 /w/d/b; chown 5 /w/a"]) {{ directory(path: "/w") {{ id }} }} }}"#
    )));
    for after in [there_and_back, touched.to_string()] {
        let changeset = changes(&session, &before, &after);
        let lists = session.query(&format!(
            "{{ loadChangesetFromID(id: {changeset}) {{ isEmpty addedPaths modifiedPaths removedPaths
               diffStats {{ path }} layer {{ entries }} asPatch {{ size name }} }} }}"
        ));
        assert_eq!(
            lists["loadChangesetFromID"],
            json!({"isEmpty": true, "addedPaths": [], "modifiedPaths": [], "removedPaths": [],
                "diffStats": [], "layer": {"entries": []}, "asPatch": {"size": 0, "name": "changes.patch"}})
        );
    }
    assert_eq!(session.leaf("{ changeset { isEmpty } }"), json!(true));
}

#[test]
fn a_command_that_does_nothing_changes_nothing() {
    let state = State::new();
    let session = Session::start(&state);
    let rootfs = |script: &str| {
        let script = json!(script);
        session
            .container(&format!(r#"withExec(args: ["sh", "-c", {script}]) {{ rootfs {{ id }} }}"#))
    };
    let before = json!(rootfs("true")).to_string();
    let (nothing, something) =
        (rootfs("exit 0"), rootfs("mkdir -p /a/b; echo x > /a/b/c; rm /bin/readlink"));
    let diff = |other: &str| {
        let other = json!(other);
        tree(
            &session,
            &of_directory(&session, &before, &format!("diff(other: {other}) {{ id }}")).to_string(),
        )
    };
    assert_eq!(diff(&nothing), json!([]));
    assert_eq!(diff(&something), json!(["a/", "a/b/", "a/b/c"]));
    let changeset = changes(&session, &before, &json!(something).to_string());
    assert_eq!(of_changes(&session, &changeset, "addedPaths"), json!(["a/", "a/b/", "a/b/c"]));
    assert_eq!(of_changes(&session, &changeset, "removedPaths"), json!(["bin/readlink"]));
}

#[test]
fn directories_below_are_compared_by_what_is_in_them() {
    let state = State::new();
    let session = Session::start(&state);
    let one = made(&session, None, &[File("x/d/f", "1"), File("x/d/g", "g"), File("x/other", "")]);
    let two = made(&session, None, &[File("y/z/f", "2"), File("y/z/g", "g"), File("y/z/h", "h")]);
    let below = |id: &str, path: &str| {
        chained(
            &session,
            &format!("loadDirectoryFromID(id: {id})"),
            &[format!("directory(path: \"{path}\")")],
        )
    };
    let (one, two) = (below(&one, "x/d"), below(&two, "y/z"));
    let diff = |one: &str, two: &str| {
        of_directory(&session, one, &format!("diff(other: {two}) {{ entries }}"))
    };
    assert_eq!(diff(&one, &two), json!(["f", "h"]));
    assert_eq!(diff(&one, &one), json!([]));
    let changeset = changes(&session, &one, &two);
    assert_eq!(of_changes(&session, &changeset, "layer { entries }"), json!(["f", "h"]));
    assert_eq!(of_changes(&session, &changeset, "modifiedPaths"), json!(["f"]));
    // Modes and owners count for `diff`, which is about all of a directory.
    let plain = made(&session, None, &[File("f", ""), File("g", "")]);
    let other = made(&session, Some(&plain), &[Program("f", "")]);
    assert_eq!(diff(&plain, &other), json!(["f"]));
}

#[test]
fn changes_are_done_to_another_directory() {
    let state = State::new();
    let session = Session::start(&state);
    let before = made(
        &session,
        None,
        &[
            File("f", "1"),
            File("gone/a", ""),
            File("gone/b", ""),
            File("to-dir", ""),
            File("to-file/x", ""),
        ],
    );
    let after = session.leaf(&session.on_container(&format!(
        r#"withDirectory(path: "/w", source: {before}) {{ withWorkdir(path: "/w") {{
            withExec(args: ["sh", "-c", "echo 2 > f; rm -r gone to-file to-dir; mkdir to-dir; echo x > to-dir/x; echo y > to-file; ln -s nowhere dangling; ln -s f link"])
            {{ directory(path: "/w") {{ id }} }} }} }}"#
    )));
    let changeset = changes(&session, &before, &after.to_string());
    let base = made(
        &session,
        None,
        &[
            File("own", "own"),
            File("gone/own", "own"),
            File("gone/a", "other"),
            File("sub/own", ""),
            File("to-file/x", ""),
            File("link/in/the/way", ""),
        ],
    );
    let done = chained(
        &session,
        &format!("loadDirectoryFromID(id: {base})"),
        &[format!("withChanges(changes: {changeset})")],
    );
    assert_eq!(
        tree(&session, &done),
        json!([
            "dangling", "f", "gone/", "gone/own", "link", "own", "sub/", "sub/own", "to-dir/",
            "to-dir/x", "to-file"
        ])
    );
    assert_eq!(contents(&session, &done, "to-file"), "y\n");
    assert_eq!(contents(&session, &done, "link"), "2\n", "it is a link");
    // In a directory below, what lies above stays.
    let below = chained(
        &session,
        &format!("loadDirectoryFromID(id: {base})"),
        &[
            "directory(path: \"sub\")".to_owned(),
            format!("withChanges(changes: {changeset})"),
            "directory(path: \"..\")".to_owned(),
        ],
    );
    assert_eq!(contents(&session, &below, "own"), "own");
    assert_eq!(contents(&session, &below, "sub/to-dir/x"), "x\n");
}
