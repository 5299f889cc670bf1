//! Patches of all sorts, whole and broken.

use super::*;

fn read(text: &str) -> Result<Vec<FilePatch>, Error> {
    let mut reader = Reader::new(text.as_bytes());
    let mut patches = vec![];
    while let Some(patch) = reader.next_patch()? {
        patches.push(patch);
    }
    Ok(patches)
}

fn one(text: &str) -> FilePatch {
    let mut patches = read(text).unwrap();
    assert_eq!(patches.len(), 1, "{patches:?}");
    patches.remove(0)
}

#[test]
fn headers_of_git_say_what_is_done() {
    let patches = read(
        "diff --git a/gone b/gone\ndeleted file mode 100644\nindex e69de29..0000000\n\
         diff --git a/new b/new\nnew file mode 100755\nindex 0000000..e69de29\n\
         diff --git a/x y b/x y\nold mode 100644\nnew mode 100755\n\
         diff --git a/from b/to\nsimilarity index 100%\nrename from from\nrename to to\n\
         diff --git a/one b/two\nsimilarity index 90%\ncopy from one\ncopy to two\n",
    );
    let patches = patches.unwrap();
    let said: Vec<_> = patches
        .iter()
        .map(|patch| {
            let path = |path: &[u8]| String::from_utf8(path.to_vec()).unwrap();
            (patch.action, path(&patch.old_path), path(&patch.path), patch.mode)
        })
        .collect();
    let row = |action, old: &str, new: &str, mode| (action, old.to_owned(), new.to_owned(), mode);
    assert_eq!(
        said,
        [
            row(Action::Delete, "gone", "gone", None),
            row(Action::Create, "new", "new", Some(0o100_755)),
            row(Action::Modify, "x y", "x y", Some(0o100_755)),
            row(Action::Rename, "from", "to", None),
            row(Action::Copy, "one", "two", None),
        ]
    );
    assert!(patches.iter().all(|patch| patch.body == Body::Same));
}

#[test]
fn hunks_hold_lines_with_their_ends() {
    let patch = one(
        "some words\n--- old/f.txt\t2020-01-01\n+++ new/f.txt\n@@ -3,3 +3,3 @@ fn x()\n a\n-b\n\
         +B\n\\ No newline at end of file\n c\n-- \nsignature\n",
    );
    assert_eq!((patch.action, &patch.path[..]), (Action::Modify, &b"f.txt"[..]));
    let Body::Hunks(hunks) = &patch.body else { panic!("{patch:?}") };
    assert_eq!((hunks[0].start, hunks[0].leading, hunks[0].trailing), (3, 1, 1));
    assert_eq!(hunks[0].old, [b"a\n", b"b\n", b"c\n"]);
    assert_eq!(hunks[0].new, [&b"a\n"[..], b"B", b"c\n"]);
}

#[test]
fn a_file_may_come_or_go_without_a_word_of_git() {
    let patch = one("--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+a\n");
    assert_eq!((patch.action, &patch.path[..]), (Action::Create, &b"new"[..]));
    let patch = one("--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n");
    assert_eq!((patch.action, &patch.path[..]), (Action::Delete, &b"old"[..]));
}

#[test]
fn odd_names_are_read() {
    let patch =
        one("diff --git \"a/\\303\\244\" \"b/\\303\\244\"\nold mode 100644\nnew mode 100755\n");
    assert_eq!(patch.path, "ä".as_bytes());
    let patch = one("diff --git a/a b/a b/a b/a\nnew file mode 100644\n");
    assert_eq!(patch.path, b"a b/a");
}

#[test]
fn nothing_is_fine_and_no_change_is_not() {
    assert!(read("").unwrap().is_empty());
    assert!(read("\n \n").unwrap().is_empty());
    assert!(matches!(read("hello\n"), Err(Error::Nothing)));
    assert!(matches!(read("--- dashes\nhello\n"), Err(Error::Nothing)));
}

#[test]
fn paths_never_lead_elsewhere() {
    for path in ["../x", "a/../../x", "/etc/passwd", "x//y", "./x", ""] {
        let text = format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+a\n");
        assert!(matches!(read(&text), Err(Error::Path(_))), "{path}");
        let text = format!("diff --git a/f b/f\nrename from f\nrename to {path}\n");
        assert!(matches!(read(&text), Err(Error::Path(_))), "{path}");
    }
    let text = "--- /dev/null\n+++ /etc/passwd\n@@ -0,0 +1 @@\n+a\n";
    assert!(matches!(read(text), Err(Error::Path(_))));
}

#[test]
fn broken_patches_name_their_line() {
    for (text, line) in [
        ("--- a/f\n+++ b/f\n@@ -1,2 +1 @@\n a\n", 5),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n?a\n", 4),
        ("--- a/f\n+++ b/f\n@@ -x +1 @@\n a\n", 3),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n+a\n+b\n", 5),
        ("@@ -1 +1 @@\n a\n", 1),
        ("diff --git a/f b/f\n--- a/f\nx\n", 3),
        ("diff --git a/f b/f\nnew mode 9x\n", 2),
        ("diff --git x y\nold mode 100644\n", 1),
        ("diff --git a/f b/f\nGIT binary patch\nliteral 5\nA00000\n\n", 6),
        ("--- a/f\n+++ b/f\n@@ -1,99999999999999999999 +1 @@\n a\n", 3),
    ] {
        match read(text) {
            Err(Error::Corrupt { line: found, .. }) => assert_eq!(found, line, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}
