//! Edits that change what entries are: owners, times, contents, and which of them there are.

use super::*;
use store::{CopyOptions, Editor, Timestamp};

const THEIRS: Owner = Owner { uid: 7, gid: 8 };

fn edit(store: &Store, base: &Snapshot, change: impl FnOnce(&mut Editor)) -> Snapshot {
    let mut editor = store.edit(base).unwrap();
    change(&mut editor);
    let snapshot = editor.commit().unwrap();
    let mount = store.mount_read_only(&snapshot).unwrap();
    assert_eq!(listing_of_mount(&mount), listing(&store.view(&snapshot)));
    snapshot
}

/// Directories, a program with rights of its own, a file with two names, a link.
fn tree(store: &Store) -> Snapshot {
    let mut layer = store.new_layer().unwrap();
    layer.directory("d", &meta(0o2750)).unwrap();
    layer.file("d/su", &meta(0o6755), &mut &b"program"[..]).unwrap();
    layer.hard_link("d/su", "d/again").unwrap();
    layer.symlink("d/link", "../outside", &meta(0o777)).unwrap();
    layer.file("outside", &meta(0o644), &mut &b"outside"[..]).unwrap();
    layer.symlink("to-d", "d", &meta(0o777)).unwrap();
    Snapshot::empty().push(layer.commit().unwrap())
}

fn owners(store: &Store, snapshot: &Snapshot) -> Vec<String> {
    let view = store.view(snapshot);
    let mut lines = vec![];
    let mut add = |path: &str, metadata: &store::Metadata| {
        lines.push(format!("{path} {}:{} {:o}", metadata.uid, metadata.gid, metadata.mode));
        Walk::Continue
    };
    add(".", &view.stat("").unwrap());
    view.walk("", &mut add).unwrap();
    lines
}

#[test]
fn an_owner_gets_everything_below_and_nothing_that_links_lead_to() {
    let (_folder, store) = new_store();
    let base = tree(&store);
    let after = edit(&store, &base, |editor| editor.chown("to-d", THEIRS).unwrap());
    let expected = [
        ". 0:0 755",
        "d 7:8 2750",
        "d/again 7:8 755",
        "d/link 7:8 777",
        "d/su 7:8 755",
        "outside 0:0 644",
        "to-d 0:0 777",
    ];
    assert_eq!(owners(&store, &after), expected);
    assert_eq!(store.view(&base).stat("d/su").unwrap().mode, 0o6755, "the base is as it was");
    let mount = store.mount_read_only(&after).unwrap();
    let inode = |name: &str| fs::metadata(path_of(&mount).join(name)).unwrap().ino();
    assert_eq!(inode("d/su"), inode("d/again"), "two names of one file stay that");

    let same = edit(&store, &after, |editor| editor.chown("d", THEIRS).unwrap());
    assert_eq!(same, after, "nothing changes hands, so there is no layer");
    let root = edit(&store, &base, |editor| {
        editor.new_file("d/new", b"new", 0o600, ROOT).unwrap();
        editor.chown("", THEIRS).unwrap();
    });
    assert!(owners(&store, &root).iter().all(|line| line.contains(" 7:8 ")), "{root:?}");
    let empty = edit(&store, &Snapshot::empty(), |editor| editor.chown(".", THEIRS).unwrap());
    assert_eq!(owners(&store, &empty), [". 7:8 755"]);
    let missing = store.edit(&base).unwrap().chown("none", THEIRS).unwrap_err();
    assert_eq!(missing.to_string(), "none: no such file or directory");
}

#[test]
fn times_are_set_below_a_directory_and_not_of_it() {
    let (_folder, store) = new_store();
    let base = tree(&store);
    let time = Timestamp { seconds: 1_000_000_000, nanoseconds: 0 };
    let after = edit(&store, &base, |editor| {
        editor.new_file("d/new", b"new", 0o600, ROOT).unwrap();
        editor.set_times_below("d", time).unwrap();
    });
    let view = store.view(&after);
    for (path, expected) in
        [("d/su", true), ("d/link", true), ("d/new", true), ("d", false), ("outside", false)]
    {
        assert_eq!(view.stat_link(path).unwrap().mtime == time, expected, "{path}");
    }
    assert_eq!(view.stat("d/su").unwrap().mode, 0o6755);
    let all = edit(&store, &base, |editor| editor.set_times_below("", time).unwrap());
    let mut times = vec![];
    let mut add = |_: &str, metadata: &store::Metadata| {
        times.push(metadata.mtime);
        Walk::Continue
    };
    store.view(&all).walk("", &mut add).unwrap();
    assert!(times.len() == 6 && times.iter().all(|found| *found == time), "{times:?}");
    assert_eq!(store.tree_digest(&all).unwrap(), store.tree_digest(&base).unwrap());
    let one = edit(&store, &base, |editor| editor.set_times("d/su", time).unwrap());
    assert_eq!(store.view(&one).stat("d/su").unwrap().mtime, time);
    assert_ne!(store.view(&one).stat("outside").unwrap().mtime, time);
}

#[test]
fn contents_are_replaced_and_the_rest_stays() {
    let (_folder, store) = new_store();
    let mut layer = store.new_layer().unwrap();
    layer.file("f", &Meta { uid: 3, gid: 4, ..meta(0o640) }, &mut &b"before"[..]).unwrap();
    layer.symlink("link", "f", &meta(0o777)).unwrap();
    let base = Snapshot::empty().push(layer.commit().unwrap());
    let copied = edit(&store, &base, |editor| {
        let options = CopyOptions::default();
        editor.copy_file((&store.view(&base), "f"), "twin", &options).unwrap();
    });
    let after = edit(&store, &copied, |editor| {
        assert_eq!(std::io::read_to_string(editor.open("link").unwrap()).unwrap(), "before");
        editor.rewrite("link", b"after").unwrap();
        assert_eq!(std::io::read_to_string(editor.open("f").unwrap()).unwrap(), "after");
        editor.rewrite("f", b"later").unwrap();
    });
    let view = store.view(&after);
    assert_eq!((read(&view, "f"), read(&view, "twin")), ("later".to_owned(), "before".to_owned()));
    let found = view.stat("f").unwrap();
    assert_eq!((found.mode, found.uid, found.gid), (0o640, 3, 4));
    assert_eq!(read(&store.view(&base), "f"), "before");
}

#[test]
fn a_directory_is_taken_with_what_it_is_itself() {
    let (_folder, store) = new_store();
    let mut layer = store.new_layer().unwrap();
    layer.directory("/", &Meta { uid: 5, ..meta(0o711) }).unwrap();
    for path in ["a.txt", "b.o", "sub/c.txt", "sub/d.o"] {
        layer.file(path, &meta(0o644), &mut path.as_bytes()).unwrap();
    }
    let base = Snapshot::empty().push(layer.commit().unwrap());
    let take = |include: &[&str], exclude: &[&str]| {
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        let options = CopyOptions {
            include: owned(include),
            exclude: owned(exclude),
            ..CopyOptions::default()
        };
        edit(&store, &Snapshot::empty(), |editor| {
            editor.take((&store.view(&base), ""), &options).unwrap();
        })
    };
    let all = take(&[], &["nothing"]);
    assert_eq!(store.tree_digest(&all).unwrap(), store.tree_digest(&base).unwrap());
    assert_eq!(paths(&store, &take(&["**/*.txt"], &[])), ["a.txt", "sub", "sub/c.txt"]);
    assert_eq!(paths(&store, &take(&["sub"], &["**/*.o"])), ["sub", "sub/c.txt"]);
    let none = take(&["none"], &[]);
    assert_eq!(owners(&store, &none), [". 5:0 711"]);
}

#[test]
fn digests_say_what_is_there_and_not_how_it_came() {
    let (_folder, store) = new_store();
    let one = tree_of(&store, &["a", "d/b", "d/e/c"]);
    let mut other = tree_of(&store, &["d/e/c", "x"]);
    other = edit(&store, &other, |editor| {
        editor.new_file("d/b", b"wrong", 0o600, ROOT).unwrap();
        editor.remove("x", store::Remove::File).unwrap();
    });
    let scratch = store.begin(&other, &[]).unwrap();
    let root = path_of(scratch.mount());
    fs::write(root.join("a"), "a").unwrap();
    fs::write(root.join("d/b"), "d/b").unwrap();
    for name in ["a", "d/b"] {
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(0o644)).unwrap();
    }
    other = scratch.commit().unwrap();
    let digest = |snapshot: &Snapshot| store.tree_digest(snapshot).unwrap();
    assert_eq!(digest(&one), digest(&other));
    let below = |snapshot: &Snapshot, path: &str| store.view(snapshot).subtree(path).unwrap();
    let moved = edit(&store, &Snapshot::empty(), |editor| {
        let source = (&store.view(&one), "d");
        editor.copy_tree(source, "far/away", &CopyOptions::default()).unwrap();
    });
    assert_eq!(digest(&below(&one, "d")), digest(&below(&moved, "far/away")));
    assert_ne!(digest(&one), digest(&moved));
    let merged = Snapshot::empty().push(store.merge(other.layers()).unwrap());
    assert_eq!(digest(&merged), digest(&one));
    let mode = edit(&store, &one, |editor| editor.chown("a", THEIRS).unwrap());
    assert_ne!(digest(&one), digest(&mode), "owners count");
    // Kept by users: a change of this is a change of what they rely on.
    assert_eq!(
        digest(&Snapshot::empty()).to_string(),
        "7f6c08573c0a49a3483f715d99024c707b3049515a7b08890442d31b65bdfa55"
    );
    assert_eq!(
        digest(&one).to_string(),
        "20542338a21195f4fcb743fcdb5bda5d0176bba3a494398038d9dfe70535dfac"
    );
}
