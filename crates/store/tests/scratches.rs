//! What an exec sees and leaves.

use super::{Store, listing, listing_of_mount, new_store, path_of, paths, read};
use protocol::Digest;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use store::{Error, Laid, Mount, Owner, Snapshot, Target, TargetKind, ViewError};

fn directory(path: &str) -> Target {
    Target { path: path.to_owned(), kind: TargetKind::Directory }
}

fn file(path: &str) -> Target {
    Target { path: path.to_owned(), kind: TargetKind::File }
}

#[test]
fn changes_become_one_layer_and_nothing_stays_behind() {
    let (folder, store) = new_store();
    let base = super::tree_of(&store, &["etc/one", "etc/two", "gone/x"]);
    let scratch = store.begin(&base, &[]).unwrap();
    let root = path_of(scratch.mount());
    fs::write(root.join("etc/one"), "changed").unwrap();
    fs::remove_dir_all(root.join("gone")).unwrap();
    symlink("one", root.join("etc/link")).unwrap();
    let after = scratch.commit().unwrap();
    assert_eq!(after.layers().len(), base.layers().len() + 1);
    let view = store.view(&after);
    assert_eq!(read(&view, "/etc/link"), "changed");
    assert_eq!(paths(&store, &after), ["etc", "etc/link", "etc/one", "etc/two"]);
    assert_eq!(paths(&store, &base).len(), 5, "the base must not change");
    assert_eq!(folders(folder.path()).len(), 1, "for the next");
    drop(store);
    assert_eq!(folders(folder.path()), [""; 0]);
}

#[test]
fn doing_nothing_gives_the_base_and_dropping_gives_nothing() {
    let (folder, store) = new_store();
    let base = super::tree_of(&store, &["a"]);
    assert_eq!(store.begin(&base, &[]).unwrap().commit().unwrap(), base);
    let empty = store.begin(&Snapshot::empty(), &[]).unwrap();
    assert_eq!(fs::read_dir(path_of(empty.mount())).unwrap().count(), 0);
    assert_eq!(empty.commit().unwrap(), Snapshot::empty());
    let scratch = store.begin(&base, &[]).unwrap();
    fs::write(path_of(scratch.mount()).join("b"), "b").unwrap();
    let before = folders(folder.path());
    drop(scratch);
    assert_eq!(folders(folder.path()).len(), before.len() - 1);
}

/// The folders of execs that run, have run or are to run.
fn folders(state: &Path) -> Vec<String> {
    let folders = fs::read_dir(state.join("work")).unwrap();
    folders.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn folders_are_used_again_and_nothing_stays_in_them() {
    let (folder, store) = new_store();
    let mut tree = super::tree_of(&store, &["a"]);
    let mut first = None;
    for round in 0..5 {
        let scratch = store.begin(&tree, &[]).unwrap();
        let root = path_of(scratch.mount());
        fs::create_dir(root.join(format!("d{round}"))).unwrap();
        // A copy up goes through the kernel's own folder.
        fs::write(root.join("a"), round.to_string()).unwrap();
        fs::set_permissions(&root, fs::Permissions::from_mode(0o700 + round)).unwrap();
        tree = scratch.commit().unwrap();
        store.begin_ahead();
        // One that changes nothing leaves its layer where it is.
        assert_eq!(store.begin(&tree, &[]).unwrap().commit().unwrap(), tree);
        store.begin_ahead();
        let known = folders(folder.path());
        assert_eq!(known.len(), 1, "{known:?}");
        assert_eq!(*first.get_or_insert_with(|| known.clone()), known);
    }
    assert_eq!(read(&store.view(&tree), "/a"), "4");
    assert_eq!(paths(&store, &tree), ["a", "d0", "d1", "d2", "d3", "d4"]);
}

#[test]
fn folders_with_something_in_them_are_not_used_again() {
    let (folder, store) = new_store();
    let tree = super::tree_of(&store, &["a"]);
    assert_eq!(store.begin(&tree, &[]).unwrap().commit().unwrap(), tree);
    let [used] = &folders(folder.path())[..] else { panic!("one was used") };
    let odd = folder.path().join("work").join(used).join("work/work/odd");
    fs::write(&odd, "").unwrap();
    store.begin_ahead();
    assert!(!odd.exists());
    let ahead = folders(folder.path());
    assert!(ahead.len() == 1 && !ahead.contains(used), "{used} {ahead:?}");
    let scratch = store.begin(&tree, &[]).unwrap();
    assert_eq!(listing_of_mount(scratch.mount()), listing(&store.view(&tree)));
}

#[test]
fn a_change_of_the_root_itself_counts() {
    let (_folder, store) = new_store();
    let base = super::tree_of(&store, &["a"]);
    let scratch = store.begin(&base, &[]).unwrap();
    fs::set_permissions(path_of(scratch.mount()), fs::Permissions::from_mode(0o700)).unwrap();
    let after = scratch.commit().unwrap();
    assert_eq!(store.view(&after).stat("/").unwrap().mode, 0o700);
    let next = store.begin(&after, &[]).unwrap();
    let root = path_of(next.mount());
    assert_eq!(fs::metadata(&root).unwrap().mode() & 0o7777, 0o700);
    fs::write(root.join("b"), "b").unwrap();
    assert_eq!(store.view(&next.commit().unwrap()).stat("/").unwrap().mode, 0o700);
}

/// A file of the engine's that adds a line to what the tree has.
fn laid(path: &str, line: &'static str) -> Target {
    let make = move |old: Option<&[u8]>| {
        let old = old.unwrap_or_default();
        (!old.ends_with(line.as_bytes())).then(|| [old, line.as_bytes()].concat())
    };
    let laid = Laid { digest: Digest::of(line.as_bytes()), make: Arc::new(make) };
    Target { path: path.to_owned(), kind: TargetKind::Laid(laid) }
}

#[test]
fn a_laid_file_is_seen_and_leaves_no_trace_unless_it_is_replaced() {
    let (_folder, store) = new_store();
    let mut editor = store.edit(&Snapshot::empty()).unwrap();
    editor.new_directory("etc/real", 0o755, Owner { uid: 0, gid: 0 }).unwrap();
    editor.new_file("etc/real/trusted", b"own\n", 0o640, Owner { uid: 7, gid: 8 }).unwrap();
    editor.symlink("real", "etc/certs").unwrap();
    let base = editor.commit().unwrap();
    let targets = [
        laid("/etc/certs/trusted", "host\n"),
        laid("/new/place/trusted", "host\n"),
        laid("/etc", "x"),
    ];
    let scratch = store.begin(&base, &targets).unwrap();
    let root = path_of(scratch.mount());
    assert_eq!(fs::read_to_string(root.join("etc/real/trusted")).unwrap(), "own\nhost\n");
    assert_eq!(fs::read_to_string(root.join("new/place/trusted")).unwrap(), "host\n");
    assert_eq!(fs::metadata(root.join("etc/real/trusted")).unwrap().uid(), 7);
    fs::write(root.join("other"), "").unwrap();
    let after = scratch.commit().unwrap();
    assert_eq!(read(&store.view(&after), "/etc/real/trusted"), "own\n");
    assert!(!paths(&store, &after).contains(&"new".to_owned()));
    let scratch = store.begin(&after, &targets).unwrap();
    let root = path_of(scratch.mount());
    fs::write(root.join("etc/fresh"), "replaced\nhost\n").unwrap();
    fs::rename(root.join("etc/fresh"), root.join("etc/real/trusted")).unwrap();
    let after = scratch.commit().unwrap();
    assert_eq!(read(&store.view(&after), "/etc/real/trusted"), "replaced\nhost\n");
    let scratch = store.begin(&after, &targets).unwrap();
    let seen = fs::read_to_string(path_of(scratch.mount()).join("etc/real/trusted")).unwrap();
    assert_eq!(seen, "replaced\nhost\n", "there is nothing to add");
}

#[test]
fn missing_mount_points_are_there_and_leave_no_trace() {
    let (_folder, store) = new_store();
    let mut editor = store.edit(&Snapshot::empty()).unwrap();
    editor.new_directory("etc", 0o750, Owner { uid: 7, gid: 8 }).unwrap();
    editor.symlink("/run/real/resolv.conf", "etc/resolv.conf").unwrap();
    editor.symlink("/private", "var").unwrap();
    let base = editor.commit().unwrap();
    let targets = [
        directory("/proc"),
        file("/etc/hosts"),
        file("/etc/resolv.conf"),
        directory("/var/cache/x"),
        directory("/private"),
    ];
    let scratch = store.begin(&base, &targets).unwrap();
    let root = path_of(scratch.mount());
    for (path, is_directory) in [
        ("proc", true),
        ("etc/hosts", false),
        ("run/real/resolv.conf", false),
        ("private/cache/x", true),
    ] {
        assert_eq!(fs::metadata(root.join(path)).unwrap().is_dir(), is_directory, "{path}");
    }
    let etc = fs::metadata(root.join("etc")).unwrap();
    assert_eq!((etc.mode() & 0o7777, etc.uid(), etc.gid()), (0o750, 7, 8));
    assert_eq!(scratch.commit().unwrap(), base);

    let scratch = store.begin(&base, &targets).unwrap();
    fs::write(path_of(scratch.mount()).join("etc/new"), "new").unwrap();
    let after = scratch.commit().unwrap();
    assert_eq!(paths(&store, &after), ["etc", "etc/new", "etc/resolv.conf", "var"]);
    let etc = store.view(&after).stat("etc").unwrap();
    assert_eq!((etc.mode, etc.uid, etc.gid), (0o750, 7, 8));
}

#[test]
fn mount_points_follow_what_earlier_execs_did_to_their_surroundings() {
    let (_folder, store) = new_store();
    let targets = [file("/etc/hosts"), directory("/cache")];
    let mut snapshot = super::tree_of(&store, &["etc/passwd"]);
    let mut exec = |change: &dyn Fn(&std::path::Path)| {
        let scratch = store.begin(&snapshot, &targets).unwrap();
        let root = path_of(scratch.mount());
        assert!(root.join("etc/hosts").is_file() && root.join("cache").is_dir());
        change(&root);
        snapshot = scratch.commit().unwrap();
        paths(&store, &snapshot)
    };
    assert_eq!(exec(&|root| fs::write(root.join("x"), "x").unwrap()), ["etc", "etc/passwd", "x"]);
    let closed = fs::Permissions::from_mode(0o700);
    exec(&|root| fs::set_permissions(root.join("etc"), closed.clone()).unwrap());
    exec(&|root| {
        let mode = fs::metadata(root.join("etc")).unwrap().mode() & 0o7777;
        assert_eq!(mode, 0o700, "the stub must show what the tree has become");
        fs::write(root.join("etc/new"), "new").unwrap();
    });
    exec(&|root| {
        assert_eq!(fs::read_to_string(root.join("etc/new")).unwrap(), "new");
        fs::remove_file(root.join("etc/passwd")).unwrap();
    });
    let left = exec(&|root| {
        assert!(!root.join("etc/passwd").exists());
        fs::write(root.join("cache/file"), "part of the tree").unwrap();
    });
    assert_eq!(left, ["cache", "cache/file", "etc", "etc/new", "x"]);
    assert_eq!(store.view(&snapshot).stat("etc").unwrap().mode, 0o700);
}

#[test]
fn a_mount_point_of_the_wrong_kind_is_named() {
    let (_folder, store) = new_store();
    let base = super::tree_of(&store, &["file", "directory/x"]);
    let error = store.begin(&base, &[directory("/file")]).err().unwrap();
    assert!(matches!(error, Error::View(ViewError::NotADirectory(_))), "{error}");
    let error = store.begin(&base, &[file("/directory")]).err().unwrap();
    assert!(matches!(error, Error::View(ViewError::NotAFile(_))), "{error}");
}

#[test]
fn read_only_mounts_cannot_be_written_and_show_no_whiteouts() {
    let (_folder, store) = new_store();
    let mut layer = store.new_layer().unwrap();
    layer.whiteout("gone").unwrap();
    layer.whiteout("d/gone").unwrap();
    layer.file("d/x", &super::meta(0o644), &mut &b"x"[..]).unwrap();
    let lone = Snapshot::empty().push(layer.commit().unwrap());
    for snapshot in [Snapshot::empty(), lone, super::tree_of(&store, &["a", "b/c"])] {
        let mount = store.mount_read_only(&snapshot).unwrap();
        assert_eq!(listing_of_mount(&mount), listing(&store.view(&snapshot)));
        assert!(fs::write(path_of(&mount).join("new"), "x").is_err());
    }
}

#[test]
fn a_part_of_a_mount_can_be_mounted() {
    let (_folder, store) = new_store();
    let mut editor = store.edit(&super::tree_of(&store, &["d/file"])).unwrap();
    editor.symlink("/d/file", "link").unwrap();
    let scratch = store.begin(&editor.commit().unwrap(), &[]).unwrap();
    let part = scratch.mount_at("link").unwrap();
    fs::write(path_of(&part), "written").unwrap();
    part.set_read_only().unwrap();
    assert!(fs::write(path_of(&part), "more").is_err());
    let after = scratch.commit().unwrap();
    assert_eq!(read(&store.view(&after), "d/file"), "written");
}

#[test]
fn a_missing_layer_is_an_error_not_a_smaller_tree() {
    let (folder, store) = new_store();
    let mut editor = store.edit(&super::tree_of(&store, &["a"])).unwrap();
    editor.new_file("b", b"b", 0o644, Owner::default()).unwrap();
    let snapshot = editor.commit().unwrap();
    assert!(store.has(&snapshot));
    let id = snapshot.layers()[0].id.to_string();
    fs::remove_dir_all(folder.path().join(format!("layers/{}/{id}", &id[..2]))).unwrap();
    assert!(!store.has(&snapshot));
    let errors = [
        store.begin(&snapshot, &[]).err(),
        store.edit(&snapshot).err(),
        store.mount_read_only(&snapshot).err(),
        store.tree_digest(&snapshot).err(),
        store.merge(snapshot.layers()).err(),
    ];
    for error in errors {
        assert!(matches!(error, Some(Error::MissingLayer(_))), "{error:?}");
    }
}

#[test]
fn volumes_keep_what_is_written_and_begin_with_their_seed() {
    let (_folder, store) = new_store();
    let first = store.cache_volume("key").unwrap();
    assert!(first.is_new());
    let mode = fs::metadata(first.path()).unwrap().mode() & 0o7777;
    assert_eq!(mode, 0o755);
    fs::write(path_of(&first.mount().unwrap()).join("kept"), "x").unwrap();
    let second = store.cache_volume("key").unwrap();
    assert!(!second.is_new());
    assert_eq!(fs::read_to_string(path_of(&second.mount().unwrap()).join("kept")).unwrap(), "x");

    let seed = super::tree_of(&store, &["a", "d/b"]);
    let owner = Owner { uid: 5, gid: 6 };
    let seeded = store.seeded_cache_volume(("other", 0), &store.view(&seed), Some(owner)).unwrap();
    let held = seeded.mount().unwrap();
    let mount = path_of(&held);
    assert_eq!(fs::metadata(&mount).unwrap().uid(), 5);
    assert_eq!(fs::metadata(mount.join("d/b")).unwrap().gid(), 6);
    fs::write(mount.join("a"), "changed").unwrap();
    assert_eq!(read(&store.view(&seed), "a"), "a", "layers must not change with a volume");
    let again = store.seeded_cache_volume(("other", 0), &store.view(&seed), None).unwrap();
    assert!(!again.is_new());
    assert_eq!(fs::read_to_string(again.path().join("a")).unwrap(), "changed");
}

#[test]
fn bind_mounts_of_files_and_nothing_in_the_mount_table() {
    let (folder, store): (_, Store) = new_store();
    let path = folder.path().join("hosts");
    fs::write(&path, "127.0.0.1").unwrap();
    let mount = Mount::bind_file(&path).unwrap();
    assert_eq!(fs::read_to_string(path_of(&mount)).unwrap(), "127.0.0.1");
    let _scratch = store.begin(&super::tree_of(&store, &["a"]), &[]).unwrap();
    let table = fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!table.contains(folder.path().to_str().unwrap()), "{table}");
    let temporary = store.temporary().unwrap();
    let place = temporary.path().to_owned();
    fs::write(place.join("x"), "x").unwrap();
    drop(temporary);
    assert!(!place.exists());
}
