//! Paths that want out. All resolve inside the tree or are refused by name.

use super::{ROOT, new_store, read};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs;
use store::{Error, Kind, Remove, Snapshot, Store, View, ViewError};

/// A tree full of traps.
fn traps(store: &Store) -> Snapshot {
    let mut editor = store.edit(&Snapshot::empty()).unwrap();
    editor.new_file("etc/passwd", b"inside", 0o644, ROOT).unwrap();
    editor.new_file("d/file", b"file", 0o644, ROOT).unwrap();
    for (link, target) in [
        ("up", "../../../../../etc/passwd"),
        ("out", "/etc/passwd"),
        ("dir-out", "/etc"),
        ("to-proc", "/proc/self/root/etc/passwd"),
        ("loop-a", "loop-b"),
        ("loop-b", "loop-a"),
        ("self", "self"),
        ("dangling", "/nowhere/at/all"),
        ("d/above", ".."),
    ] {
        editor.symlink(target, link).unwrap();
    }
    let snapshot = editor.commit().unwrap();
    let scratch = store.begin(&snapshot, &[]).unwrap();
    let root = super::path_of(scratch.mount());
    let make = |name: &str, kind, device| {
        mknodat(CWD, root.join(name), kind, Mode::RUSR | Mode::WUSR, device).unwrap();
    };
    make("fifo", FileType::Fifo, 0);
    make("null", FileType::CharacterDevice, rustix::fs::makedev(1, 3));
    scratch.commit().unwrap()
}

fn open_error(view: &View, path: &str) -> ViewError {
    view.open(path).err().unwrap_or_else(|| panic!("`{path}` was opened"))
}

#[test]
fn links_and_dots_stay_inside() {
    let (_folder, store) = new_store();
    let view = store.view(&traps(&store));
    for path in [
        "/etc/passwd",
        "../../etc/passwd",
        "/../../../../../../etc/passwd",
        "up",
        "out",
        "dir-out/passwd",
        "d/above/etc/passwd",
        "d/above/above/../etc/./passwd",
        "etc//passwd/",
    ] {
        if let Ok(file) = view.open(path) {
            assert_eq!(std::io::read_to_string(file).unwrap(), "inside", "{path}");
        } else {
            assert_eq!(path, "d/above/above/../etc/./passwd");
        }
    }
    assert_eq!(view.resolve("out", true).unwrap().path, "/etc/passwd");
    assert_eq!(view.resolve("out", false).unwrap().path, "/out");
    assert_eq!(view.stat_link("out").unwrap().kind, Kind::Symlink);
    assert_eq!(view.read_link("out").unwrap(), "/etc/passwd");
    assert!(matches!(view.read_link("d/file"), Err(ViewError::NotALink(_))));
    for path in ["to-proc", "/proc/self/environ", "/dev/null", "/proc/self/fd/0", "dangling"] {
        assert!(matches!(open_error(&view, path), ViewError::NotFound(_)), "{path}");
    }
    for path in ["loop-a", "loop-a/x", "self"] {
        assert!(matches!(open_error(&view, path), ViewError::TooManyLinks(_)), "{path}");
    }
}

#[test]
fn only_regular_files_are_opened() {
    let (_folder, store) = new_store();
    let view = store.view(&traps(&store));
    for path in ["fifo", "null"] {
        assert!(matches!(open_error(&view, path), ViewError::NotRegular(_)), "{path}");
    }
    assert_eq!(view.stat("fifo").unwrap().kind, Kind::Fifo);
    let error = open_error(&view, "d");
    assert_eq!(error.to_string(), "path d is a directory, not a file");
    let error = open_error(&view, "d/file/x");
    assert_eq!(error.to_string(), "path d/file/x is a file, not a directory");
    assert!(matches!(view.read_dir("d/file"), Err(ViewError::NotADirectory(_))));
    let error = open_error(&view, "d/./none");
    assert_eq!(error.to_string(), "d/./none: no such file or directory");
}

#[test]
fn absurd_paths_are_refused_by_name() {
    let (_folder, store) = new_store();
    let snapshot = traps(&store);
    let view = store.view(&snapshot);
    let huge = "a/".repeat(2 * 1024 * 1024);
    let long_name = "n".repeat(256);
    let check = |path: &str, expected: &str| {
        let errors = [
            Error::from(open_error(&view, path)),
            store.edit(&snapshot).unwrap().new_file(path, b"", 0o644, ROOT).unwrap_err(),
            store.edit(&snapshot).unwrap().new_directory(path, 0o755, ROOT).unwrap_err(),
            store.edit(&snapshot).unwrap().symlink("x", path).unwrap_err(),
            store.edit(&snapshot).unwrap().remove(path, Remove::File).unwrap_err(),
            store
                .edit(&snapshot)
                .unwrap()
                .copy_file((&view, "up"), path, &Default::default())
                .unwrap_err(),
            store
                .edit(&snapshot)
                .unwrap()
                .copy_tree((&view, "d"), path, &Default::default())
                .unwrap_err(),
        ];
        for error in errors {
            let text = error.to_string();
            assert!(text.contains(expected) && text.len() < 400, "{text}");
        }
    };
    check(&huge, "longer than 4096 bytes");
    check(&long_name, "File name length exceeds the maximum supported 255 characters");
    check(&format!("d/{long_name}/x"), "File name length exceeds");
    check("d/a\0b", "NUL byte");
}

#[test]
fn writing_through_links_lands_inside() {
    let (_folder, store) = new_store();
    let outside = fs::read("/etc/passwd").unwrap();
    let mut editor = store.edit(&traps(&store)).unwrap();
    editor.new_file("up", b"by up", 0o644, ROOT).unwrap();
    editor.new_file("dir-out/new", b"new", 0o644, ROOT).unwrap();
    editor.new_file("../../../escape", b"caught", 0o644, ROOT).unwrap();
    editor.new_file("dangling", b"made", 0o644, ROOT).unwrap();
    editor.new_directory("dir-out/sub/dir", 0o755, ROOT).unwrap();
    let snapshot = editor.commit().unwrap();
    let view = store.view(&snapshot);
    assert_eq!(read(&view, "etc/passwd"), "by up");
    assert_eq!(read(&view, "etc/new"), "new");
    assert_eq!(read(&view, "escape"), "caught");
    assert_eq!(read(&view, "nowhere/at/all"), "made");
    assert!(view.stat("etc/sub/dir").unwrap().is_directory());
    assert_eq!(view.stat_link("up").unwrap().kind, Kind::Symlink);
    assert_eq!(fs::read("/etc/passwd").unwrap(), outside);
    assert!(!fs::exists("/escape").unwrap() && !fs::exists("/nowhere").unwrap());
}

#[test]
fn archives_cannot_write_outside() {
    let (_folder, store) = new_store();
    let mut layer = store.new_layer().unwrap();
    let meta = super::meta(0o644);
    layer.symlink("out", "/etc", &meta).unwrap();
    layer.file("out/owned", &meta, &mut &b"x"[..]).unwrap();
    layer.file("../../../above", &meta, &mut &b"x"[..]).unwrap();
    layer.symlink("dot", "..", &meta).unwrap();
    layer.file("dot/dot/again", &meta, &mut &b"x"[..]).unwrap();
    assert!(layer.hard_link("/etc/passwd", "passwd").is_err());
    assert!(layer.file("/", &meta, &mut &b"x"[..]).is_err());
    let snapshot = Snapshot::empty().push(layer.commit().unwrap());
    assert_eq!(
        super::paths(&store, &snapshot),
        ["above", "again", "dot", "etc", "etc/owned", "out"]
    );
    assert!(!fs::exists("/etc/owned").unwrap() && !fs::exists("/above").unwrap());
}

#[test]
fn names_of_any_bytes_are_carried_along() {
    use std::os::unix::ffi::OsStrExt;
    let (_folder, store) = new_store();
    let scratch = store.begin(&Snapshot::empty(), &[]).unwrap();
    let name = std::ffi::OsStr::from_bytes(b"d\xff");
    let root = super::path_of(scratch.mount());
    fs::create_dir(root.join(name)).unwrap();
    fs::write(root.join(name).join("\n"), "x").unwrap();
    let snapshot = scratch.commit().unwrap();
    let view = store.view(&snapshot);
    assert_eq!(view.read_dir("").unwrap()[0].name, "d\u{fffd}");
    store.tree_digest(&snapshot).unwrap();
    let mut editor = store.edit(&Snapshot::empty()).unwrap();
    editor.copy_tree((&view, ""), "", &Default::default()).unwrap();
    let copy = editor.commit().unwrap();
    assert_eq!(store.tree_digest(&copy).unwrap(), store.tree_digest(&snapshot).unwrap());
}

#[test]
fn trees_nested_deeper_than_a_path_can_say_do_no_harm() {
    let (_folder, store) = new_store();
    let scratch = store.begin(&Snapshot::empty(), &[]).unwrap();
    let name = "n".repeat(200);
    let open = |at: &std::os::fd::OwnedFd, name: &str| {
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY;
        rustix::fs::openat(at, name, flags, Mode::empty()).unwrap()
    };
    let root = std::os::fd::AsFd::as_fd(scratch.mount()).try_clone_to_owned().unwrap();
    let mut deepest = open(&root, ".");
    for _ in 0..40 {
        rustix::fs::mkdirat(&deepest, name.as_str(), Mode::RWXU).unwrap();
        deepest = open(&deepest, &name);
    }
    drop((deepest, root));
    let mut snapshot = scratch.commit().unwrap();
    let error = store.tree_digest(&snapshot).unwrap_err();
    assert!(error.to_string().contains("longer than 4096 bytes"), "{error}");
    // Merging it is not possible, and the chain goes on without.
    for step in 0..20 {
        let mut editor = store.edit(&snapshot).unwrap();
        editor.new_file(&format!("f{step}"), b"", 0o644, ROOT).unwrap();
        snapshot = editor.commit().unwrap();
    }
    assert_eq!(store.view(&snapshot).read_dir("").unwrap().len(), 21);
}
