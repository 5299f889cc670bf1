//! What file operations mean.

use super::{ROOT, listing, listing_of_mount, new_store, path_of, paths, read, tree_of};
use std::fs;
use std::os::unix::fs::MetadataExt;
use store::{CopyOptions, Editor, Error, Kind, Owner, Remove, Snapshot, Store, ViewError};

fn edit(store: &Store, base: &Snapshot, change: impl FnOnce(&mut Editor)) -> Snapshot {
    let mut editor = store.edit(base).unwrap();
    change(&mut editor);
    let snapshot = editor.commit().unwrap();
    // Whatever an editor writes, the kernel must see as the view does.
    let mount = store.mount_read_only(&snapshot).unwrap();
    assert_eq!(listing_of_mount(&mount), listing(&store.view(&snapshot)));
    snapshot
}

fn patterns(patterns: &[&str]) -> Vec<String> {
    patterns.iter().map(|pattern| (*pattern).to_owned()).collect()
}

#[test]
fn several_operations_are_one_layer_and_none_is_no_layer() {
    let (folder, store) = new_store();
    let base = tree_of(&store, &["a", "d/b"]);
    let after = edit(&store, &base, |editor| {
        editor.new_file("d/e/new", b"new", 0o600, Owner { uid: 3, gid: 4 }).unwrap();
        editor.new_directory("empty", 0o711, ROOT).unwrap();
        editor.symlink("a", "d/link").unwrap();
        editor.remove("a", Remove::File).unwrap();
    });
    assert_eq!(after.layers().len(), base.layers().len() + 1);
    let expected = ["d", "d/b", "d/e", "d/e/new", "d/link", "empty"];
    assert_eq!(paths(&store, &after), expected);
    let new = store.view(&after).stat("d/e/new").unwrap();
    assert_eq!((new.mode, new.uid, new.gid), (0o600, 3, 4));
    let made = store.view(&after).stat("d/e").unwrap();
    assert_eq!((made.mode, made.uid, made.gid), (0o755, 3, 4));

    let same = edit(&store, &base, |editor| {
        editor.new_directory("d", 0o700, ROOT).unwrap();
        editor.remove("missing", Remove::File).unwrap();
        editor.remove("a/below/a/file", Remove::Directory).unwrap();
        editor.remove("none/*", Remove::File).unwrap();
    });
    assert_eq!(same, base);
    assert_eq!(fs::read_dir(folder.path().join("work")).unwrap().count(), 0);
}

#[test]
fn parents_keep_mode_owner_and_time() {
    let (_folder, store) = new_store();
    let mut layer = store.new_layer().unwrap();
    let mtime = store::Timestamp { seconds: 1_000_000_000, nanoseconds: 5 };
    let meta = store::Meta { mode: 0o1750, uid: 11, gid: 12, mtime };
    for path in ["/", "p", "p/q"] {
        layer.directory(path, &meta).unwrap();
    }
    let base = Snapshot::empty().push(layer.commit().unwrap());
    let after = edit(&store, &base, |editor| {
        editor.new_file("p/q/file", b"", 0o644, ROOT).unwrap();
    });
    for path in ["/", "p", "p/q"] {
        let found = store.view(&after).stat(path).unwrap();
        assert_eq!(
            (found.mode, found.uid, found.gid, found.mtime),
            (0o1750, 11, 12, mtime),
            "{path}"
        );
    }
}

#[test]
fn what_is_removed_and_made_again_does_not_come_back() {
    let (_folder, store) = new_store();
    let base = tree_of(&store, &["d/old", "d/sub/old", "f"]);
    let after = edit(&store, &base, |editor| {
        editor.remove("d", Remove::Directory).unwrap();
        editor.remove("f", Remove::File).unwrap();
        editor.new_directory("d", 0o755, ROOT).unwrap();
        editor.new_file("d/sub/new", b"new", 0o644, ROOT).unwrap();
        editor.new_file("f/inside", b"x", 0o644, ROOT).unwrap();
    });
    assert_eq!(paths(&store, &after), ["d", "d/sub", "d/sub/new", "f", "f/inside"]);
    let again = edit(&store, &after, |editor| {
        editor.new_file("x/y/z", b"", 0o644, ROOT).unwrap();
        editor.remove("x", Remove::Directory).unwrap();
        editor.remove("d/sub", Remove::Directory).unwrap();
        editor.new_file("d/sub", b"now a file", 0o644, ROOT).unwrap();
    });
    assert_eq!(paths(&store, &again), ["d", "d/sub", "f", "f/inside"]);
    assert_eq!(read(&store.view(&again), "d/sub"), "now a file");
}

#[test]
fn operations_refuse_what_is_in_the_way() {
    let (_folder, store) = new_store();
    let base = tree_of(&store, &["file", "d/x"]);
    let mut editor = store.edit(&base).unwrap();
    let text = |result: Result<(), Error>| result.unwrap_err().to_string();
    assert_eq!(text(editor.symlink("t", "file")), "file: file exists");
    assert_eq!(text(editor.symlink("t", "d")), "d: file exists");
    assert_eq!(text(editor.new_file("d", b"", 0o644, ROOT)), "path d is a directory, not a file");
    assert_eq!(
        text(editor.new_directory("file", 0o755, ROOT)),
        "path file is a file, not a directory"
    );
    assert_eq!(
        text(editor.new_file("file/x", b"", 0o644, ROOT)),
        "path file/x is a file, not a directory"
    );
    assert_eq!(text(editor.remove("/", Remove::File)), "path / is a directory, not a file");
    let view = store.view(&base);
    let source = tree_of(&store, &["file/below"]);
    let over = editor.copy_tree((&store.view(&source), ""), "", &CopyOptions::default());
    assert!(matches!(over, Err(Error::OverNonDirectory(_))), "{over:?}");
    let source = tree_of(&store, &["d"]);
    let over = editor.copy_tree((&store.view(&source), ""), "", &CopyOptions::default());
    assert!(matches!(over, Err(Error::OverDirectory(_))), "{over:?}");
    let missing = editor.copy_file((&view, "none"), "x", &CopyOptions::default());
    assert_eq!(text(missing), "none: no such file or directory");
    let wrong = editor.copy_file((&view, "d"), "x", &CopyOptions::default());
    assert_eq!(text(wrong), "path d is a directory, not a file");
    let wrong = editor.copy_tree((&view, "file"), "x", &CopyOptions::default());
    assert_eq!(text(wrong), "path file is a file, not a directory");
    let bad = CopyOptions { exclude: patterns(&["[x"]), ..CopyOptions::default() };
    let bad = editor.copy_tree((&view, "d"), "x", &bad);
    assert!(matches!(bad, Err(Error::Pattern { .. })), "{bad:?}");
}

#[test]
fn removing_takes_links_globs_and_the_whole_root() {
    let (_folder, store) = new_store();
    let base = edit(&store, &tree_of(&store, &["a.o", "b.o", "keep.c", "d/e/x.o", "d/y.c"]), |e| {
        e.symlink("d", "link").unwrap();
        e.new_file("[odd]", b"", 0o644, ROOT).unwrap();
    });
    let check = |pattern: &str, kind: Remove, left: &[&str]| {
        let after = edit(&store, &base, |editor| editor.remove(pattern, kind).unwrap());
        assert_eq!(paths(&store, &after), left, "{pattern}");
    };
    let all = ["[odd]", "a.o", "b.o", "d", "d/e", "d/e/x.o", "d/y.c", "keep.c", "link"];
    let without = |gone: &[&str]| -> Vec<&str> {
        all.iter().copied().filter(|path| !gone.contains(path)).collect()
    };
    check("*.o", Remove::File, &without(&["a.o", "b.o"]));
    check("**/*.o", Remove::File, &without(&["a.o", "b.o", "d/e/x.o"]));
    check("/d/*/x.?", Remove::File, &without(&["d/e/x.o"]));
    check("link", Remove::Directory, &without(&["link"]));
    check("link/y.c", Remove::File, &without(&["d/y.c"]));
    check("link/*.c", Remove::File, &without(&["d/y.c"]));
    check("[odd]", Remove::File, &without(&["[odd]"]));
    check("d/../d/e", Remove::Directory, &without(&["d/e", "d/e/x.o"]));
    check("", Remove::Directory, &[]);
    check("*", Remove::Directory, &[]);
}

#[test]
fn a_copied_file_lands_where_its_destination_says() {
    let (_folder, store) = new_store();
    let source = edit(&store, &tree_of(&store, &["dir/name"]), |editor| {
        editor.symlink("dir/name", "alias").unwrap();
    });
    let source = store.view(&source);
    let base = edit(&store, &tree_of(&store, &["there/x", "file"]), |editor| {
        editor.symlink("there", "to-there").unwrap();
        editor.symlink("file", "to-file").unwrap();
    });
    let named = CopyOptions { name: Some("other".to_owned()), ..CopyOptions::default() };
    for (from, destination, options, expected) in [
        ("dir/name", "", &CopyOptions::default(), "name"),
        ("dir/name", ".", &CopyOptions::default(), "name"),
        ("dir/name", "/", &CopyOptions::default(), "name"),
        ("dir/name", "", &named, "other"),
        ("dir/name", "new", &named, "new"),
        ("dir/name", "there", &CopyOptions::default(), "there/name"),
        ("dir/name", "there/", &CopyOptions::default(), "there/name"),
        ("dir/name", "to-there", &CopyOptions::default(), "there/name"),
        ("dir/name", "to-file", &CopyOptions::default(), "file"),
        ("dir/name", "deep/er/", &CopyOptions::default(), "deep/er/name"),
        ("dir/name", "deep/er", &CopyOptions::default(), "deep/er"),
        ("alias", "there", &CopyOptions::default(), "there/alias"),
    ] {
        let after = edit(&store, &base, |editor| {
            editor.copy_file((&source, from), destination, options).unwrap();
        });
        let view = store.view(&after);
        assert_eq!(read(&view, expected), "dir/name", "{from} to {destination:?}");
        assert_eq!(view.stat_link(expected).unwrap().kind, Kind::File);
    }
}

#[test]
fn copies_share_inodes_unless_metadata_changes() {
    let (_folder, store) = new_store();
    let scratch = store.begin(&tree_of(&store, &["d/a"]), &[]).unwrap();
    let root = path_of(scratch.mount());
    fs::write(root.join("d/h1"), "linked").unwrap();
    fs::hard_link(root.join("d/h1"), root.join("d/h2")).unwrap();
    let source = scratch.commit().unwrap();
    let view = store.view(&source);
    let inode = |snapshot: &Snapshot, path: &str| {
        use std::os::fd::AsFd;
        let file = store.view(snapshot).open(path).unwrap();
        rustix::fs::fstat(file.as_fd()).unwrap().st_ino
    };
    let plain = edit(&store, &Snapshot::empty(), |editor| {
        editor.copy_tree((&view, "d"), "x", &CopyOptions::default()).unwrap();
        editor.copy_file((&view, "d/a"), "single", &CopyOptions::default()).unwrap();
    });
    assert_eq!(inode(&plain, "x/a"), inode(&source, "d/a"));
    assert_ne!(inode(&plain, "single"), inode(&source, "d/a"), "a second copy is another file");
    assert_eq!(inode(&plain, "x/h1"), inode(&source, "d/h2"));

    let options = CopyOptions {
        mode: Some(0o604),
        owner: Some(Owner { uid: 9, gid: 9 }),
        ..Default::default()
    };
    let changed = edit(&store, &Snapshot::empty(), |editor| {
        editor.copy_tree((&view, "d"), "x/y", &options).unwrap();
    });
    assert_ne!(inode(&changed, "x/y/a"), inode(&source, "d/a"));
    assert_eq!(inode(&changed, "x/y/h1"), inode(&changed, "x/y/h2"));
    let changed = store.view(&changed);
    for path in ["x/y", "x/y/a", "x/y/h1"] {
        let found = changed.stat(path).unwrap();
        assert_eq!((found.mode, found.uid, found.gid), (0o604, 9, 9), "{path}");
    }
    assert_eq!(changed.stat("x/y/a").unwrap().mtime, view.stat("d/a").unwrap().mtime);
    assert_eq!(read(&changed, "x/y/h2"), "linked");
    assert_eq!(view.stat("d/a").unwrap().mode, 0o644, "the source must not change");
}

#[test]
fn a_tree_is_merged_into_what_is_there() {
    let (_folder, store) = new_store();
    let source =
        edit(&store, &tree_of(&store, &["s/both", "s/dir/new", "s/dir/sub/x"]), |editor| {
            editor.new_directory("s/kept", 0o700, ROOT).unwrap();
            editor.symlink("/anywhere", "s/link").unwrap();
        });
    let base = tree_of(&store, &["t/both", "t/dir/old", "t/link", "t/kept/file"]);
    let after = edit(&store, &base, |editor| {
        let view = store.view(&source);
        editor.copy_tree((&view, "s"), "/t/", &CopyOptions::default()).unwrap();
    });
    let expected = [
        "t",
        "t/both",
        "t/dir",
        "t/dir/new",
        "t/dir/old",
        "t/dir/sub",
        "t/dir/sub/x",
        "t/kept",
        "t/kept/file",
        "t/link",
    ];
    assert_eq!(paths(&store, &after), expected);
    let view = store.view(&after);
    assert_eq!(read(&view, "t/both"), "s/both");
    assert_eq!(view.stat("t/kept").unwrap().mode, 0o700);
    assert_eq!(view.read_link("t/link").unwrap(), "/anywhere");
    let mut editor = store.edit(&base).unwrap();
    editor.copy_tree((&store.view(&Snapshot::empty()), ""), "t", &CopyOptions::default()).unwrap();
    assert_eq!(editor.commit().unwrap(), base, "nothing to copy changes nothing");
}

#[test]
fn filters_choose_what_is_copied() {
    let (_folder, store) = new_store();
    let files = ["a.go", "b.txt", "src/c.go", "src/deep/d.go", "src/deep/e.txt", "doc/f.txt"];
    let source = edit(&store, &tree_of(&store, &files), |editor| {
        editor.new_directory("void", 0o755, ROOT).unwrap();
    });
    let check = |include: &[&str], exclude: &[&str], expected: &[&str]| {
        let options = CopyOptions {
            include: patterns(include),
            exclude: patterns(exclude),
            ..CopyOptions::default()
        };
        let after = edit(&store, &Snapshot::empty(), |editor| {
            editor.copy_tree((&store.view(&source), ""), "", &options).unwrap();
        });
        assert_eq!(paths(&store, &after), expected, "include {include:?} exclude {exclude:?}");
    };
    let deep = ["a.go", "src", "src/c.go", "src/deep", "src/deep/d.go"];
    check(&["**/*.go"], &[], &deep);
    check(&["**/*.go"], &["src"], &["a.go"]);
    check(&["*.go", "src/deep/"], &["**/*.txt"], &["a.go", "src", "src/deep", "src/deep/d.go"]);
    check(&["src"], &["src/deep"], &["src", "src/c.go"]);
    check(&["void", "nothing"], &[], &["void"]);
    check(&["missing/**"], &[], &[]);
    let rest = ["a.go", "doc", "src", "src/c.go", "src/deep", "src/deep/d.go", "void"];
    check(&[], &["**/*.txt"], &rest);
    check(&[], &["*", "!src", "src/deep"], &["src", "src/c.go"]);
    check(
        &[],
        &["src", "!src/deep/d.go", "doc", "void"],
        &["a.go", "b.txt", "src", "src/deep", "src/deep/d.go"],
    );
    check(&["*.txt"], &["b.txt"], &[]);
}

#[test]
fn gitignore_files_in_the_tree_are_read() {
    let (_folder, store) = new_store();
    let files = ["a.log", "keep.log", "build/x", "sub/a.log", "sub/b.tmp", "sub/build", "sub/c"];
    let source = edit(&store, &tree_of(&store, &files), |editor| {
        let rules = b"*.log\n!keep.log\n# comment\n/build/\n";
        editor.new_file(".gitignore", rules, 0o644, ROOT).unwrap();
        editor.new_file("sub/.gitignore", b"!a.log\n*.tmp\n", 0o644, ROOT).unwrap();
    });
    let options = CopyOptions { gitignore: true, ..CopyOptions::default() };
    let after = edit(&store, &Snapshot::empty(), |editor| {
        editor.copy_tree((&store.view(&source), ""), "", &options).unwrap();
    });
    let expected =
        [".gitignore", "keep.log", "sub", "sub/.gitignore", "sub/a.log", "sub/build", "sub/c"];
    assert_eq!(paths(&store, &after), expected);
}

#[test]
fn subtrees_are_trees_of_their_own() {
    let (_folder, store) = new_store();
    let base = edit(&store, &tree_of(&store, &["d/e/f", "d/g"]), |editor| {
        editor.symlink("/d/e", "link").unwrap();
    });
    let part = store.view(&base).subtree("link").unwrap();
    assert_eq!(paths(&store, &part), ["f"]);
    let changed = edit(&store, &part, |editor| {
        editor.new_file("h", b"h", 0o644, ROOT).unwrap();
    });
    assert_eq!(paths(&store, &changed), ["f", "h"]);
    assert_eq!(paths(&store, &base), ["d", "d/e", "d/e/f", "d/g", "link"]);
    let error = store.view(&base).subtree("d/g").unwrap_err();
    assert!(matches!(error, ViewError::NotADirectory(_)), "{error}");
    assert_eq!(store.view(&base).subtree("/").unwrap(), base);
    assert_eq!(store.view(&Snapshot::empty()).subtree("").unwrap(), Snapshot::empty());
    let mount = store.mount_read_only(&part).unwrap();
    assert_eq!(fs::metadata(path_of(&mount).join("f")).unwrap().size(), 5);
}
