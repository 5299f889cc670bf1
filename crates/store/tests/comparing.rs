//! Where two trees differ, whatever layers they are made of.

use super::{ROOT, Random, listing, new_store, tree_of};
use std::collections::BTreeMap;
use std::time::Instant;
use store::{Difference, Editor, Owner, Remove, Snapshot, Store};

fn compare(store: &Store, before: &Snapshot, after: &Snapshot) -> Vec<Difference> {
    store.compare(before, after, &|| true).unwrap()
}

/// `+` came, `-` went, `*` changed, `=` looks different.
fn said(differences: &[Difference]) -> Vec<String> {
    let line = |difference: &Difference| {
        let sign = match (&difference.before, &difference.after) {
            (None, _) => '+',
            (_, None) => '-',
            _ if difference.same_contents => '=',
            _ => '*',
        };
        format!("{sign}{}", String::from_utf8_lossy(&difference.path))
    };
    differences.iter().map(line).collect()
}

fn edit(store: &Store, base: &Snapshot, change: impl FnOnce(&mut Editor)) -> Snapshot {
    let mut editor = store.edit(base).unwrap();
    change(&mut editor);
    editor.commit().unwrap()
}

#[test]
fn every_kind_of_difference_is_listed() {
    let (_folder, store) = new_store();
    let before =
        tree_of(&store, &["same", "changed", "mode", "owner", "gone/x/y", "swap/in", "d/f"]);
    let after = edit(&store, &before, |editor| {
        editor.new_file("changed", b"CHANGED", 0o644, ROOT).unwrap();
        editor.new_file("mode", b"mode", 0o755, ROOT).unwrap();
        editor.new_file("owner", b"owner", 0o644, Owner { uid: 7, gid: 0 }).unwrap();
        editor.new_file("same", b"same", 0o644, ROOT).unwrap();
        editor.remove("gone", Remove::Directory).unwrap();
        editor.remove("swap", Remove::Directory).unwrap();
        editor.symlink("same", "swap").unwrap();
        editor.new_file("new/dir/file", b"", 0o644, ROOT).unwrap();
    });
    let expected = [
        "*changed",
        "-gone",
        "-gone/x",
        "-gone/x/y",
        "=mode",
        "+new",
        "+new/dir",
        "+new/dir/file",
        "=owner",
        "*swap",
        "-swap/in",
    ];
    assert_eq!(said(&compare(&store, &before, &after)), expected);
    assert!(compare(&store, &before, &before).is_empty());
    assert!(compare(&store, &after, &after).is_empty());
    // The same trees out of layers that have nothing in common.
    let flat = |snapshot: &Snapshot| -> Snapshot {
        let layer = store.merge(snapshot.layers()).unwrap();
        Snapshot::empty().push(layer)
    };
    assert_eq!(said(&compare(&store, &flat(&before), &flat(&after))), expected);
    assert!(compare(&store, &after, &flat(&after)).is_empty());
}

#[test]
fn what_is_added_and_removed_again_is_no_difference() {
    let (_folder, store) = new_store();
    let before = tree_of(&store, &["a", "d/b"]);
    let with = edit(&store, &before, |editor| {
        editor.new_file("d/new", b"x", 0o644, ROOT).unwrap();
        editor.remove("a", Remove::File).unwrap();
    });
    let again = edit(&store, &with, |editor| {
        editor.remove("d/new", Remove::File).unwrap();
        editor.new_file("a", b"a", 0o644, ROOT).unwrap();
    });
    assert!(compare(&store, &before, &again).is_empty());
}

#[test]
fn a_small_change_of_a_large_tree_is_found_without_walking_it() {
    let (_folder, store) = new_store();
    let mut editor = store.edit(&Snapshot::empty()).unwrap();
    for index in 0..5_000 {
        let path = format!("d{}/f{index}", index % 100);
        editor.new_file(&path, b"x", 0o644, ROOT).unwrap();
    }
    let before = editor.commit().unwrap();
    let after = edit(&store, &before, |editor| {
        editor.new_file("d7/f7", b"y", 0o644, ROOT).unwrap();
    });
    let looked = std::sync::atomic::AtomicU64::new(0);
    let count = || looked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < u64::MAX;
    let began = Instant::now();
    let found = store.compare(&before, &after, &count).unwrap();
    assert_eq!(said(&found), ["*d7/f7"], "after {:?}", began.elapsed());
    assert!(looked.into_inner() < 10, "only what the newest layer touches is looked at");
}

#[test]
fn a_comparison_can_be_stopped() {
    let (_folder, store) = new_store();
    let after = tree_of(&store, &["a", "b"]);
    assert!(store.compare(&Snapshot::empty(), &after, &|| false).is_err());
}

/// A random change of a tree.
fn change(editor: &mut Editor, random: &mut Random) {
    let names = ["a", "b", "c", "a/a", "a/b", "b/c", "a/b/c", "c/c/c"];
    let path = *random.pick(&names);
    // Whatever is in the way is refused, which is fine.
    let _ = match random.below(5) {
        0 => editor.remove(path, Remove::Directory),
        1 => editor.new_directory(path, 0o755, ROOT),
        2 => editor.symlink(names[random.below(names.len())], path),
        _ => editor.new_file(path, random.pick(&["x", "y"]).as_bytes(), 0o644, ROOT),
    };
}

#[test]
fn differences_make_one_tree_of_another() {
    for seed in 1..=60 {
        let mut random = Random(seed * 0x9E37_79B9);
        let (_folder, store) = new_store();
        let grow = |from: &Snapshot, random: &mut Random| {
            let mut snapshot = from.clone();
            for _ in 0..random.below(4) {
                snapshot = edit(&store, &snapshot, |editor| {
                    (0..4).for_each(|_| change(editor, random));
                });
            }
            snapshot
        };
        let base = grow(&Snapshot::empty(), &mut random);
        let (before, after) = (grow(&base, &mut random), grow(&base, &mut random));
        let found = compare(&store, &before, &after);
        let mut expected = BTreeMap::new();
        let (old, new) = (listing(&store.view(&before)), listing(&store.view(&after)));
        for path in old.keys().chain(new.keys()).filter(|path| *path != ".") {
            if old.get(path) != new.get(path) {
                expected.insert(path.clone(), ());
            }
        }
        let paths: Vec<String> =
            found.iter().map(|one| String::from_utf8(one.path.clone()).unwrap()).collect();
        assert_eq!(paths, expected.into_keys().collect::<Vec<_>>(), "seed {seed}");
        let made = edit(&store, &before, |editor| {
            for one in found.iter().rev().filter(|one| one.after.is_none()) {
                editor.remove_entry(&one.path).unwrap();
                editor.remove_empty_directory(&one.path).unwrap();
            }
            let come = found.iter().filter(|one| one.after.is_some());
            let view = store.view(&after);
            editor.bring(&view, b"", come.map(|one| one.path.as_slice())).unwrap();
        });
        assert_eq!(listing(&store.view(&made)), new, "seed {seed}");
        assert!(compare(&store, &made, &after).is_empty(), "seed {seed}");
    }
}

#[test]
fn entries_at_exact_paths() {
    let (_folder, store) = new_store();
    let before = tree_of(&store, &["d/f", "file"]);
    let meta = Editor::new_meta(0o640, Owner { uid: 3, gid: 4 });
    let after = edit(&store, &before, |editor| {
        editor.symlink("d", "link").unwrap();
        assert!(editor.is_blocked(b"link/x").unwrap() && editor.is_blocked(b"file/x/y").unwrap());
        assert!(!editor.is_blocked(b"d/new/x").unwrap() && !editor.is_blocked(b"x").unwrap());
        editor.put_file(b"link/x", b"bytes", &meta).unwrap();
        editor.put_link(b"d", b"elsewhere", &meta).unwrap();
        editor.put_file(b"\xff/odd", b"", &meta).unwrap();
        assert_eq!(editor.contents_at(b"link/x").unwrap().unwrap(), b"bytes");
        assert_eq!(editor.contents_at(b"d").unwrap().unwrap(), b"elsewhere");
        assert_eq!(editor.contents_at(b"none").unwrap(), None);
        editor.remove_empty_directory(b"link").unwrap();
    });
    let view = store.view(&after);
    assert!(view.stat("link").unwrap().is_directory(), "a link in the way is replaced");
    assert_eq!(view.contents_at(b"link/x", 3).unwrap().unwrap(), b"byt");
    assert_eq!(view.read_link("d").unwrap(), "elsewhere");
    assert!(view.entry_at(b"\xff/odd").unwrap().is_some_and(|found| found.mode == 0o640));
    assert!(view.entry_at(b"d/f").unwrap().is_none());
}
