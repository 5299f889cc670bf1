//! Patches that are applied to a directory.

use super::{File, contents, made, tree};
use serde_json::{Value, json};
use testkit::{Session, State};

/// The id of a directory with a patch applied.
fn patched(session: &Session, directory: &str, patch: &str, more: &str) -> String {
    session.leaf(&document(directory, patch, more)).to_string()
}

fn document(directory: &str, patch: &str, more: &str) -> String {
    let patch = Value::from(patch);
    format!(
        "{{ loadDirectoryFromID(id: {directory}) {{ withPatch(patch: {patch}{more}) {{ sync }} }} }}"
    )
}

const MARKS: &str = ", onConflict: LEAVE_CONFLICT_MARKERS";

#[test]
fn patches_of_git_and_of_diff_apply() {
    let state = State::new();
    let session = Session::start(&state);
    let base = made(
        &session,
        None,
        &[
            File("f", "1\n2\n3\n4\n5\n"),
            File("d/gone", "x\n"),
            File("moved", "m\n"),
            File("one", "1\n"),
            File("two", "2\n"),
        ],
    );
    let patch = "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n\
        diff --git a/d/gone b/d/gone\ndeleted file mode 100644\n--- a/d/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\
        diff --git a/moved b/in/here\nsimilarity index 100%\nrename from moved\nrename to in/here\n\
        diff --git a/one b/two\nrename from one\nrename to two\n\
        diff --git a/two b/one\nrename from two\nrename to one\n\
        diff --git a/new b/new\nnew file mode 120000\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+f\n\\ No newline at end of file\n";
    let done = patched(&session, &base, patch, "");
    assert_eq!(
        tree(&session, &done),
        json!(["f", "in/", "in/here", "new", "one", "two"]),
        "a directory that the patch has emptied is gone"
    );
    assert_eq!(contents(&session, &done, "f"), "1\ntwo\n3\n4\n5\n");
    assert_eq!(contents(&session, &done, "new"), "1\ntwo\n3\n4\n5\n", "a link to it");
    assert_eq!(
        (contents(&session, &done, "one"), contents(&session, &done, "two")),
        ("2\n".into(), "1\n".into())
    );
    // The lines are further down, and one line of context differs.
    let plain = "--- old/f\n+++ new/f\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n";
    let moved = made(&session, None, &[File("f", "0\n0\n0\none\n2\n3\n")]);
    let done = patched(&session, &moved, plain, "");
    assert_eq!(contents(&session, &done, "f"), "0\n0\n0\none\ntwo\n3\n");
    // No patch is none.
    assert_eq!(contents(&session, &patched(&session, &base, "", ""), "f"), "1\n2\n3\n4\n5\n");
    let below = session.leaf(&format!(
        "{{ loadDirectoryFromID(id: {base}) {{ directory(path: \"d\") {{ withPatch(patch: {}) {{ file(path: \"gone\") {{ contents }} }} }} }} }}",
        Value::from("--- a/gone\n+++ b/gone\n@@ -1 +1 @@\n-x\n+y\n")
    ));
    assert_eq!(below, "y\n");
}

#[test]
fn what_does_not_fit_fails_or_is_marked() {
    let state = State::new();
    let session = Session::start(&state);
    let base = made(
        &session,
        None,
        &[
            File("bad", "other\n"),
            File("good", "1\n"),
            File("there", "mine\n"),
            File("left", "kept\n"),
        ],
    );
    let patch =
        "--- a/bad\n+++ b/bad\n@@ -1 +1 @@\n-1\n+2\n--- a/good\n+++ b/good\n@@ -1 +1 @@\n-1\n+2\n";
    let said = session.error(&document(&base, patch, ""));
    assert!(
        said.contains("patch does not apply") && said.contains("`bad`: hunk 1 does not fit"),
        "{said}"
    );
    assert!(!said.contains("`good`"), "{said}");
    let done = patched(&session, &base, patch, MARKS);
    assert_eq!(
        contents(&session, &done, "bad"),
        "<<<<<<< workspace\nother\n=======\n2\n>>>>>>> patch\n"
    );
    assert_eq!(contents(&session, &done, "good"), "2\n", "other files are still patched");
    let new = "--- /dev/null\n+++ b/there\n@@ -0,0 +1 @@\n+theirs\n";
    assert!(session.error(&document(&base, new, "")).contains("`there`: already exists"));
    assert_eq!(
        contents(&session, &patched(&session, &base, new, MARKS), "there"),
        "<<<<<<< workspace\nmine\n=======\ntheirs\n>>>>>>> patch\n"
    );
    let missing = "--- a/none\n+++ b/none\n@@ -1 +1 @@\n-1\n+2\n";
    assert!(session.error(&document(&base, missing, "")).contains("`none`: no such file"));
    let marked = contents(&session, &patched(&session, &base, missing, MARKS), "none");
    assert_eq!(marked, "<<<<<<< workspace\n=======\n2\n>>>>>>> patch\n");
    let gone = "--- a/left\n+++ /dev/null\n@@ -1 +0,0 @@\n-was\n";
    assert!(session.error(&document(&base, gone, "")).contains("`left`: hunk 1 does not fit"));
    let kept = contents(&session, &patched(&session, &base, gone, MARKS), "left");
    assert_eq!(kept, "<<<<<<< workspace\nkept\n=======\n>>>>>>> patch\n");
}

#[test]
fn hostile_and_broken_patches_are_one_clear_error() {
    let state = State::new();
    let session = Session::start(&state);
    let base = session.leaf(
        r#"{ directory { withNewFile(path: "d/f", contents: "x\n") { withNewFile(path: "file", contents: "x\n") { id } } } }"#,
    );
    let linked = session.leaf(&session.on_container(&format!(
        r#"withDirectory(path: "/w", source: {base}) {{ withExec(args: ["ln", "-s", "/etc", "/w/out"]) {{ directory(path: "/w") {{ id }} }} }}"#
    ))).to_string();
    let create = |path: &str| format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n");
    for (patch, expected) in [
        (create("../up"), "invalid path `../up`"),
        (create("a/../../up"), "invalid path"),
        (create("/etc/passwd"), "invalid path"),
        (create("out/passwd"), "`out/passwd`: it is beyond a symbolic link"),
        (create("file/below"), "`file/below`: it is beyond"),
        (create("d"), "`d`: it is a directory"),
        ("hello".to_owned(), "no change was found in the patch"),
        ("--- a/f\n+++ b/f\n@@ -1,5 +1 @@\n a\n".to_owned(), "corrupt patch at line 5"),
        ("diff --git a/s b/s\nnew file mode 160000\n".to_owned(), "neither a file nor a link"),
        (
            "diff --git a/file b/file\nBinary files a/file and b/file differ\n".to_owned(),
            "not in the patch",
        ),
    ] {
        for more in ["", MARKS] {
            let said = session.error(&document(&linked, &patch, more));
            assert!(said.contains(expected), "{patch}: {said}");
        }
    }
}

#[test]
fn a_patch_file_may_be_longer_than_an_answer() {
    let state = State::new();
    let session = Session::start(&state);
    // 132 MiB of patch for one file, made in a container.
    let script = "printf -- '--- /dev/null\\n+++ b/big\\n@@ -0,0 +1,2162688 @@\\n' > /p; yes '+0123456789012345678901234567890123456789012345678901234567890123' | head -n 2162688 >> /p";
    let document = session.on_container(&format!(
        r#"withExec(args: ["sh", "-c", {}]) {{ file(path: "/p") {{ id }} }}"#,
        Value::from(script)
    ));
    let file = session.leaf(&document);
    let size = session.leaf(&format!(
        r#"{{ directory {{ withPatchFile(patch: {file}) {{ file(path: "big") {{ size }} }} }} }}"#
    ));
    assert_eq!(size, json!(2_162_688_u64 * 65));
    let small = session.leaf(
        r#"{ file(name: "p", contents: "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n") { id } }"#,
    );
    let entries =
        session.leaf(&format!("{{ directory {{ withPatchFile(patch: {small}) {{ entries }} }} }}"));
    assert_eq!(entries, json!(["new"]));
}
