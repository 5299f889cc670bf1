//! Changesets that are brought together.

use super::{Directory, File, Gone, Program, changes, contents, made, of_changes, tree};
use serde_json::json;
use testkit::{Session, State};

/// Three lines apart, so that changes of the first and the last do not meet.
const TEXT: &str = "first\n2\n3\n4\nlast\n";

fn merged(session: &Session, ours: &str, theirs: &str, policy: &str) -> String {
    session.leaf(&document(ours, theirs, policy)).to_string()
}

fn document(ours: &str, theirs: &str, policy: &str) -> String {
    let policy = if policy.is_empty() { String::new() } else { format!(", onConflict: {policy}") };
    format!(
        "{{ loadChangesetFromID(id: {ours}) {{ withChangeset(changes: {theirs}{policy}) {{ sync }} }} }}"
    )
}

fn after(session: &Session, changeset: &str) -> String {
    of_changes(session, changeset, "after { id }").to_string()
}

#[test]
fn changes_of_different_files_and_lines_go_together() {
    let state = State::new();
    let session = Session::start(&state);
    let base = made(
        &session,
        None,
        &[File("both", TEXT), File("a", "a"), File("b", "b"), File("d/x", "")],
    );
    let ours = made(
        &session,
        Some(&base),
        &[
            File("both", "FIRST\n2\n3\n4\nlast\n"),
            Gone("a"),
            File("new/ours", ""),
            File("d/ours", ""),
            File("same", "same"),
        ],
    );
    let theirs = made(
        &session,
        Some(&base),
        &[
            File("both", "first\n2\n3\n4\nLAST\n"),
            Program("b", "b"),
            File("new/theirs", ""),
            Gone("d"),
            File("same", "same"),
        ],
    );
    let (ours, theirs) = (changes(&session, &base, &ours), changes(&session, &base, &theirs));
    let both = merged(&session, &ours, &theirs, "");
    assert_eq!(
        of_changes(&session, &both, "addedPaths"),
        json!(["d/ours", "new/", "new/ours", "new/theirs", "same"])
    );
    assert_eq!(of_changes(&session, &both, "modifiedPaths"), json!(["b", "both"]));
    assert_eq!(of_changes(&session, &both, "removedPaths"), json!(["a", "d/x"]));
    assert_eq!(contents(&session, &after(&session, &both), "both"), "FIRST\n2\n3\n4\nLAST\n");
    // The other way round it is the same.
    let turned = merged(&session, &theirs, &ours, "");
    let left = changes(&session, &after(&session, &both), &after(&session, &turned));
    assert_eq!(of_changes(&session, &left, "isEmpty"), json!(true));
    // Early, one file is enough.
    let said = session.error(&document(&ours, &theirs, "FAIL_EARLY"));
    assert!(said.contains("conflict at `both`") && !said.contains("same"), "{said}");
}

#[test]
fn policies_decide_conflicts() {
    let state = State::new();
    let session = Session::start(&state);
    let base = made(
        &session,
        None,
        &[
            File("lines", "1\n2\n3\n"),
            File("kept", "1\n"),
            File("kept too", "1\n"),
            File("apart", TEXT),
        ],
    );
    let ours = made(
        &session,
        Some(&base),
        &[
            File("lines", "1\nours\n3\n"),
            Gone("kept"),
            File("kept too", "ours\n"),
            File("apart", "FIRST\n2\n3\n4\nlast\n"),
            File("new", "ours\n"),
        ],
    );
    let theirs = made(
        &session,
        Some(&base),
        &[
            File("lines", "1\ntheirs\n3\n"),
            File("kept", "theirs\n"),
            Gone("kept too"),
            File("apart", "first\n2\n3\n4\nLAST\n"),
            File("new", "theirs\n"),
        ],
    );
    let (ours, theirs) = (changes(&session, &base, &ours), changes(&session, &base, &theirs));
    for policy in ["", "FAIL"] {
        let said = session.error(&document(&ours, &theirs, policy));
        assert!(said.contains("conflict at `kept`, `kept too`, `lines`, `new`"), "{said}");
    }
    let said = session.error(&document(&ours, &theirs, "FAIL_EARLY"));
    assert!(said.contains("`apart`, `kept`, `kept too`, `lines`, `new`"), "{said}");
    let look = |policy: &str, path: &str| {
        let tree = after(&session, &merged(&session, &ours, &theirs, policy));
        contents(&session, &tree, path)
    };
    let marked = |before: &str, after: &str| {
        format!("{before}<<<<<<< ours\nours\n=======\ntheirs\n>>>>>>> theirs\n{after}")
    };
    assert_eq!(look("LEAVE_CONFLICT_MARKERS", "lines"), marked("1\n", "3\n"));
    assert_eq!(look("LEAVE_CONFLICT_MARKERS", "new"), marked("", ""));
    assert_eq!(look("LEAVE_CONFLICT_MARKERS", "kept"), "theirs\n");
    assert_eq!(look("LEAVE_CONFLICT_MARKERS", "kept too"), "ours\n");
    for (policy, lines, other) in
        [("PREFER_OURS", "1\nours\n3\n", "ours\n"), ("PREFER_THEIRS", "1\ntheirs\n3\n", "theirs\n")]
    {
        assert_eq!(look(policy, "lines"), lines);
        assert_eq!(look(policy, "new"), other);
        assert_eq!(look(policy, "apart"), "FIRST\n2\n3\n4\nLAST\n", "what merges is merged");
        let both = merged(&session, &ours, &theirs, policy);
        let removed = if policy == "PREFER_OURS" { "kept" } else { "kept too" };
        assert_eq!(of_changes(&session, &both, "removedPaths"), json!([removed]));
    }
}

#[test]
fn swapped_kinds_and_what_is_no_text_conflict() {
    let state = State::new();
    let session = Session::start(&state);
    let base = made(&session, None, &[File("bin", "a\u{0}"), File("d/x", "x"), File("f", "f")]);
    let ours = made(
        &session,
        Some(&base),
        &[File("bin", "b\u{0}"), Gone("d"), File("d", "a file"), File("f", "ours")],
    );
    let theirs = made(
        &session,
        Some(&base),
        &[File("bin", "c\u{0}"), File("d/new", "new"), Gone("f"), Directory("f"), File("f/in", "")],
    );
    let (ours, theirs) = (changes(&session, &base, &ours), changes(&session, &base, &theirs));
    for policy in ["", "LEAVE_CONFLICT_MARKERS"] {
        let said = session.error(&document(&ours, &theirs, policy));
        assert!(said.contains("`bin`, `d/new`, `f`, `f/in`"), "{said}");
    }
    let said = session.error(&document(&ours, &theirs, "FAIL_EARLY"));
    assert!(said.contains("`bin`, `d`, `f`"), "{said}");
    let all = |policy: &str| {
        let both = merged(&session, &ours, &theirs, policy);
        tree(&session, &after(&session, &both))
    };
    assert_eq!(all("PREFER_OURS"), json!(["bin", "d", "f"]));
    assert_eq!(all("PREFER_THEIRS"), json!(["bin", "d/", "d/new", "f/", "f/in"]));
    // A swap that nobody else touches is taken.
    let alone = made(&session, Some(&base), &[File("other", "")]);
    let alone = changes(&session, &base, &alone);
    let both = merged(&session, &alone, &ours, "");
    assert_eq!(tree(&session, &after(&session, &both)), json!(["bin", "d", "f", "other"]));
    let both = merged(&session, &alone, &theirs, "");
    assert_eq!(
        tree(&session, &after(&session, &both)),
        json!(["bin", "d/", "d/new", "d/x", "f/", "f/in", "other"])
    );
}

#[test]
fn several_are_merged_at_once() {
    let state = State::new();
    let session = Session::start(&state);
    let base = made(&session, None, &[File("both", TEXT)]);
    let one = changes(
        &session,
        &base,
        &made(&session, Some(&base), &[File("both", "FIRST\n2\n3\n4\nlast\n"), File("one", "")]),
    );
    let two = changes(
        &session,
        &base,
        &made(&session, Some(&base), &[File("both", "first\n2\n3\n4\nLAST\n"), File("two", "")]),
    );
    let three = changes(
        &session,
        &base,
        &made(&session, Some(&base), &[File("both", "FIRST!\n2\n3\n4\nlast\n")]),
    );
    let document = |start: &str, list: &str, policy: &str, ask: &str| {
        format!("{{ {start} {{ withChangesets(changes: [{list}]{policy}) {{ {ask} }} }} }}")
    };
    let first = format!("loadChangesetFromID(id: {one})");
    let empty = session.leaf(&document(&first, "", "", "addedPaths"));
    assert_eq!(empty, json!(["one"]), "no others change nothing");
    for (start, list) in [(first.as_str(), two.clone()), ("changeset", format!("{one}, {two}"))] {
        let said = session.query(&document(
            start,
            &list,
            "",
            "addedPaths modifiedPaths after { file(path: \"both\") { contents } }",
        ));
        let said = said.as_object().unwrap().values().next().unwrap()["withChangesets"].clone();
        assert_eq!(
            said,
            json!({"addedPaths": ["one", "two"], "modifiedPaths": ["both"], "after": {"file": {"contents": "FIRST\n2\n3\n4\nLAST\n"}}})
        );
    }
    let list = format!("{two}, {three}");
    for policy in ["", ", onConflict: FAIL", ", onConflict: FAIL_EARLY"] {
        let said = session.error(&document(&first, &list, policy, "sync"));
        assert!(said.contains("conflict at `both`"), "{said}");
    }
    // Between the others it counts too.
    let said = session.error(&document(
        "changeset",
        &format!("{one}, {two}"),
        ", onConflict: FAIL_EARLY",
        "sync",
    ));
    assert!(said.contains("conflict at `both`"), "{said}");
}

#[test]
fn changes_of_different_directories_go_together() {
    let state = State::new();
    let session = Session::start(&state);
    let one = made(&session, None, &[File("ours", "1"), File("common", "c")]);
    let two = made(&session, None, &[File("theirs", "1"), File("common", "c")]);
    let ours =
        changes(&session, &one, &made(&session, Some(&one), &[File("ours", "2"), File("new", "")]));
    let theirs = changes(
        &session,
        &two,
        &made(&session, Some(&two), &[File("theirs", "2"), Gone("common")]),
    );
    let both = merged(&session, &ours, &theirs, "");
    assert_eq!(of_changes(&session, &both, "addedPaths"), json!(["new"]));
    assert_eq!(of_changes(&session, &both, "modifiedPaths"), json!(["ours", "theirs"]));
    assert_eq!(of_changes(&session, &both, "removedPaths"), json!(["common"]));
}

#[test]
fn what_one_made_executable_and_the_other_wrote_anew_is_both() {
    let state = State::new();
    let session = Session::start(&state);
    for (old, new) in [("old\n", "new\n"), ("\0old", "\0new"), ("old\n", "\0new")] {
        let base = made(&session, None, &[File("p", old)]);
        let one = changes(&session, &base, &made(&session, Some(&base), &[Program("p", old)]));
        let other = changes(&session, &base, &made(&session, Some(&base), &[File("p", new)]));
        let expected = made(&session, None, &[Program("p", new)]);
        for (ours, theirs) in [(&one, &other), (&other, &one)] {
            let both = after(&session, &merged(&session, ours, theirs, ""));
            let left = changes(&session, &expected, &both);
            assert_eq!(of_changes(&session, &left, "isEmpty"), json!(true), "{old:?} {new:?}");
        }
    }
}
