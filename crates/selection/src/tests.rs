//! Verdicts on paths.

use super::*;

fn selection(include: &[&str], exclude: &[&str]) -> Selection {
    let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    Selection::new(&owned(include), &owned(exclude)).unwrap()
}

/// The verdict on a path, by way of all directories above it.
fn verdict(include: &[&str], exclude: &[&str], path: &str) -> Verdict {
    let selection = selection(include, exclude);
    let mut state = selection.root();
    let file = path.trim_end_matches('/');
    for (end, _) in file.match_indices('/') {
        let (verdict, below) = selection.check(&file.as_bytes()[..end], true, &state);
        if verdict == Verdict::Skip {
            return Verdict::Skip;
        }
        state = below;
    }
    selection.check(file.as_bytes(), path.ends_with('/'), &state).0
}

#[test]
fn verdicts() {
    use Verdict::{Descend, Skip, Take};
    for (include, exclude, path, expected) in [
        (&[][..], &[][..], "a/b.txt", Take),
        // Anchored at the root.
        (&[], &["*.o"], "x.o", Skip),
        (&[], &["*.o"], "a/x.o", Take),
        (&[], &["**/*.o"], "a/b/x.o", Skip),
        (&[], &["**/*.o"], "x.o", Skip),
        (&[], &["a/**"], "a/x", Skip),
        (&[], &["a/**"], "a", Take),
        (&[], &["a/**/b"], "a/b", Skip),
        (&[], &["a/**/b"], "a/x/y/b/c", Skip),
        // A directory and all below it.
        (&[], &["target"], "target/", Skip),
        (&[], &["target/"], "target/debug/x", Skip),
        (&[], &["/target"], "target/debug/x", Skip),
        (&[], &["./target"], "target/debug/x", Skip),
        (&[], &["./x/../target"], "target/debug/x", Skip),
        (&[], &["**/node_modules"], "a/node_modules/x/y", Skip),
        (&[], &["*"], ".hidden/x", Skip),
        // Taking back.
        (&[], &["docs", "!docs/keep"], "docs/", Descend),
        (&[], &["docs", "!docs/keep"], "docs/keep", Take),
        (&[], &["docs", "!docs/keep"], "docs/other", Skip),
        (&[], &["!docs/keep", "docs"], "docs/keep", Skip),
        (&[], &["*", "!b", "b/c"], "b/c", Skip),
        (&[], &["*", "!b", "b/c"], "b/d", Take),
        // Includes.
        (&["src"], &[], "src/", Take),
        (&["src"], &[], "src/a/b", Take),
        (&["src"], &[], "other", Skip),
        (&["src"], &[], "other/", Skip),
        (&["src"], &[], "srcs/", Skip),
        (&["src/a"], &[], "src/", Descend),
        (&["src/a"], &[], "src/b/", Skip),
        (&["src/*/x"], &[], "src/b/", Descend),
        (&["**/*.rs"], &[], "a/b/c.rs", Take),
        (&["**/*.rs"], &[], "a/", Descend),
        (&["."], &[], "a/b", Take),
        (&["", "a"], &[], "b", Skip),
        (&[""], &[], "b", Take),
        (&["*", "!b"], &[], "a/x", Take),
        (&["*", "!b"], &[], "b", Skip),
        // Excludes win.
        (&["src"], &["src/a"], "src/a", Skip),
        (&["src/a"], &["src"], "src/a", Skip),
        // Wildcards stay within a name; braces are plain characters.
        (&[], &["a?c"], "abc", Skip),
        (&[], &["a?c"], "a/c", Take),
        (&[], &["[ab]x"], "bx", Skip),
        (&[], &["[^ab]x"], "bx", Take),
        (&[], &["{a,b}"], "a", Take),
        (&[], &["{a,b}"], "{a,b}", Skip),
        (&[], &["\\*"], "*", Skip),
        (&[], &["\\*"], "a", Take),
    ] {
        let found = verdict(include, exclude, path);
        assert_eq!(found, expected, "include {include:?} exclude {exclude:?}: {path}");
    }
}

#[test]
fn names_need_not_be_utf_8() {
    let selection = selection(&[], &["*.o"]);
    let root = selection.root();
    assert_eq!(selection.check(b"\xff\xfe.o", false, &root).0, Verdict::Skip);
    assert_eq!(selection.check(b"\xff\xfe.c", false, &root).0, Verdict::Take);
    let ignores = Ignores::default().with_file_in(b"", "*.o\n");
    assert!(ignores.ignores(b"\xff.o", false));
}

#[test]
fn a_broken_pattern_is_named() {
    let error = Selection::new(&["a[".to_owned()], &[]).unwrap_err();
    assert!(error.to_string().starts_with("`a[` is no pattern"), "{error}");
    for piece in ["[^a]", "?", "*", "**/"] {
        // Whether the library takes it or not, it does not panic and does not go on for ever.
        if let Err(error) = Selection::new(&[piece.repeat(1000)], &[]) {
            assert!(error.to_string().len() < 300, "{error}");
        }
    }
    let error = Selection::new(&[], &["x".repeat(5000)]).unwrap_err();
    assert_eq!(error, BadPattern::TooLong(5000));
}

#[test]
fn the_nearest_ignore_file_decides() {
    let top = Ignores::default().with_above("a/b", "*.log\n/a/b/out\n!keep.log\n");
    let root = top.with_file_in(b"", "secret\n");
    let deep = root.with_file_in(b"x/y", "!z.log\n/here\n");
    for (rules, path, directory, expected) in [
        (&top, "z.log", false, true),
        (&top, "out", true, true),
        (&top, "x/out", true, false),
        (&root, "keep.log", false, false),
        (&root, "x/secret", true, true),
        (&deep, "x/y/z.log", false, false),
        (&deep, "x/y/here", false, true),
        (&deep, "x/y/q/here", false, false),
        (&deep, "x/y/other.log", false, true),
        (&Ignores::default(), "z.log", false, false),
    ] {
        assert_eq!(rules.ignores(path.as_bytes(), directory), expected, "{path}");
    }
}

#[test]
fn globs_with_alternatives() {
    let matches =
        |glob: &str, path: &str| Glob::with_alternatives(glob).unwrap().is_match(path.as_bytes());
    for (glob, path, expected) in [
        ("*.{rs,toml}", "a.toml", true),
        ("*.{rs,toml}", "a.lock", false),
        ("{a,b/c}/*", "b/c/x", true),
        ("a{,b}", "a", true),
        ("**/*.rs", "a.rs", true),
        ("**/*.rs", "x/y/a.rs", true),
        ("**", "x/y", true),
        ("a/**", "a/b/c", true),
        ("a/**", "a", false),
        ("[a-c]?", "bx", true),
        ("[!a-c]?", "bx", false),
        ("*", ".hidden", true),
        ("*", "a/b", false),
        ("\\{a\\}", "{a}", true),
    ] {
        assert_eq!(matches(glob, path), expected, "{glob} {path}");
    }
    assert!(Glob::with_alternatives("{a").is_err());
}
