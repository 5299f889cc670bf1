//! What things take, what may stay, and what goes while others use it.

use super::{new_store, path_of, read, tree_of};
use protocol::Digest;
use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use store::{
    BlobId, Error, Laid, Limits, Needs, Owner, Remembered, Snapshot, Store, Target, TargetKind,
};

/// Remembers a tree under a name.
fn remember(store: &Store, name: &str, snapshot: &Snapshot) -> Digest {
    remember_with(store, name, Needs::new().snapshot(snapshot))
}

fn remember_with(store: &Store, name: &str, needs: Needs) -> Digest {
    let key = Digest::of(name.as_bytes());
    let (value, label, needs) = (name.into(), name.to_owned(), needs.encode());
    store.put_action(key, Remembered { value, kind: "test", label, needs });
    key
}

/// A tree of one file of this size.
fn tree_with(store: &Store, name: &str, size: usize) -> Snapshot {
    let mut editor = store.edit(&Snapshot::empty()).unwrap();
    editor.new_file(name, &vec![7; size], 0o644, Owner::default()).unwrap();
    editor.commit().unwrap()
}

/// Bytes of everything below a folder, each inode once.
fn disk_usage(folder: &Path, seen: &mut HashSet<u64>) -> u64 {
    let found = folder.symlink_metadata().unwrap();
    let own = if seen.insert(found.ino()) { found.blocks() * 512 } else { 0 };
    if !found.is_dir() {
        return own;
    }
    let entries = folder.read_dir().unwrap();
    own + entries.map(|entry| disk_usage(&entry.unwrap().path(), seen)).sum::<u64>()
}

/// Bytes of all layers, manifests left out.
fn layers_usage(store: &Store) -> u64 {
    let mut seen = HashSet::new();
    let folders = store.dir().join("layers").read_dir().unwrap();
    let entries = folders.flat_map(|folder| folder.unwrap().path().read_dir().unwrap());
    let layers = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    layers.map(|layer| disk_usage(&layer, &mut seen)).sum()
}

fn labels(store: &Store) -> Vec<String> {
    let mut labels: Vec<String> =
        store.entries().into_iter().filter(|e| e.kind == "test").map(|e| e.label).collect();
    labels.sort();
    labels
}

#[test]
fn every_inode_counts_once_however_often_it_is_merged_and_linked() {
    let (_folder, store) = new_store();
    let mut snapshot = tree_with(&store, "large", 300_000);
    remember(&store, "first", &snapshot);
    // Enough steps for a merge of a merge, and each links what the others have.
    for step in 0..40 {
        let view = store.view(&snapshot);
        let mut editor = store.edit(&snapshot).unwrap();
        let options = store::CopyOptions::default();
        editor.copy_file((&view, "large"), "copies/large", &options).unwrap();
        editor.new_file(&format!("own/{step}"), b"x", 0o644, Owner::default()).unwrap();
        snapshot = editor.commit().unwrap();
        remember(&store, &format!("step {step:02}"), &snapshot);
    }
    let entries = store.entries();
    let total: u64 = entries.iter().map(|entry| entry.bytes).sum();
    assert_eq!(total, layers_usage(&store));
    // A merge makes two files of the two names, which takes their bytes twice.
    assert!(total < 4 * 300_000 + 1_000_000, "{total}");
    assert!(entries[0].bytes >= 300_000, "the oldest is charged for what all share");
    assert!(entries.iter().all(|entry| entry.kind == "test"), "{entries:?}");
    // A restart finds the same figures.
    store.flush().unwrap();
    let dir = store.dir().to_owned();
    drop((snapshot, store));
    let store = Store::open(&dir).unwrap();
    assert_eq!(store.entries().iter().map(|entry| entry.bytes).sum::<u64>(), total);
}

#[test]
fn what_nothing_needs_goes_and_the_rest_stays() {
    let (_folder, store) = new_store();
    let kept = tree_of(&store, &["kept"]);
    let dropped = tree_of(&store, &["dropped"]);
    let held = tree_of(&store, &["held"]);
    let (needed, unneeded) = (store.put_blob(b"needed").unwrap(), BlobId::of(b"unneeded"));
    remember_with(&store, "entry", Needs::new().snapshot(&kept).blob(&needed));
    store.put_blob(b"unneeded").unwrap();
    drop(store.pin_blob(&unneeded).unwrap());
    let layers: Vec<_> = dropped.layers().iter().map(|layer| layer.id).collect();
    drop(dropped);
    let by_name: Snapshot = layers.into_iter().map(store::LayerRef::whole).collect();
    assert!(store.has(&by_name));
    let collected = store.collect(&Limits::NONE);
    assert!(collected.bytes > 0 && collected.entries == 0, "{collected:?}");
    assert!(!store.has(&by_name) && store.pin(&by_name).is_none());
    assert!(store.has(&kept) && store.has(&held));
    assert!(store.pin_blob(&needed).is_some() && store.pin_blob(&unneeded).is_none());
    assert_eq!(read(&store.view(&held), "held"), "held");
    assert_eq!(std::fs::read_dir(store.dir().join("trash")).unwrap().count(), 0);
}

#[test]
fn the_least_recently_used_goes_first_with_what_only_it_needs() {
    let (_folder, store) = new_store();
    for name in ["a", "b", "c"] {
        let base = tree_with(&store, "base", 200_000);
        let mut editor = store.edit(&base).unwrap();
        editor.new_file("top", name.as_bytes(), 0o644, Owner::default()).unwrap();
        remember(&store, &format!("{name} base"), &base);
        remember(&store, &format!("{name} top"), &editor.commit().unwrap());
    }
    store.flush().unwrap();
    // The oldest is used again: its base too, which the top needs.
    assert!(store.action(&Digest::of(b"a top")).is_some());
    let used: u64 = store.entries().iter().map(|entry| entry.bytes).sum();
    let limits = Limits { max_used: used, target: used, ..Limits::NONE };
    assert!(labels(&store).len() == 6);
    store.collect(&limits);
    assert_eq!(labels(&store), ["a base", "a top", "c base", "c top"], "`b` had to go");
    let nothing_reserved = Limits { max_used: 0, target: 0, reserved: 0, ..Limits::NONE };
    store.collect(&Limits { reserved: u64::MAX, ..nothing_reserved });
    assert_eq!(labels(&store).len(), 4, "the reserve is not collected");
    store.collect(&nothing_reserved);
    assert!(labels(&store).is_empty());
    assert_eq!(layers_usage(&store), 0);
}

#[test]
fn what_is_in_use_is_not_collected_and_its_result_stays() {
    let (_folder, store) = new_store();
    let held = tree_of(&store, &["held"]);
    let key = remember(&store, "held", &held);
    remember(&store, "free", &tree_of(&store, &["free"]));
    remember_with(&store, "needs nothing", Needs::new());
    let in_use: Vec<bool> = store.entries().iter().map(|entry| entry.in_use).collect();
    assert_eq!(in_use, [true, false, false]);
    store.collect(&Limits::NOTHING);
    assert_eq!(labels(&store), ["held"]);
    assert!(store.action(&key).is_some() && store.pin(&held).is_some());
    let view = store.view(&held);
    drop(held);
    store.collect(&Limits::NOTHING);
    assert_eq!(read(&view, "held"), "held", "a view holds what it shows");
}

#[test]
fn collecting_never_takes_what_a_concurrent_hit_has_pinned() {
    let (_folder, store) = new_store();
    let names: Vec<String> = (0..8).map(|number| format!("file {number}")).collect();
    // Each side works until the other has had its share, however the machine divides its cores.
    let collections = AtomicUsize::new(0);
    let worker = || {
        let contended = || collections.load(Ordering::Relaxed) > 20;
        (0..100_000)
            .take_while(|round| *round < 400 || !contended())
            .filter(|round| !hit_or_make(&store, &names[round % names.len()]))
            .count()
    };
    std::thread::scope(|scope| {
        let workers = [scope.spawn(worker), scope.spawn(worker), scope.spawn(worker)];
        while !workers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            store.collect(&Limits::NOTHING);
            collections.fetch_add(1, Ordering::Relaxed);
        }
        let misses: usize = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
        assert!(misses > names.len(), "nothing was collected between two uses: {misses} misses");
    });
    store.collect(&Limits::NOTHING);
    assert_eq!(layers_usage(&store), 0);
}

/// Whether the tree of this name was there; else it is now.
fn hit_or_make(store: &Store, name: &str) -> bool {
    let recorded =
        store.action(&Digest::of(name.as_bytes())).map(|it| String::from_utf8(it).unwrap());
    let snapshot: Option<Snapshot> = recorded.map(|layers| {
        layers.split(' ').map(|id| store::LayerRef::whole(id.parse().unwrap())).collect()
    });
    match snapshot.and_then(|snapshot| store.pin(&snapshot)) {
        Some(pinned) => {
            assert_eq!(read(&store.view(&pinned), name), name);
            true
        }
        None => {
            make(store, name);
            false
        }
    }
}

/// Makes a tree and remembers it by the names of its layers.
fn make(store: &Store, name: &str) {
    let snapshot = tree_of(store, &[name]);
    let ids: Vec<String> = snapshot.layers().iter().map(|layer| layer.id.to_string()).collect();
    let needs = Needs::new().snapshot(&snapshot).encode();
    let remembered =
        Remembered { value: ids.join(" ").into(), kind: "test", label: name.to_owned(), needs };
    store.put_action(Digest::of(name.as_bytes()), remembered);
    // Needed by the row alone from here on.
    drop(snapshot);
}

#[test]
fn a_volume_in_use_stays_and_goes_last() {
    let (_folder, store) = new_store();
    let used = store.cache_volume("used").unwrap();
    std::fs::write(used.path().join("file"), vec![1; 50_000]).unwrap();
    let unused = store.cache_volume("unused").unwrap();
    std::fs::write(unused.path().join("file"), vec![1; 70_000]).unwrap();
    let path = unused.path().to_owned();
    drop(unused);
    remember(&store, "entry", &tree_with(&store, "f", 100_000));
    let volumes: Vec<_> =
        store.entries().into_iter().filter(|entry| entry.kind == "cache-volume").collect();
    let unused = volumes.iter().find(|entry| entry.label == "cache volume unused").unwrap();
    assert!(unused.bytes >= 70_000 && !unused.in_use, "{unused:?}");
    let all: u64 = store.entries().iter().map(|entry| entry.bytes).sum();
    store.collect(&Limits { max_used: all, target: all - 1, ..Limits::NONE });
    assert!(labels(&store).is_empty() && path.exists(), "results go before volumes");
    store.collect(&Limits::NOTHING);
    assert!(!path.exists() && used.path().join("file").exists());
    // It begins anew, and copies are apart.
    let again = store.cache_volume("unused").unwrap();
    assert!(again.is_new() && again.path() == path);
    let empty = store.view(&Snapshot::empty());
    let copy = store.seeded_cache_volume(("unused", 1), &empty, None).unwrap();
    assert!(copy.is_new() && copy.path() != path);
}

#[test]
fn a_mirror_takes_its_turn_among_results() {
    let (_folder, store) = new_store();
    let volume = store.cache_volume("volume").unwrap().path().to_owned();
    let mirror = store.mirror("elsewhere").unwrap();
    let path = mirror.path().to_owned();
    assert_eq!(path, store.mirror_path("elsewhere"));
    std::fs::write(path.join("file"), vec![1; 2_000_000]).unwrap();
    drop(mirror);
    remember(&store, "entry", &tree_with(&store, "f", 100_000));
    let all: u64 = store.entries().iter().map(|entry| entry.bytes).sum();
    store.collect(&Limits { max_used: all, target: all - 1, ..Limits::NONE });
    assert!(!path.exists(), "it was used before the result was made");
    assert_eq!(labels(&store), ["entry"]);
    assert!(volume.exists());
}

#[test]
fn writing_makes_room_by_collecting_and_says_when_there_is_none() {
    const LIMIT: u64 = 3_000_000;
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { max_used: LIMIT, target: 2_000_000, collect: true, ..Limits::NONE };
    let store = Store::open_limited(folder.path(), |_| limits).unwrap();
    for number in 0..20 {
        remember(&store, &number.to_string(), &tree_with(&store, "f", 500_000));
    }
    let used: u64 = store.entries().iter().map(|entry| entry.bytes).sum();
    assert!(used <= LIMIT && used > 500_000, "{used}");
    let newest = labels(&store);
    assert!(newest.contains(&"19".to_owned()) && !newest.contains(&"0".to_owned()), "{newest:?}");
    // All of it is held now: nothing can go, and more is refused.
    let mut held = vec![];
    let refused = (0..20).find_map(|number| {
        let mut editor = store.edit(&Snapshot::empty()).unwrap();
        let name = format!("held {number}");
        match editor.new_file(&name, &vec![7; 500_000], 0o644, Owner::default()) {
            Ok(()) => held.push(editor.commit().unwrap()),
            Err(error) => return Some(error),
        }
        None
    });
    let error = refused.unwrap();
    assert!(matches!(error, Error::Full(_)), "{error}");
    assert!(error.to_string().contains("is full") && error.hint().unwrap().contains("prune"));
    drop(held);
    remember(&store, "after", &tree_with(&store, "f", 500_000));
    assert!(labels(&store).contains(&"after".to_owned()));
}

#[test]
fn what_was_laid_over_trees_before_makes_room_for_what_comes() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { max_used: 3_000_000, target: 2_000_000, collect: true, ..Limits::NONE };
    let store = Store::open_limited(folder.path(), |_| limits).unwrap();
    let make = Arc::new(|_: Option<&[u8]>| Some(vec![7; 200_000]));
    let kind = TargetKind::Laid(Laid { digest: Digest::of(b"laid"), make });
    let targets = [Target { path: "/etc/certificates".into(), kind }];
    for number in 0..40 {
        let base = tree_with(&store, &format!("etc/{number}"), 10);
        let scratch = store.begin(&base, &targets).unwrap();
        drop(scratch);
    }
    let scratch = store.begin(&Snapshot::empty(), &targets).unwrap();
    tree_with(&store, "large", 2_000_000);
    let laid = path_of(scratch.mount()).join("etc/certificates");
    assert_eq!(laid.metadata().unwrap().len(), 200_000, "what is in use stays");
}

#[test]
fn results_of_the_first_tables_are_forgotten_and_nothing_else() {
    let (folder, store) = new_store();
    let call = Digest::of(b"call");
    store.put_calls(vec![(call, b"record".to_vec())]).unwrap();
    store.flush().unwrap();
    drop(store);
    let file = folder.path().join("db.sqlite");
    let old = "DROP TABLE actions; DROP TABLE sizes; DROP TABLE manifests;
        CREATE TABLE actions(key BLOB PRIMARY KEY, value BLOB NOT NULL,
            created INTEGER NOT NULL, last_used INTEGER NOT NULL);
        INSERT INTO actions VALUES (x'00', x'00', 1, 1);
        UPDATE calls SET record = CAST('record' AS BLOB);
        PRAGMA user_version = 1;";
    rusqlite::Connection::open(&file).unwrap().execute_batch(old).unwrap();
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(store.call(&call).unwrap(), b"record");
    assert!(store.entries().is_empty());
    let key = remember(&store, "new", &tree_of(&store, &["f"]));
    store.flush().unwrap();
    assert!(store.action(&key).is_some());
    assert!(store.entries().iter().all(|entry| entry.committed), "{:?}", store.entries());
}
