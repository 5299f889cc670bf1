//! The rules of a landing, on a real file system.

use super::*;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use tempfile::TempDir;

const PLAIN: Meta = Meta { mode: 0o640, modified: (1_000_000, 7) };

fn landing(folder: &TempDir, others: Others) -> Landing {
    let root = fs::File::open(folder.path()).unwrap();
    Landing::new(root.into(), folder.path(), others)
}

/// A landing for each way to make files: without a name, and under one of our own.
fn both_ways(others: Others) -> impl Iterator<Item = (TempDir, Landing)> {
    [true, false].into_iter().map(move |nameless| {
        let folder = tempfile::tempdir().unwrap();
        let landing = landing(&folder, others);
        landing.nameless.store(nameless, Ordering::Relaxed);
        (folder, landing)
    })
}

fn write(place: &Place<'_>, name: &str, text: &str) -> Result<(), Error> {
    let unfinished = place.begin(name.as_bytes())?;
    unfinished.file().write_all(text.as_bytes()).unwrap();
    unfinished.finish(&PLAIN)
}

fn names_in(folder: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn text(folder: &TempDir, path: &str) -> String {
    fs::read_to_string(folder.path().join(path)).unwrap()
}

#[test]
fn a_file_appears_when_it_is_complete() {
    for (folder, landing) in both_ways(Others::Keep) {
        let place = landing.place(b"").unwrap();
        fs::write(folder.path().join("f"), "old").unwrap();
        let unfinished = place.begin(b"f").unwrap();
        unfinished.file().write_all(b"new").unwrap();
        assert_eq!(text(&folder, "f"), "old");
        unfinished.finish(&PLAIN).unwrap();
        assert_eq!(text(&folder, "f"), "new");
        let metadata = fs::metadata(folder.path().join("f")).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o7777, 0o640);
        assert_eq!((metadata.mtime(), metadata.mtime_nsec()), (1_000_000, 7));
        drop(place.begin(b"g").unwrap());
        assert_eq!(names_in(&folder), ["f"]);
    }
}

#[test]
fn a_link_is_replaced_and_never_followed() {
    for (folder, landing) in both_ways(Others::Keep) {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("victim"), "untouched").unwrap();
        symlink(outside.path().join("victim"), folder.path().join("file")).unwrap();
        symlink(outside.path(), folder.path().join("directory")).unwrap();
        symlink(outside.path(), folder.path().join("link")).unwrap();
        let place = landing.place(b"").unwrap();
        assert!(matches!(landing.place(b"directory"), Err(Error::Io { .. })));
        write(&place, "file", "mine").unwrap();
        assert_eq!(place.directory(b"directory").unwrap(), Made::New);
        place.symlink(b"link", b"elsewhere", &PLAIN).unwrap();
        landing.remove(b"link/victim").unwrap();
        assert_eq!(fs::read_to_string(outside.path().join("victim")).unwrap(), "untouched");
        assert_eq!(text(&folder, "file"), "mine");
        assert!(folder.path().join("directory").symlink_metadata().unwrap().is_dir());
        assert_eq!(fs::read_link(folder.path().join("link")).unwrap(), Path::new("elsewhere"));
        assert_eq!(names_in(&folder), ["directory", "file", "link"]);
    }
}

#[test]
fn a_directory_takes_the_place_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let landing = landing(&folder, Others::Keep);
    let place = landing.place(b"").unwrap();
    fs::write(folder.path().join("d"), "file").unwrap();
    assert_eq!(place.directory(b"d").unwrap(), Made::New);
    assert_eq!(place.directory(b"d").unwrap(), Made::Before);
    let inside = landing.place(b"d").unwrap();
    write(&inside, "f", "deep").unwrap();
    landing.finish_directory(b"d", &Meta { mode: 0o550, modified: (5, 0) }).unwrap();
    let metadata = fs::metadata(folder.path().join("d")).unwrap();
    assert_eq!((metadata.mode() & 0o7777, metadata.mtime()), (0o550, 5));
}

#[test]
fn a_directory_with_entries_is_not_lost_to_a_file() {
    for (folder, landing) in both_ways(Others::Keep) {
        let place = landing.place(b"").unwrap();
        fs::create_dir_all(folder.path().join("full/own")).unwrap();
        fs::create_dir(folder.path().join("empty")).unwrap();
        write(&place, "empty", "file").unwrap();
        let error = write(&place, "full", "file").unwrap_err();
        assert!(matches!(error, Error::InTheWay(_)), "{error}");
        assert!(error.hint().unwrap().contains("wipe"));
        assert!(matches!(place.symlink(b"full", b"x", &PLAIN), Err(Error::InTheWay(_))));
        assert_eq!(names_in(&folder), ["empty", "full"]);
        assert!(folder.path().join("full/own").is_dir());
    }
    for (folder, landing) in both_ways(Others::Remove) {
        let place = landing.place(b"").unwrap();
        fs::create_dir_all(folder.path().join("full/own")).unwrap();
        write(&place, "full", "file").unwrap();
        assert_eq!(text(&folder, "full"), "file");
        assert_eq!(names_in(&folder), ["full"]);
    }
}

#[test]
fn names_of_one_file_share_it() {
    for (folder, landing) in both_ways(Others::Keep) {
        let place = landing.place(b"").unwrap();
        write(&place, "a", "one").unwrap();
        place.directory(b"d").unwrap();
        let below = landing.place(b"d").unwrap();
        below.hard_link(b"b", &place, b"a").unwrap();
        // Over another file, and over a name of the very same file.
        fs::write(folder.path().join("c"), "other").unwrap();
        place.hard_link(b"c", &place, b"a").unwrap();
        place.hard_link(b"c", &place, b"a").unwrap();
        let inode = |path: &str| fs::metadata(folder.path().join(path)).unwrap().ino();
        assert_eq!(inode("a"), inode("d/b"));
        assert_eq!(inode("a"), inode("c"));
        assert_eq!(names_in(&folder), ["a", "c", "d"]);
        place.duplicate(b"e", &place, b"a").unwrap();
        assert_ne!(inode("a"), inode("e"));
        assert_eq!(text(&folder, "e"), "one");
    }
}

#[test]
fn names_that_lead_away_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let landing = landing(&folder, Others::Keep);
    let place = landing.place(b"").unwrap();
    for name in ["", ".", "..", "a/b", "/", "a\0b", &"n".repeat(256)] {
        let name = name.as_bytes();
        assert!(matches!(place.begin(name).err(), Some(Error::BadName(_))), "{name:?}");
        assert!(matches!(place.directory(name), Err(Error::BadName(_))), "{name:?}");
        assert!(matches!(place.remove(name), Err(Error::BadName(_))), "{name:?}");
    }
    for path in ["..", "/etc", "a/../b", "a//b"] {
        assert!(
            matches!(
                landing.place(path.as_bytes()).err(),
                Some(Error::BadName(_)) | Some(Error::Io { .. })
            ),
            "{path}"
        );
        assert!(matches!(landing.remove(path.as_bytes()), Err(Error::BadName(_))), "{path}");
    }
    assert!(names_in(&folder).is_empty());
}

#[test]
fn removing_goes_deep_and_stays_inside() {
    let folder = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("victim"), "untouched").unwrap();
    let landing = landing(&folder, Others::Keep);
    let mut open = fs::File::open(folder.path()).map(OwnedFd::from).unwrap();
    // Longer than any path that the system takes.
    let name = "deeper".repeat(10);
    for _ in 0..100 {
        rustix::fs::mkdirat(&open, &name, Mode::RWXU).unwrap();
        open = open_directory(&open, name.as_bytes()).unwrap();
    }
    rustix::fs::symlinkat(outside.path(), &open, "out").unwrap();
    landing.remove(name.as_bytes()).unwrap();
    landing.remove(name.as_bytes()).unwrap();
    landing.remove(b"nothing/here").unwrap();
    assert!(names_in(&folder).is_empty());
    assert_eq!(fs::read_to_string(outside.path().join("victim")).unwrap(), "untouched");
}

#[test]
fn emptied_directories_go_and_others_stay() {
    let folder = tempfile::tempdir().unwrap();
    let landing = landing(&folder, Others::Keep);
    fs::create_dir_all(folder.path().join("a/empty")).unwrap();
    fs::create_dir_all(folder.path().join("full/of")).unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    for path in [&b"a/empty/"[..], b"a/", b"full/", b"file/", b"none/", b"file/below/"] {
        landing.remove(path).unwrap();
    }
    assert_eq!(names_in(&folder), ["file", "full"]);
    assert!(landing.remove(b"../x/").is_err() && landing.remove(b"/").is_err());
}

#[test]
fn holes_stay_holes_and_sizes_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let landing = landing(&folder, Others::Keep);
    let place = landing.place(b"").unwrap();
    let source = tempfile::tempfile().unwrap();
    source.set_len(64 << 20).unwrap();
    source.write_all_at(b"middle", 32 << 20).unwrap();
    let moved = |_| true;
    let mut copying = Copying::new(&landing, &moved);
    let unfinished = place.begin(b"sparse").unwrap();
    let mut seen = 0;
    let mut count = |bytes: &[u8]| seen += bytes.len();
    assert!(copying.run(&source, &unfinished, 64 << 20, Some(&mut count)).unwrap());
    assert_eq!(seen, 64 << 20);
    unfinished.finish(&PLAIN).unwrap();
    let metadata = fs::metadata(folder.path().join("sparse")).unwrap();
    assert_eq!(metadata.len(), 64 << 20);
    assert!(metadata.blocks() < 2048, "{} blocks", metadata.blocks());
    let copy = fs::File::open(folder.path().join("sparse")).unwrap();
    let mut middle = [0; 6];
    copy.read_exact_at(&mut middle, 32 << 20).unwrap();
    assert_eq!(&middle, b"middle");
    for (held, said) in [(10, 9), (10, 11), (100_000, 99_999), (100_000, 100_001)] {
        let source = tempfile::tempfile().unwrap();
        source.write_all_at(&vec![1; held], 0).unwrap();
        let unfinished = place.begin(b"other").unwrap();
        let error = copying.run(&source, &unfinished, said, None).unwrap_err();
        assert!(error.to_string().contains("other"), "{error}");
    }
    assert_eq!(names_in(&folder), ["sparse"]);
}

#[test]
fn who_watches_can_stop_a_copy() {
    let folder = tempfile::tempdir().unwrap();
    let landing = landing(&folder, Others::Keep);
    let place = landing.place(b"").unwrap();
    let source = tempfile::tempfile().unwrap();
    source.write_all_at(&vec![1; 1 << 20], 0).unwrap();
    let moved = |_| false;
    let unfinished = place.begin(b"f").unwrap();
    let stopped = Copying::new(&landing, &moved).run(&source, &unfinished, 1 << 20, None);
    assert!(matches!(stopped, Err(Error::Stopped(_))));
    drop(unfinished);
    assert!(names_in(&folder).is_empty());
}
