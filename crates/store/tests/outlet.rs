//! Trees on their way out of the store, into directories of the host.

use super::*;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicU64, Ordering};
use store::{Destination, Part, Piece, Timestamp, Watch, Written};

/// Counts, and stops after so many files.
struct Counter {
    files: AtomicU64,
    limit: u64,
}

impl Counter {
    fn new(limit: u64) -> Self {
        Self { files: AtomicU64::new(0), limit }
    }
}

impl Watch for Counter {
    fn passed(&self, files: u64, _: u64) -> bool {
        self.files.fetch_add(files, Ordering::Relaxed) + files < self.limit
    }
}

const ALL: u64 = u64::MAX;

fn destination(path: &Path, wipe: bool) -> Destination {
    let owner = (our_user(), our_group());
    let directory = fs::File::open(path).unwrap().into();
    let path = path.to_str().unwrap().to_owned();
    Destination { directory, path, owner, wipe, made: false, removed: vec![] }
}

fn our_user() -> u32 {
    fs::metadata("/proc/self").unwrap().uid()
}

fn our_group() -> u32 {
    fs::metadata("/proc/self").unwrap().gid()
}

fn write_out(store: &Store, snapshot: &Snapshot, to: Destination) -> Result<Written, store::Error> {
    store.outlet(snapshot, "").unwrap().write(to, &Counter::new(ALL))
}

/// A tree with all sorts of entries.
fn rich_tree(store: &Store) -> Snapshot {
    let mut layer = store.new_layer().unwrap();
    let at = |seconds| Timestamp { seconds, nanoseconds: 9 };
    let meta = |mode, seconds| Meta { mode, uid: 0, gid: 0, mtime: at(seconds) };
    layer.directory("d", &meta(0o750, 11)).unwrap();
    layer.directory("d/read-only", &meta(0o555, 12)).unwrap();
    layer.file("d/read-only/f", &meta(0o400, 13), &mut &b"inside"[..]).unwrap();
    layer.file("a", &meta(0o4755, 14), &mut &b"set-user"[..]).unwrap();
    layer.hard_link("a", "d/second-name").unwrap();
    layer.symlink("link", "/etc/passwd", &meta(0o777, 15)).unwrap();
    layer.file("theirs", &Meta { uid: 7, gid: 7, ..meta(0o6755, 16) }, &mut &b"x"[..]).unwrap();
    layer.file("empty", &meta(0o644, 17), &mut &b""[..]).unwrap();
    Snapshot::empty().push(layer.commit().unwrap())
}

/// Everything in a directory: mode, time and what it holds.
fn shown(path: &Path) -> Vec<String> {
    let mut lines = vec![];
    let mut ahead = vec![path.to_owned()];
    while let Some(next) = ahead.pop() {
        let metadata = next.symlink_metadata().unwrap();
        let held = match metadata.file_type() {
            kind if kind.is_dir() => {
                ahead.extend(fs::read_dir(&next).unwrap().map(|entry| entry.unwrap().path()));
                "directory".to_owned()
            }
            kind if kind.is_symlink() => format!("-> {}", fs::read_link(&next).unwrap().display()),
            _ => format!("= {}", fs::read_to_string(&next).unwrap()),
        };
        if next != path {
            let name = next.strip_prefix(path).unwrap().display().to_string();
            let (mode, time) = (metadata.mode() & 0o7777, metadata.mtime());
            lines.push(format!("{name} {mode:o} {time} {held}"));
        }
    }
    lines.sort();
    lines
}

const RICH: [&str; 8] = [
    "a 4755 14 = set-user",
    "d 750 11 directory",
    "d/read-only 555 12 directory",
    "d/read-only/f 400 13 = inside",
    "d/second-name 4755 14 = set-user",
    "empty 644 17 = ",
    "link 777 15 -> /etc/passwd",
    "theirs 755 16 = x",
];

#[test]
fn a_tree_is_written_as_it_is() {
    let (_folder, store) = new_store();
    let snapshot = rich_tree(&store);
    let target = tempfile::tempdir().unwrap();
    let written = write_out(&store, &snapshot, destination(target.path(), false)).unwrap();
    assert_eq!(written, Written { files: 6, bytes: 15 });
    assert_eq!(shown(target.path()), RICH);
    let inode = |path: &str| fs::metadata(target.path().join(path)).unwrap().ino();
    assert_eq!(inode("a"), inode("d/second-name"));
    // Once more over itself, and as the whole of a directory.
    write_out(&store, &snapshot, destination(target.path(), false)).unwrap();
    write_out(&store, &snapshot, destination(target.path(), true)).unwrap();
    assert_eq!(shown(target.path()), RICH);
    assert_eq!(inode("a"), inode("d/second-name"));
}

#[test]
fn a_new_directory_gets_mode_and_time_too() {
    let (_folder, store) = new_store();
    let snapshot = store.view(&rich_tree(&store)).subtree("d").unwrap();
    let target = tempfile::tempdir().unwrap();
    let to = Destination { made: true, ..destination(target.path(), false) };
    write_out(&store, &snapshot, to).unwrap();
    let metadata = fs::metadata(target.path()).unwrap();
    assert_eq!((metadata.mode() & 0o7777, metadata.mtime()), (0o750, 11));
    assert_eq!(shown(target.path()).len(), 3);
}

#[test]
fn merging_keeps_and_wiping_removes() {
    let (_folder, store) = new_store();
    let snapshot = tree_of(&store, &["d/f", "g"]);
    let target = tempfile::tempdir().unwrap();
    let fill = || {
        for path in ["d/own/deep/x", "own", "h/i"] {
            let path = target.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "own").unwrap();
        }
    };
    let names = || -> Vec<String> {
        let name = |line: &String| line.split(' ').next().unwrap().to_owned();
        shown(target.path()).iter().map(name).collect()
    };
    fill();
    write_out(&store, &snapshot, destination(target.path(), false)).unwrap();
    let all = ["d", "d/f", "d/own", "d/own/deep", "d/own/deep/x", "g", "h", "h/i", "own"];
    assert_eq!(names(), all);
    let removed = vec![b"h".to_vec(), b"d/own/deep".to_vec(), b"none/at/all".to_vec()];
    let to = Destination { removed, ..destination(target.path(), false) };
    write_out(&store, &snapshot, to).unwrap();
    assert_eq!(names(), ["d", "d/f", "d/own", "g", "own"]);
    fill();
    write_out(&store, &snapshot, destination(target.path(), true)).unwrap();
    assert_eq!(names(), ["d", "d/f", "g"]);
}

#[test]
fn kinds_may_change_places() {
    let (_folder, store) = new_store();
    let tree = tree_of(&store, &["file", "directory/f"]);
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("f"), "untouched").unwrap();
    let target = tempfile::tempdir().unwrap();
    fs::create_dir(target.path().join("file")).unwrap();
    symlink(outside.path(), target.path().join("directory")).unwrap();
    write_out(&store, &tree, destination(target.path(), false)).unwrap();
    assert_eq!(shown(target.path()).len(), 3);
    assert_eq!(fs::read_to_string(outside.path().join("f")).unwrap(), "untouched");
    // A directory that holds something is lost only to a wipe.
    fs::remove_file(target.path().join("file")).unwrap();
    fs::create_dir_all(target.path().join("file/own")).unwrap();
    let error = write_out(&store, &tree, destination(target.path(), false)).unwrap_err();
    assert!(error.to_string().contains("cannot replace directory"), "{error}");
    assert!(target.path().join("file/own").is_dir());
    write_out(&store, &tree, destination(target.path(), true)).unwrap();
    assert_eq!(fs::read_to_string(target.path().join("file")).unwrap(), "file");
}

#[test]
fn names_of_any_bytes_and_very_many_files_go_out() {
    let (_folder, store) = new_store();
    let mut editor = store.edit(&Snapshot::empty()).unwrap();
    for number in 0..1000 {
        editor.new_file(&format!("many/{number}"), b"x", 0o644, ROOT).unwrap();
    }
    let base = editor.commit().unwrap();
    let scratch = store.begin(&base, &[]).unwrap();
    let odd = OsStr::from_bytes(b"odd \xff\n");
    fs::write(path_of(scratch.mount()).join("many").join(odd), "odd").unwrap();
    let snapshot = scratch.commit().unwrap();
    let target = tempfile::tempdir().unwrap();
    let written = write_out(&store, &snapshot, destination(target.path(), false)).unwrap();
    assert_eq!(written.files, 1001);
    assert_eq!(fs::read_to_string(target.path().join("many").join(odd)).unwrap(), "odd");
    assert_eq!(fs::read_dir(target.path().join("many")).unwrap().count(), 1001);
}

#[test]
fn what_would_act_on_the_host_is_refused_by_name() {
    let (_folder, store) = new_store();
    let mut layer = store.new_layer().unwrap();
    layer.fifo("d/pipe", &meta(0o644)).unwrap();
    let snapshot = Snapshot::empty().push(layer.commit().unwrap());
    let target = tempfile::tempdir().unwrap();
    let error = write_out(&store, &snapshot, destination(target.path(), false)).unwrap_err();
    assert_eq!(error.to_string(), "`d/pipe` is a named pipe, which is not written to the host");
    let parts = store.outlet(&snapshot, "").unwrap().parts(&mut |_| true);
    assert_eq!(parts.unwrap_err().to_string(), error.to_string());
}

#[test]
fn an_export_that_is_stopped_leaves_whole_files_only() {
    let (_folder, store) = new_store();
    let files: Vec<String> = (0..500).map(|number| format!("{}/{number}", number % 7)).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let snapshot = tree_of(&store, &files);
    let target = tempfile::tempdir().unwrap();
    let outlet = store.outlet(&snapshot, "").unwrap();
    let stopped = outlet.write(destination(target.path(), true), &Counter::new(50)).unwrap_err();
    assert_eq!(stopped.kind(), protocol::ErrorKind::Cancelled);
    let mut count = 0;
    for line in shown(target.path()) {
        let mut words = line.split(' ');
        let (name, mode) = (words.next().unwrap(), words.next().unwrap());
        if line.ends_with("directory") {
            assert_eq!(mode, "755", "{line}");
            continue;
        }
        count += 1;
        assert!(line.ends_with(&format!("= {name}")), "{line}");
    }
    assert!((50..100).contains(&count), "{count}");
}

#[test]
fn the_parts_of_a_tree_are_what_is_written() {
    let (_folder, store) = new_store();
    let snapshot = rich_tree(&store);
    let mut lines = vec![];
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let outlet = store.outlet(&snapshot, "").unwrap();
    outlet
        .parts(&mut |part| {
            lines.push(match part {
                Part::Directory { path, meta } => format!("{} {:o}", text(path), meta.mode),
                Part::Symlink { path, target, .. } => format!("{} -> {}", text(path), text(target)),
                Part::HardLink { path, first } => format!("{} like {}", text(path), text(first)),
                Part::File { path, file } => {
                    let mut held = vec![];
                    let mut take = |piece: Piece<'_>| match piece {
                        Piece::Data(bytes) => {
                            held.extend_from_slice(bytes);
                            true
                        }
                        Piece::Hole(_) => panic!("small files have no holes"),
                    };
                    file.pieces(&mut take).unwrap();
                    format!("{} {:o} = {}", text(path), file.meta().mode, text(held))
                }
            });
            true
        })
        .unwrap();
    let expected = [
        " 755",
        "a 4755 = set-user",
        "d 750",
        "d/read-only 555",
        "d/read-only/f 400 = inside",
        "d/second-name like a",
        "empty 644 = ",
        "link -> /etc/passwd",
        "theirs 755 = x",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn one_file_goes_out_whole() {
    let (_folder, store) = new_store();
    let snapshot = tree_of(&store, &["d/f"]);
    let target = tempfile::tempdir().unwrap();
    let file = store.outlet_file(&snapshot, "d/f").unwrap();
    let to = destination(target.path(), false);
    let written = file.write(to, b"name", &Counter::new(ALL)).unwrap();
    assert_eq!(written, Written { files: 1, bytes: 3 });
    assert_eq!(fs::read_to_string(target.path().join("name")).unwrap(), "d/f");
    assert!(store.outlet_file(&snapshot, "d").is_err());
    assert!(store.outlet(&snapshot, "d/f").is_err());
}

/// Where a file of a store with one layer lies on disk.
fn on_disk(folder: &Path, path: &str) -> std::path::PathBuf {
    let found = fs::read_dir(folder.join("layers")).unwrap().flat_map(|group| {
        fs::read_dir(group.unwrap().path()).unwrap().map(|layer| layer.unwrap().path().join(path))
    });
    found.into_iter().find(|path| path.is_file()).unwrap()
}

#[test]
fn bytes_that_have_changed_do_not_go_out() {
    for (damage, bytes) in [("flipped", "wrong"), ("shorter", "r")] {
        let (folder, store) = new_store();
        let mut layer = store.new_layer().unwrap();
        layer.file("a", &meta(0o644), &mut &b"whole"[..]).unwrap();
        layer.file("b", &meta(0o644), &mut &b"right"[..]).unwrap();
        let snapshot = Snapshot::empty().push(layer.commit().unwrap());
        let remembered = store::Remembered {
            needs: store::Needs::new().snapshot(&snapshot).encode(),
            ..store::Remembered::default()
        };
        store.put_action(protocol::Digest::of(damage.as_bytes()), remembered);
        store.flush().unwrap();
        let outlet = store.outlet(&snapshot, "").unwrap();
        let file = on_disk(folder.path(), "b");
        let time = fs::metadata(&file).unwrap().modified().unwrap();
        fs::write(&file, bytes).unwrap();
        fs::File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
        let target = tempfile::tempdir().unwrap();
        fs::write(target.path().join("b"), "old").unwrap();
        let to = destination(target.path(), false);
        let error = outlet.write(to, &Counter::new(ALL)).unwrap_err();
        assert_eq!(error.kind(), protocol::ErrorKind::Lost, "{damage}: {error}");
        assert_eq!(fs::read_to_string(target.path().join("b")).unwrap(), "old", "{damage}");
        let again = store.outlet(&snapshot, "").err().expect("the layer is given up");
        assert_eq!(again.kind(), protocol::ErrorKind::Lost, "{damage}: {again}");
    }
}

/// Whether two files on the host are one.
fn is_one(folder: &Path, one: &str, other: &str) -> bool {
    let inode = |name: &str| fs::metadata(folder.join(name)).unwrap().ino();
    inode(one) == inode(other)
}

/// Both ways out: written straight, and as parts.
fn second_names(store: &Store, snapshot: &Snapshot) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let mut names = vec![];
    let outlet = store.outlet(snapshot, "").unwrap();
    let mut note = |part: Part| {
        if let Part::HardLink { path, first } = part {
            names.push((text(&path), text(&first)));
        }
        true
    };
    outlet.parts(&mut note).unwrap();
    names
}

#[test]
fn copies_are_files_of_their_own_and_hard_links_stay() {
    let (_folder, store) = new_store();
    let mut layer = store.new_layer().unwrap();
    layer.file("f", &meta(0o644), &mut &b"one"[..]).unwrap();
    layer.hard_link("f", "same").unwrap();
    let source = Snapshot::empty().push(layer.commit().unwrap());
    let view = store.view(&source);
    let options = store::CopyOptions::default();
    // In one layer, in two, and with both copied at once.
    let mut editor = store.edit(&Snapshot::empty()).unwrap();
    editor.copy_file((&view, "f"), "a", &options).unwrap();
    editor.copy_file((&view, "f"), "b", &options).unwrap();
    editor.copy_tree((&view, ""), "both", &options).unwrap();
    let first = editor.commit().unwrap();
    let mut editor = store.edit(&first).unwrap();
    editor.copy_file((&view, "f"), "c", &options).unwrap();
    editor.copy_tree((&view, ""), "again", &options).unwrap();
    let tree = editor.commit().unwrap();
    let merged = Snapshot::empty().push(store.merge(tree.layers()).unwrap());
    let twice = Snapshot::empty().push(store.merge(merged.layers()).unwrap());
    for tree in [tree, merged, twice] {
        let folder = tempfile::tempdir().unwrap();
        write_out(&store, &tree, destination(folder.path(), false)).unwrap();
        let files = ["a", "b", "c", "both/f", "again/f"];
        for (index, one) in files.iter().enumerate() {
            for other in &files[index + 1..] {
                assert!(!is_one(folder.path(), one, other), "{one} and {other} of {tree:?}");
            }
        }
        assert!(is_one(folder.path(), "both/f", "both/same"), "{tree:?}");
        assert!(is_one(folder.path(), "again/f", "again/same"), "{tree:?}");
        let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
        let expected = [pair("again/same", "again/f"), pair("both/same", "both/f")];
        assert_eq!(second_names(&store, &tree), expected, "{tree:?}");
    }
}
