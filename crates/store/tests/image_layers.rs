//! Layers of images: written alone, fitted onto what lies below, and taken apart again.

use super::{ROOT, listing, listing_of_mount, meta, new_store, path_of, read};
use rustix::fs::{CWD, XattrFlags, lgetxattr, lsetxattr};
use std::fs;
use std::os::unix::fs::symlink;
use store::{Error, LayerBuilder, Meta, Remove, Snapshot, Store, What};

/// A tree with an unusual directory, a link to a directory and a file.
fn below(store: &Store) -> Snapshot {
    let mut layer = store.new_layer().unwrap();
    layer.directory("", &meta(0o755)).unwrap();
    layer.directory("secret", &Meta { mode: 0o700, uid: 7, gid: 8, ..Meta::default() }).unwrap();
    layer.attributes("secret", &[(b"user.note".to_vec(), b"kept".to_vec())]).unwrap();
    layer.directory("usr", &meta(0o755)).unwrap();
    layer.directory("usr/lib", &meta(0o711)).unwrap();
    layer.symlink("lib", "usr/lib", &meta(0o777)).unwrap();
    layer.file("usr/lib/old", &meta(0o600), &mut &b"old"[..]).unwrap();
    layer.symlink("nowhere", "/not/there", &meta(0o777)).unwrap();
    Snapshot::empty().push(layer.commit().unwrap())
}

fn fitted(
    store: &Store,
    below: &Snapshot,
    write: impl FnOnce(&mut LayerBuilder),
) -> (Snapshot, bool) {
    let mut layer = store.new_layer().unwrap();
    write(&mut layer);
    let mattered = layer.fit(below).unwrap();
    let snapshot = below.push(layer.commit().unwrap());
    // The view and the kernel agree on what is there.
    let mount = store.mount_read_only(&snapshot).unwrap();
    assert_eq!(listing(&store.view(&snapshot)), listing_of_mount(&mount));
    (snapshot, mattered)
}

fn file(layer: &mut LayerBuilder, path: &str, text: &str) {
    layer.file(path, &meta(0o644), &mut text.as_bytes()).unwrap();
}

#[test]
fn a_directory_that_nobody_describes_looks_as_it_did() {
    let (_folder, store) = new_store();
    let below = below(&store);
    let (snapshot, mattered) = fitted(&store, &below, |layer| file(layer, "secret/new/f", "f"));
    assert!(mattered);
    let view = store.view(&snapshot);
    let secret = view.stat("secret").unwrap();
    assert_eq!((secret.mode, secret.uid, secret.gid), (0o700, 7, 8));
    assert_eq!(view.stat("secret/new").unwrap().mode, 0o755);
    let mount = store.mount_read_only(&snapshot).unwrap();
    let mut value = [0; 16];
    let length = lgetxattr(path_of(&mount).join("secret"), "user.note", &mut value).unwrap();
    assert_eq!(&value[..length], b"kept");
}

#[test]
fn a_path_through_a_link_below_goes_where_the_link_leads() {
    let (_folder, store) = new_store();
    let below = below(&store);
    let (snapshot, _) = fitted(&store, &below, |layer| {
        file(layer, "lib/new", "new");
        file(layer, "lib/deep/er/f", "deep");
        file(layer, "nowhere/f", "f");
    });
    let view = store.view(&snapshot);
    assert_eq!(view.read_link("lib").unwrap(), "usr/lib");
    assert_eq!(read(&view, "usr/lib/new"), "new");
    assert_eq!(read(&view, "usr/lib/old"), "old");
    assert_eq!(read(&view, "lib/deep/er/f"), "deep");
    assert_eq!(view.stat("usr/lib").unwrap().mode, 0o711);
    // A link that leads nowhere cannot be followed: it is replaced.
    assert_eq!(read(&view, "nowhere/f"), "f");
}

#[test]
fn a_directory_that_is_described_replaces_a_link() {
    let (_folder, store) = new_store();
    let below = below(&store);
    let (snapshot, _) = fitted(&store, &below, |layer| {
        layer.directory("lib", &meta(0o755)).unwrap();
        file(layer, "lib/new", "new");
    });
    let view = store.view(&snapshot);
    assert!(view.stat_link("lib").unwrap().is_directory());
    assert!(view.stat("usr/lib/new").is_err());
}

#[test]
fn hard_links_to_files_below() {
    let (_folder, store) = new_store();
    let below = below(&store);
    let (snapshot, mattered) = fitted(&store, &below, |layer| {
        layer.directory("", &meta(0o755)).unwrap();
        layer.hard_link_from_anywhere("usr/lib/old", "name").unwrap();
    });
    assert!(mattered);
    assert_eq!(read(&store.view(&snapshot), "name"), "old");
    for missing in ["not/there", "usr"] {
        let mut layer = store.new_layer().unwrap();
        layer.hard_link_from_anywhere(missing, "name").unwrap();
        assert!(layer.fit(&below).is_err(), "{missing}");
    }
}

#[test]
fn a_layer_that_needs_nothing_below_is_the_same_everywhere() {
    let (_folder, store) = new_store();
    let write = |layer: &mut LayerBuilder| {
        layer.directory("a", &meta(0o755)).unwrap();
        file(layer, "a/f", "f");
        layer.hard_link_from_anywhere("a/f", "a/g").unwrap();
    };
    assert!(!fitted(&store, &Snapshot::empty(), write).1);
    assert!(!fitted(&store, &below(&store), write).1);
    // Unless the root itself is unusual, which every layer would say differently.
    let mut layer = store.new_layer().unwrap();
    layer.directory("", &meta(0o555)).unwrap();
    let unusual = Snapshot::empty().push(layer.commit().unwrap());
    assert!(!store.has_usual_root(&unusual).unwrap());
    let (snapshot, mattered) = fitted(&store, &unusual, write);
    assert!(mattered);
    assert_eq!(store.view(&snapshot).stat("").unwrap().mode, 0o555);
}

#[test]
fn what_hides_hides_only_what_is_older() {
    let (_folder, store) = new_store();
    let below = super::tree_of(&store, &["gone", "d/old", "e/old", "f/old"]);
    let (snapshot, _) = fitted(&store, &below, |layer| {
        layer.hide("gone").unwrap();
        file(layer, "d/new", "new");
        layer.hide_contents("d").unwrap();
        layer.directory("e", &meta(0o755)).unwrap();
        file(layer, "e/new", "new");
        layer.hide("e").unwrap();
        file(layer, "f/old", "again");
        layer.hide("f/old").unwrap();
        layer.hide("never/was").unwrap();
    });
    let paths = super::paths(&store, &snapshot);
    let expected = ["d", "d/new", "e", "e/new", "f", "f/old", "never"];
    assert_eq!(paths, expected);
    assert_eq!(read(&store.view(&snapshot), "f/old"), "again");
    let mut layer = store.new_layer().unwrap();
    assert!(matches!(layer.hide_contents(""), Err(Error::OpaqueRoot)));
}

#[test]
fn attributes_of_strangers_are_chosen() {
    let (_folder, store) = new_store();
    let mut layer = store.new_layer().unwrap();
    file(&mut layer, "f", "f");
    let given = |name: &str| (name.as_bytes().to_vec(), b"y".to_vec());
    let names = ["user.x", "trusted.overlay.opaque", "trusted.x", "user.overlay.opaque"];
    layer.attributes("f", &names.map(given)).unwrap();
    let snapshot = Snapshot::empty().push(layer.commit().unwrap());
    let mut changes = store.changes(&snapshot.layers()[0], &Snapshot::empty()).unwrap();
    let change = changes.next_change().unwrap().unwrap();
    assert_eq!(change.attributes, [given("user.x")]);
}

#[test]
fn layers_that_are_kept_apart_are_not_merged() {
    let (_folder, store) = new_store();
    let mut snapshot = Snapshot::empty();
    for number in 0..20 {
        let mut layer = store.new_layer().unwrap();
        layer.keep_apart().unwrap();
        file(&mut layer, &format!("f{number}"), "f");
        snapshot = snapshot.push(layer.commit().unwrap());
    }
    let mut edit = |name: &str| {
        let mut editor = store.edit(&snapshot).unwrap();
        editor.new_file(name, b"x", 0o644, ROOT).unwrap();
        snapshot = editor.commit().unwrap();
        snapshot.layers().len()
    };
    assert_eq!(edit("first"), 21);
    for number in 0..40 {
        let mut editor = store.edit(&snapshot).unwrap();
        editor.new_file(&format!("g{number}"), b"x", 0o644, ROOT).unwrap();
        snapshot = editor.commit().unwrap();
    }
    // Only the layers on top of the twenty have become few.
    assert!((22..40).contains(&snapshot.layers().len()), "{}", snapshot.layers().len());
}

/// What a layer changes, in one line each.
fn shown(store: &Store, snapshot: &Snapshot) -> Vec<String> {
    let (top, rest) = snapshot.layers().split_last().unwrap();
    let below: Snapshot = rest.iter().cloned().collect();
    let mut changes = store.changes(top, &below).unwrap();
    let mut lines = vec![];
    while let Some(mut change) = changes.next_change().unwrap() {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let what = match &mut change.what {
            What::File(file) => format!("file {}", std::io::read_to_string(file).unwrap()),
            What::Directory { opaque } => {
                format!("directory{}", if *opaque { " opaque" } else { "" })
            }
            What::Symlink(target) => format!("link {}", text(target)),
            What::HardLink(first) => format!("same as {}", text(first)),
            What::Whiteout => "gone".to_owned(),
            What::Character { major, minor } => format!("device {major}:{minor}"),
            What::Fifo | What::Block { .. } => "special".to_owned(),
        };
        lines.push(format!("{}: {what}", text(&change.path)));
    }
    lines
}

#[test]
fn changes_of_an_exec_are_found() {
    let (_folder, store) = new_store();
    let base = super::tree_of(&store, &["d/a", "d/b", "e/x", "f"]);
    let scratch = store.begin(&base, &[]).unwrap();
    let root = path_of(scratch.mount());
    fs::remove_file(root.join("d/a")).unwrap();
    fs::remove_dir_all(root.join("e")).unwrap();
    fs::create_dir(root.join("e")).unwrap();
    fs::write(root.join("e/y"), "y").unwrap();
    fs::write(root.join("n"), "n").unwrap();
    fs::hard_link(root.join("n"), root.join("o")).unwrap();
    symlink("n", root.join("s")).unwrap();
    fs::remove_file(root.join("f")).unwrap();
    fs::create_dir(root.join("f")).unwrap();
    // Made and gone again: nothing of it is a change.
    fs::write(root.join("t"), "t").unwrap();
    fs::remove_file(root.join("t")).unwrap();
    lsetxattr(root.join("n"), "user.x", b"1", XattrFlags::empty()).unwrap();
    let device = rustix::fs::makedev(1, 3);
    let mode = rustix::fs::Mode::RUSR;
    let kind = rustix::fs::FileType::CharacterDevice;
    rustix::fs::mknodat(CWD, root.join("z"), kind, mode, device).unwrap();
    let snapshot = scratch.commit().unwrap();
    let expected = [
        "d: directory",
        "d/a: gone",
        "e: directory opaque",
        "e/y: file y",
        "f: directory",
        "n: file n",
        "o: same as n",
        "s: link n",
        "z: device 1:3",
    ];
    assert_eq!(shown(&store, &snapshot), expected);
}

#[test]
fn marks_that_hide_nothing_are_no_changes() {
    let (_folder, store) = new_store();
    let base = super::tree_of(&store, &["a/f"]);
    let mut editor = store.edit(&base).unwrap();
    editor.remove("a", Remove::Directory).unwrap();
    editor.new_file("a/g", b"g", 0o644, ROOT).unwrap();
    let with_base = editor.commit().unwrap();
    assert_eq!(shown(&store, &with_base), ["a: directory opaque", "a/g: file g"]);
    let alone: Snapshot = with_base.layers().last().cloned().into_iter().collect();
    assert_eq!(shown(&store, &alone), ["a: directory", "a/g: file g"]);
}

#[test]
fn a_root_is_a_change_only_if_it_looks_different() {
    let (_folder, store) = new_store();
    let mut layer = store.new_layer().unwrap();
    layer.directory("", &meta(0o700)).unwrap();
    let first = Snapshot::empty().push(layer.commit().unwrap());
    assert_eq!(shown(&store, &first), [": directory"]);
    let mut editor = store.edit(&first).unwrap();
    editor.new_file("f", b"f", 0o644, ROOT).unwrap();
    assert_eq!(shown(&store, &editor.commit().unwrap()), ["f: file f"]);
}
