//! Files that a search looks at, and paths that match a pattern.

use super::*;
use std::io::Read;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use store::{Error, FileVisitor, Visit, VisitedFile};

/// Notes every file with its contents.
#[derive(Default)]
struct Notes {
    files: Mutex<Vec<String>>,
    looks: AtomicUsize,
    /// Wants no path that begins with this.
    unwanted: Option<&'static str>,
}

impl FileVisitor for Notes {
    fn wants(&self, path: &[u8]) -> bool {
        self.unwanted.is_none_or(|start| !path.starts_with(start.as_bytes()))
    }

    fn look(&self, files: &mut dyn Iterator<Item = VisitedFile>) -> Result<(), Error> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        for file in files {
            let (path, mut file) = file?;
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            let path = String::from_utf8(path).unwrap();
            assert!(path == text || path.contains("ignore"), "{path} holds {text}");
            self.files.lock().unwrap().push(path);
        }
        Ok(())
    }
}

fn visited(store: &Store, snapshot: &Snapshot, visit: &Visit) -> Vec<String> {
    let notes = Notes::default();
    store.view(snapshot).visit_files(visit, &notes).unwrap();
    let mut files = notes.files.into_inner().unwrap();
    files.sort();
    files
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// A tree whose directories come from several layers, with things that are no files.
fn layered(store: &Store) -> Snapshot {
    let base = tree_of(store, &["a", "gone", "d/old", "d/e/deep", "only/below", ".hidden/x"]);
    let mut editor = store.edit(&base).unwrap();
    editor.new_file("d/new", b"d/new", 0o644, ROOT).unwrap();
    editor.new_file("top/.dot", b"top/.dot", 0o644, ROOT).unwrap();
    editor.remove("gone", store::Remove::File).unwrap();
    editor.symlink("/d", "to-d").unwrap();
    editor.symlink("../a", "d/to-a").unwrap();
    editor.symlink("loop", "loop").unwrap();
    editor.commit().unwrap()
}

#[test]
fn every_file_of_the_merged_tree_is_visited_once() {
    let (_folder, store) = new_store();
    let tree = layered(&store);
    let all = [".hidden/x", "a", "d/e/deep", "d/new", "d/old", "only/below", "top/.dot"];
    assert_eq!(visited(&store, &tree, &Visit::default()), all);
    let skip_hidden = Visit { skip_hidden: true, ..Visit::default() };
    assert_eq!(
        visited(&store, &tree, &skip_hidden),
        ["a", "d/e/deep", "d/new", "d/old", "only/below"]
    );
    let globs = Visit { globs: words(&["d/**", "!old"]), ..Visit::default() };
    assert_eq!(visited(&store, &tree, &globs), ["d/e/deep", "d/new"]);
    assert_eq!(visited(&store, &Snapshot::empty(), &Visit::default()), Vec::<String>::new());
}

#[test]
fn paths_are_resolved_inside_the_tree() {
    let (_folder, store) = new_store();
    let tree = layered(&store);
    let at = |paths: &[&str]| {
        visited(
            &store,
            &tree,
            &Visit { paths: words(paths), skip_hidden: true, ..Visit::default() },
        )
    };
    assert_eq!(at(&["to-d"]), ["d/e/deep", "d/new", "d/old"]);
    assert_eq!(at(&["/d/to-a", "../../only"]), ["a", "only/below"]);
    assert_eq!(at(&[".hidden"]), [".hidden/x"], "what is named is looked at");
    assert_eq!(at(&["top/.dot"]), ["top/.dot"]);
    let view = store.view(&tree);
    let refused = |path: &str| {
        let visit = Visit { paths: words(&[path]), ..Visit::default() };
        view.visit_files(&visit, &Notes::default()).unwrap_err().to_string()
    };
    assert_eq!(refused("none"), "none: no such file or directory");
    assert!(refused("loop").contains("too many levels of symbolic links"));
    assert!(refused(&"n".repeat(300)).contains("File name length"));
    let bad = Visit { globs: words(&["a["]), ..Visit::default() };
    let bad = view.visit_files(&bad, &Notes::default()).unwrap_err();
    assert!(bad.to_string().starts_with("`a[` is no pattern"), "{bad}");
}

#[test]
fn ignore_files_count_where_they_are_asked_for() {
    let (_folder, store) = new_store();
    let mut editor = store.edit(&Snapshot::empty()).unwrap();
    for (path, text) in [
        (".gitignore", "*.log\nbuild/\n"),
        ("sub/.gitignore", "!keep.log\n"),
        ("sub/.ignore", "by-ignore\n!forced.log\n"),
        ("sub/.rgignore", "by-rg\n"),
    ] {
        editor.new_file(path, text.as_bytes(), 0o644, ROOT).unwrap();
    }
    for path in [
        "a.log",
        "a",
        "build/x",
        "sub/keep.log",
        "sub/forced.log",
        "sub/b.log",
        "sub/by-ignore",
        "sub/by-rg",
        "sub/c",
    ] {
        editor.new_file(path, path.as_bytes(), 0o644, ROOT).unwrap();
    }
    let tree = editor.commit().unwrap();
    let skip = Visit { skip_ignored: true, skip_hidden: true, ..Visit::default() };
    assert_eq!(visited(&store, &tree, &skip), ["a", "sub/c", "sub/forced.log", "sub/keep.log"]);
    let below = Visit { paths: words(&["sub"]), ..skip.clone() };
    assert_eq!(visited(&store, &tree, &below), ["sub/c", "sub/forced.log", "sub/keep.log"]);
    let chosen = Visit { globs: words(&["*.log"]), ..skip };
    let logs = ["a.log", "sub/b.log", "sub/forced.log", "sub/keep.log"];
    assert_eq!(visited(&store, &tree, &chosen), logs, "what a glob chooses is not ignored");
    assert_eq!(visited(&store, &tree, &Visit::default()).len(), 13);
}

#[test]
fn what_is_not_wanted_is_not_opened() {
    let (_folder, store) = new_store();
    let names: Vec<String> = (0..1000).map(|number| format!("many/{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let tree = tree_of(&store, &[&names[..], &["z/a"]].concat());
    assert_eq!(visited(&store, &tree, &Visit::default()).len(), 1001);
    let notes = Notes { unwanted: Some("many"), ..Notes::default() };
    store.view(&tree).visit_files(&Visit::default(), &notes).unwrap();
    assert_eq!(notes.files.into_inner().unwrap(), ["z/a"]);
    let notes = Notes { unwanted: Some(""), ..Notes::default() };
    store.view(&tree).visit_files(&Visit::default(), &notes).unwrap();
    assert_eq!(notes.looks.into_inner(), 0);
}

#[test]
fn globs_over_the_merged_tree() {
    let (_folder, store) = new_store();
    let tree = layered(&store);
    let view = store.view(&tree);
    let check = |pattern: &str, expected: &[&str]| {
        let found: Vec<String> =
            view.glob(pattern).unwrap().into_iter().map(|entry| entry.name).collect();
        assert_eq!(found, expected, "{pattern}");
    };
    check("*", &[".hidden", "a", "d", "loop", "only", "to-d", "top"]);
    check("d/*", &["d/e", "d/new", "d/old", "d/to-a"]);
    check("/d/./n*", &["d/new"]);
    check("**/*e*", &[".hidden", "d/e", "d/e/deep", "d/new", "only/below"]);
    check("d/**", &["d/e", "d/e/deep", "d/new", "d/old", "d/to-a"]);
    check("{a,d/{old,new}}", &["a", "d/new", "d/old"]);
    check("[!a-o]*", &[".hidden", "to-d", "top"]);
    check("d/e/deep", &["d/e/deep"]);
    check("to-d/*", &[]);
    check("gone", &[]);
    check("", &[]);
    check(&"n".repeat(300), &[]);
    check("\0", &[]);
    assert!(view.glob("a[").is_err());
}
