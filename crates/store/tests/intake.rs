//! Directories of the host are taken in as they are, and again when something changed.

use super::*;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, symlink};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use store::{HostDirectory, IntakeError, IntakeWatch, TakenIn};

/// A directory of the host, and a store that takes it in.
struct World {
    host: TempDir,
    folder: TempDir,
    store: Store,
}

#[derive(Default)]
struct Counts {
    saw: AtomicU64,
    read: AtomicU64,
    cancelled: AtomicBool,
}

impl IntakeWatch for Counts {
    fn saw(&self, entries: u64) {
        self.saw.fetch_add(entries, Ordering::Relaxed);
    }

    fn read(&self, _bytes: u64) {
        self.read.fetch_add(1, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

impl World {
    fn new() -> Self {
        let (folder, store) = new_store();
        Self { host: tempfile::tempdir().unwrap(), folder, store }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.host.path().join(path)
    }

    fn write(&self, path: &str, contents: &str) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), contents).unwrap();
    }

    fn whole(&self) -> HostDirectory {
        HostDirectory {
            directory: OwnedFd::from(fs::File::open(self.host.path()).unwrap()),
            path: self.host.path().to_str().unwrap().to_owned(),
            include: vec![],
            exclude: vec![],
            ignores: None,
        }
    }

    fn take(&self) -> TakenIn {
        self.store.take_in(&self.whole(), &Counts::default()).unwrap()
    }

    fn paths(&self, source: &HostDirectory) -> Vec<String> {
        let taken = self.store.take_in(source, &Counts::default()).unwrap();
        self.check_digest(&taken);
        paths(&self.store, &taken.snapshot)
    }

    /// Compares the digest with the one that reading everything gives.
    fn check_digest(&self, taken: &TakenIn) {
        // One more layer, so that the digest is not remembered.
        let root = self.store.view(&taken.snapshot).stat("").unwrap();
        let mut layer = self.store.new_layer().unwrap();
        layer.directory("", &meta(root.mode)).unwrap();
        let again = taken.snapshot.push(layer.commit().unwrap());
        assert_eq!(self.store.tree_digest(&again).unwrap(), taken.digest);
    }

    /// What is in the state folder's layers and blobs.
    fn stored(&self) -> Vec<PathBuf> {
        let mut found = vec![];
        for folder in ["layers", "blobs/sha256"] {
            for group in fs::read_dir(self.folder.path().join(folder)).unwrap() {
                let group = fs::read_dir(group.unwrap().path()).unwrap();
                found.extend(group.map(|entry| entry.unwrap().path()));
            }
        }
        found.sort();
        found
    }
}

/// The host's directory as a tree would show it.
fn host_listing(path: &Path) -> Listing {
    let mut lines = Listing::new();
    list_directory(path, "", &mut lines);
    let owned = |line: String| {
        let (mode, rest) = line.split_once(' ').unwrap();
        format!("{mode} 0:0 {}", rest.split_once(' ').unwrap().1)
    };
    lines.into_iter().map(|(path, line)| (path, owned(line))).collect()
}

/// Lets the clock of the file system go on, so that what was written before is not in doubt.
fn settle(world: &World) {
    let began = std::time::SystemTime::now();
    let probe = world.folder.path().join("probe");
    loop {
        fs::write(&probe, "").unwrap();
        let written = fs::metadata(&probe).unwrap().modified().unwrap();
        if written.duration_since(began).is_ok_and(|since| since.as_millis() > 50) {
            return fs::remove_file(&probe).unwrap();
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_tree_is_taken_as_it_is() {
    let world = World::new();
    world.write("a.txt", "hello");
    world.write("b/deep/x", "x");
    world.write("b/empty", "");
    fs::set_permissions(world.path("a.txt"), fs::Permissions::from_mode(0o6751)).unwrap();
    fs::set_permissions(world.path("b"), fs::Permissions::from_mode(0o1770)).unwrap();
    fs::hard_link(world.path("a.txt"), world.path("b/again")).unwrap();
    symlink("../a.txt", world.path("b/link")).unwrap();
    symlink("/nowhere", world.path("dangling")).unwrap();
    fs::create_dir(world.path("none")).unwrap();
    let odd = OsStr::from_bytes(b"b/\xff\xfe");
    fs::write(world.host.path().join(odd), "odd").unwrap();
    rustix::fs::chown(world.path("b/deep/x"), Some(rustix::fs::Uid::from_raw(7)), None).unwrap();
    let taken = world.take();
    world.check_digest(&taken);
    assert!(!taken.unchanged);
    let mount = world.store.mount_read_only(&taken.snapshot).unwrap();
    let root = path_of(&mount);
    assert_eq!(fs::read(root.join(odd)).unwrap(), b"odd");
    fs::remove_file(world.host.path().join(odd)).unwrap();
    let without = world.take();
    world.check_digest(&without);
    let view = world.store.view(&without.snapshot);
    assert_eq!(listing(&view), host_listing(world.host.path()));
    let one = view.stat("a.txt").unwrap();
    let inode = |path: &str| root.join(path).metadata().unwrap().ino();
    assert_eq!(inode("a.txt"), inode("b/again"));
    let modified = world.path("a.txt").metadata().unwrap();
    assert_eq!(one.mtime.seconds, modified.mtime());
    assert_eq!(i64::from(one.mtime.nanoseconds), modified.mtime_nsec());
}

#[test]
fn what_did_not_change_is_neither_read_nor_written() {
    let world = World::new();
    for number in 0..300 {
        world.write(&format!("{}/{number}", number % 7), &number.to_string());
    }
    settle(&world);
    let first = world.take();
    let stored = world.stored();
    let counts = Counts::default();
    let again = world.store.take_in(&world.whole(), &counts).unwrap();
    assert!(again.unchanged);
    assert_eq!((again.digest, &again.snapshot), (first.digest, &first.snapshot));
    assert_eq!(counts.read.into_inner(), 0);
    assert_eq!(counts.saw.into_inner(), 307);
    assert_eq!(world.stored(), stored);
    // Touched, and a directory that had a guest: the same tree.
    fs::File::open(world.path("3/3")).unwrap().set_modified(std::time::SystemTime::now()).unwrap();
    world.write("5/guest", "");
    fs::remove_file(world.path("5/guest")).unwrap();
    let touched = world.take();
    assert_eq!((touched.digest, &touched.snapshot), (first.digest, &first.snapshot));
    // Another file.
    world.write("3/3", "x");
    let counts = Counts::default();
    let changed = world.store.take_in(&world.whole(), &counts).unwrap();
    assert_eq!(counts.read.into_inner(), 1);
    assert_eq!(changed.snapshot.layers().len(), 2);
    assert_ne!(changed.digest, first.digest);
    world.check_digest(&changed);
}

#[test]
fn a_file_that_changes_within_a_tick_of_the_clock_is_noticed() {
    let world = World::new();
    for round in 0..60 {
        let contents = format!("{round:04}");
        world.write("f", &contents);
        let taken = world.take();
        assert_eq!(read(&world.store.view(&taken.snapshot), "f"), contents);
    }
}

/// One random change of a directory.
fn change(world: &World, random: &mut Random, round: usize) {
    let names = ["a", "b", "c/x", "c/y", "c/d/z", "e/f/g/h", "e/k"];
    let path = world.path(names[random.below(names.len())]);
    let occupied = || path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
    let clear = || match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(&path).unwrap(),
        Ok(_) => fs::remove_file(&path).unwrap(),
        Err(_) => {}
    };
    // A file may be where a directory is needed.
    let mut above = path.parent().unwrap();
    while above != world.host.path() {
        if above.symlink_metadata().is_ok_and(|metadata| !metadata.is_dir()) {
            fs::remove_file(above).unwrap();
        }
        above = above.parent().unwrap();
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    match random.below(9) {
        0 => clear(),
        1 => {
            clear();
            symlink(format!("to-{round}"), &path).unwrap();
        }
        2 if !occupied() => {
            clear();
            fs::create_dir_all(path.join("inner/deep")).unwrap();
            fs::write(path.join("inner/file"), round.to_string()).unwrap();
        }
        3 if path.symlink_metadata().is_ok_and(|metadata| !metadata.is_symlink()) => {
            let mode = [0o600, 0o755, 0o4711][random.below(3)] | if occupied() { 0o100 } else { 0 };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        4 if path.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) => {
            let other = world.path("linked");
            let _ = fs::remove_file(&other);
            fs::hard_link(&path, other).unwrap();
        }
        5 => fs::remove_dir_all(
            path.parent().filter(|dir| *dir != world.host.path()).unwrap_or(&path),
        )
        .unwrap_or_default(),
        6 => {
            let mode = [0o700, 0o755, 0o711][random.below(3)];
            fs::set_permissions(world.host.path(), fs::Permissions::from_mode(mode)).unwrap();
        }
        _ => {
            clear();
            fs::write(&path, format!("round {round}")).unwrap();
        }
    }
}

#[test]
fn any_series_of_changes_gives_the_tree_that_is_there() {
    let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let seed = seed.as_nanos() as u64 | 1;
    eprintln!("seed {seed}");
    let mut random = Random(seed);
    let world = World::new();
    for round in 0..150 {
        for _ in 0..=random.below(3) {
            change(&world, &mut random, round);
        }
        let taken = world.take();
        let view = world.store.view(&taken.snapshot);
        assert_eq!(listing(&view), host_listing(world.host.path()), "round {round} seed {seed}");
        world.check_digest(&taken);
        assert!(taken.snapshot.layers().len() < 40, "layers pile up");
        if round % 50 == 0 {
            let mount = world.store.mount_read_only(&taken.snapshot).unwrap();
            assert_eq!(listing_of_mount(&mount), listing(&view), "the kernel agrees");
        }
    }
    let cold = World { host: world.host, ..World::new() };
    let warm = world.store.take_in(&cold.whole(), &Counts::default()).unwrap();
    assert_eq!(cold.take().digest, warm.digest, "seed {seed}");
}

#[test]
fn patterns_and_ignore_files_choose() {
    let world = World::new();
    for path in ["src/main.rs", "src/gen/out.rs", "docs/a.md", "docs/b.txt", "x.log", "other/x"] {
        world.write(path, path);
    }
    let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    for (include, exclude, expected) in [
        (&["**/*.rs"][..], &[][..], &["src", "src/gen", "src/gen/out.rs", "src/main.rs"][..]),
        (&["src"], &["src/gen"], &["src", "src/main.rs"]),
        (&["nothing"], &[], &[]),
        (&["docs", "src"], &["*", "!docs/a.md"], &["docs", "docs/a.md"]),
    ] {
        let (include, exclude) = (list(include), list(exclude));
        assert_eq!(world.paths(&HostDirectory { include, exclude, ..world.whole() }), expected);
    }
    let above = |text: &str| Some(vec![("top/here".to_owned(), text.to_owned())]);
    let ignoring = |text| HostDirectory {
        ignores: above(text),
        exclude: list(&["docs", "src/gen"]),
        ..world.whole()
    };
    let some = ["other", "other/x", "src", "src/main.rs"];
    assert_eq!(world.paths(&ignoring("*.log\n")), some);
    // Rules change, and with them what is there; an ignored directory is not looked into.
    world.write(".gitignore", "other\n!x.log\n");
    assert_eq!(world.paths(&ignoring("*.log\n")), [".gitignore", "src", "src/main.rs", "x.log"]);
    world.write("src/.gitignore", "*\n!*.txt\n");
    assert_eq!(world.paths(&ignoring("*.log\n")), [".gitignore", "src", "x.log"]);
    fs::remove_file(world.path(".gitignore")).unwrap();
    assert_eq!(world.paths(&ignoring("/top/here/other\n")), ["src", "x.log"]);
    let bad = HostDirectory { include: list(&["a["]), ..world.whole() };
    let error = world.store.take_in(&bad, &Counts::default()).unwrap_err();
    assert!(error.to_string().starts_with("`a[` is no pattern"), "{error}");
}

#[test]
fn what_cannot_be_taken_is_named() {
    let world = World::new();
    world.write("d/f", "");
    let pipe = world.path("d/pipe");
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, fifo, 0o600.into(), 0).unwrap();
    let refused =
        |source: &HostDirectory| world.store.take_in(source, &Counts::default()).unwrap_err();
    let error = refused(&world.whole());
    assert_eq!(error.to_string(), "d/pipe: is a named pipe, which cannot be imported");
    let without = HostDirectory { exclude: vec!["**/pipe".into()], ..world.whole() };
    assert_eq!(world.paths(&without), ["d", "d/f"]);
    let whole = HostDirectory {
        directory: OwnedFd::from(fs::File::open(world.folder.path().parent().unwrap()).unwrap()),
        include: vec![world.folder.path().file_name().unwrap().to_str().unwrap().to_owned()],
        ..world.whole()
    };
    let error = refused(&whole).to_string();
    assert!(error.ends_with(": is the store of the engine, which cannot be imported"), "{error}");
    let counts = Counts { cancelled: AtomicBool::new(true), ..Counts::default() };
    let error = world.store.take_in(&without, &counts).unwrap_err();
    assert!(matches!(error, IntakeError::Cancelled), "{error}");
}

#[test]
fn holes_stay_holes_and_long_files_are_whole() {
    let world = World::new();
    let sparse = fs::File::create(world.path("sparse")).unwrap();
    sparse.set_len(64 << 20).unwrap();
    sparse.write_all_at(b"middle", 32 << 20).unwrap();
    let long: Vec<u8> = (0..5_000_000u32).map(|number| (number / 7) as u8).collect();
    fs::write(world.path("long"), &long).unwrap();
    let taken = world.take();
    world.check_digest(&taken);
    let mount = world.store.mount_read_only(&taken.snapshot).unwrap();
    let stored = path_of(&mount).join("sparse").metadata().unwrap();
    assert_eq!(stored.len(), 64 << 20);
    assert!(stored.blocks() * 512 < 1 << 20, "{} blocks", stored.blocks());
    assert!(fs::read(path_of(&mount).join("long")).unwrap() == long);
    sparse.write_all_at(b"later!", 48 << 20).unwrap();
    let taken = world.take();
    world.check_digest(&taken);
}

/// Changes a file once it has been listed, before it is read.
struct Meddler(PathBuf);

impl IntakeWatch for Meddler {
    fn saw(&self, _entries: u64) {
        fs::write(&self.0, "later").unwrap();
    }

    fn read(&self, _bytes: u64) {}

    fn is_cancelled(&self) -> bool {
        false
    }
}

#[test]
fn a_file_that_changes_after_it_was_seen_is_taken_as_it_is_then() {
    let world = World::new();
    world.write("f", "first");
    settle(&world);
    let taken = world.store.take_in(&world.whole(), &Meddler(world.path("f"))).unwrap();
    world.check_digest(&taken);
    assert_eq!(read(&world.store.view(&taken.snapshot), "f"), "later");
}

/// Sets a flag when dropped, so that a thread ends though the test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_log_that_grows_all_the_time_is_taken_whole_or_named() {
    const LINE: &str = "one line of a log\n";
    let world = World::new();
    world.write("log", LINE);
    let stopped = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = Stop(&stopped);
        scope.spawn(|| {
            let log = fs::OpenOptions::new().append(true).open(world.path("log"));
            let mut log = log.unwrap();
            for count in 0.. {
                std::io::Write::write_all(&mut log, LINE.as_bytes()).unwrap();
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                if count % 50 == 0 {
                    std::thread::sleep(std::time::Duration::from_millis(40));
                }
            }
        });
        for _ in 0..20 {
            match world.store.take_in(&world.whole(), &Counts::default()) {
                Ok(taken) => {
                    world.check_digest(&taken);
                    let text = read(&world.store.view(&taken.snapshot), "log");
                    assert_eq!(text, LINE.repeat(text.len() / LINE.len()));
                }
                Err(error) => {
                    assert_eq!(error.to_string(), "log: the file changed while it was read");
                }
            }
        }
    });
}

#[test]
fn what_the_store_has_lost_is_taken_again() {
    let world = World::new();
    world.write("d/f", "contents");
    let first = world.take();
    for blob in world.stored().iter().filter(|path| path.is_file()) {
        let mut bytes = fs::read(blob).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(blob, bytes).unwrap();
    }
    let again = world.take();
    assert_eq!(again.digest, first.digest);
    for blob in world.stored().iter().filter(|path| path.is_file()) {
        fs::remove_file(blob).unwrap();
    }
    assert_eq!(world.take().digest, first.digest);
    drop((first, again));
    for layer in world.stored().iter().filter(|path| path.is_dir()) {
        fs::remove_dir_all(layer).unwrap();
    }
    let again = world.take();
    assert_eq!(read(&world.store.view(&again.snapshot), "d/f"), "contents");
}

#[test]
fn a_big_file_that_changes_again_and_again_does_not_pile_up() {
    let world = World::new();
    world.write("small", "small");
    let mut kept = 0;
    for round in 0..6u8 {
        fs::write(world.path("big"), vec![round; 40 << 20]).unwrap();
        let taken = world.take();
        kept = taken.snapshot.layers().len();
        world.check_digest(&taken);
    }
    assert!(kept < 5, "{kept} layers");
}

#[test]
fn many_entries_in_one_directory_are_shared_among_threads() {
    let world = World::new();
    for number in 0..3000 {
        world.write(&format!("n{number}"), &number.to_string());
    }
    let taken = world.take();
    world.check_digest(&taken);
    assert_eq!(paths(&world.store, &taken.snapshot).len(), 3000);
}

/// What a client sends gives the same tree, wherever it comes from.
#[test]
fn a_tree_that_arrives_in_pieces_is_the_same() {
    let world = World::new();
    world.write("a", "contents");
    world.write("d/big", &"x".repeat(10_000));
    symlink("a", world.path("link")).unwrap();
    let taken = world.take();
    let mode = |path: &str| meta(fs::metadata(world.path(path)).unwrap().mode() & 0o7777);
    let mut inflow = world.store.inflow().unwrap();
    inflow.directory(b"", &mode("")).unwrap();
    let mut file = inflow.file(b"a").unwrap();
    file.write(b"half of an older vers").unwrap();
    file.restart().unwrap();
    file.write(b"conte").unwrap();
    file.write(b"nts").unwrap();
    file.finish(&mode("a")).unwrap();
    inflow.directory(b"d", &mode("d")).unwrap();
    let mut file = inflow.file(b"d/big").unwrap();
    file.write(&[b'x'; 10_000]).unwrap();
    file.finish(&mode("d/big")).unwrap();
    inflow.symlink(b"link", b"a", &meta(0o777)).unwrap();
    for odd in [&b".."[..], b"d/../../x", b"/x", b"d//x", b"link/x", b"nul\0", b""] {
        assert!(inflow.file(odd).is_err(), "{odd:?}");
    }
    let (snapshot, digest) = inflow.finish().unwrap();
    assert_eq!(digest, taken.digest);
    let mut inflow = world.store.inflow().unwrap();
    let mut file = inflow.file(b"\xff").unwrap();
    file.write(&[0; 1 << 20]).unwrap();
    file.finish(&meta(0o600)).unwrap();
    inflow.hard_link(b"\xff", b"again").unwrap();
    let (holes, _) = inflow.finish().unwrap();
    let mount = world.store.mount_read_only(&holes).unwrap();
    let stored = path_of(&mount).join("again").metadata().unwrap();
    assert_eq!((stored.len(), stored.blocks(), stored.nlink()), (1 << 20, 0, 2));
    drop(snapshot);
}
