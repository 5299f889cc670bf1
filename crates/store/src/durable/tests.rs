//! Rows wait for bytes; what is damaged is noticed, given up and made again.

use super::blobs::DueBlobs;
use super::{Content, scrub};
use crate::{Error, Meta, Needs, Remembered, Snapshot, Store, ViewError};
use protocol::Digest;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

fn key(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

fn open(folder: &tempfile::TempDir) -> Store {
    Store::open(folder.path()).unwrap()
}

/// A layer with these files, each with its own path as contents.
fn layer(store: &Store, files: &[&str]) -> Snapshot {
    let mut builder = store.new_layer().unwrap();
    let meta = Meta { mode: 0o644, ..Meta::default() };
    for file in files {
        builder.file(file, &meta, &mut file.as_bytes()).unwrap();
    }
    Snapshot::empty().push(builder.commit().unwrap())
}

fn remember(store: &Store, name: &str, snapshot: &Snapshot) {
    let needs = Needs::new().snapshot(snapshot).encode();
    let remembered =
        Remembered { value: name.into(), kind: "test", needs, ..Remembered::default() };
    store.put_action(key(name), remembered);
}

fn place(store: &Store, snapshot: &Snapshot) -> PathBuf {
    store.dir().join(crate::state::layer_path(snapshot.layers()[0].id))
}

fn read(store: &Store, snapshot: &Snapshot, path: &str) -> Result<String, Error> {
    let mut text = String::new();
    let mut file = store.view(snapshot).read(path)?;
    file.read_to_string(&mut text).map_err(Error::from_read(path))?;
    Ok(text)
}

/// Changes one byte and puts the time back, as a failing disk does.
fn flip(path: &Path) {
    let before = fs::metadata(path).unwrap();
    let mut bytes = fs::read(path).unwrap();
    bytes[0] ^= 1;
    fs::write(path, bytes).unwrap();
    let time =
        SystemTime::UNIX_EPOCH + Duration::new(before.mtime() as u64, before.mtime_nsec() as u32);
    fs::File::open(path).unwrap().set_modified(time).unwrap();
}

fn is_lost(error: &Error) -> bool {
    matches!(error, Error::MissingLayer(_) | Error::View(ViewError::Lost(_)))
}

#[test]
fn a_committed_layer_has_a_manifest_and_one_that_no_row_names_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let (named, unnamed) = (layer(&store, &["a/b", "c"]), layer(&store, &["d"]));
    let many: Vec<String> = (0..100).map(|number| format!("x/{number}")).collect();
    let many = layer(&store, &many.iter().map(String::as_str).collect::<Vec<_>>());
    remember(&store, "named", &named);
    remember(&store, "many", &many);
    store.flush().unwrap();
    let manifest = |snapshot: &Snapshot| store.0.database.manifest(snapshot.layers()[0].id);
    assert!(manifest(&named).is_some() && manifest(&many).is_some());
    assert_eq!(manifest(&unnamed), None);
    assert_eq!(read(&store, &named, "a/b").unwrap(), "a/b");
    drop((named, unnamed, many, store));
    let store = open(&folder);
    assert_eq!(store.action(&key("many")).unwrap(), b"many");
}

#[test]
fn layers_without_a_row_go_after_the_next_start_and_the_others_stay() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let (named, unnamed) = (layer(&store, &["a"]), layer(&store, &["b"]));
    remember(&store, "named", &named);
    let (kept, gone) = (place(&store, &named), place(&store, &unnamed));
    let stale = gone.with_extension("0123456789abcdef");
    fs::write(&stale, "left by a crash").unwrap();
    drop((named, unnamed, store));
    let store = open(&folder);
    super::orphans::collect(&store.0.inspector, &|| false);
    assert!(kept.exists() && !gone.exists() && !stale.exists());
    let manifest = store.0.database.manifests().unwrap();
    assert_eq!(manifest.len(), 1);
    let (id, digest) = manifest.iter().next().unwrap();
    assert!(super::manifest::place(store.dir(), *id, digest).exists());
}

#[test]
fn what_cannot_be_synced_is_no_result() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let (good, bad) = (layer(&store, &["a"]), layer(&store, &["b"]));
    fs::remove_dir_all(place(&store, &bad)).unwrap();
    remember(&store, "good", &good);
    remember(&store, "bad", &bad);
    let error = store.flush().unwrap_err();
    assert!(error.to_string().contains("could not be brought to disk"), "{error}");
    assert_eq!(store.action(&key("bad")), None);
    assert!(store.is_lost(&bad) && !store.is_lost(&good));
    store.flush().unwrap();
    drop((good, bad, store));
    let store = open(&folder);
    assert_eq!(store.action(&key("bad")), None);
    assert_eq!(store.action(&key("good")).unwrap(), b"good");
}

#[test]
fn damage_that_stat_shows_is_found_at_the_first_use_after_a_start() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 7] = [
        ("missing layer", |layer| fs::remove_dir_all(layer).unwrap()),
        ("missing file", |layer| fs::remove_file(layer.join("a/b")).unwrap()),
        ("cut short", |layer| fs::write(layer.join("c"), "").unwrap()),
        ("written to", |layer| fs::write(layer.join("c"), "C").unwrap()),
        ("one more", |layer| fs::write(layer.join("a/new"), "x").unwrap()),
        ("mode", |layer| {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(layer.join("c"), fs::Permissions::from_mode(0o777)).unwrap();
        }),
        ("emptied manifest", |layer| {
            for entry in fs::read_dir(layer.parent().unwrap()).unwrap().flatten() {
                if entry.path().is_file() {
                    fs::write(entry.path(), "").unwrap();
                }
            }
        }),
    ];
    for (name, damage) in damages {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder);
        let snapshot = layer(&store, &["a/b", "c"]);
        remember(&store, "x", &snapshot);
        let path = place(&store, &snapshot);
        let snapshot: Snapshot =
            snapshot.layers().iter().map(crate::LayerRef::without_pin).collect();
        drop(store);
        damage(&path);
        let store = open(&folder);
        let error = read(&store, &snapshot, "a/b").unwrap_err();
        assert!(is_lost(&error), "{name}: {error}");
        assert_eq!(error.kind(), protocol::ErrorKind::Lost);
        assert!(store.begin(&snapshot, &[]).is_err_and(|error| is_lost(&error)), "{name}");
        assert!(store.pin(&snapshot).is_none(), "{name}");
        assert!(store.is_lost(&snapshot), "{name}");
        // Whoever has found it first, the scrub perhaps, has removed it by then.
        drop(store);
        assert!(!path.exists(), "{name}");
    }
}

#[test]
fn an_undamaged_layer_passes() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let mut editor = store.edit(&Snapshot::empty()).unwrap();
    editor.new_file("d/f", b"f", 0o600, crate::Owner { uid: 7, gid: 8 }).unwrap();
    editor.symlink("f", "d/l").unwrap();
    let snapshot = editor.commit().unwrap();
    remember(&store, "x", &snapshot);
    let by_name: Snapshot = snapshot.layers().iter().map(crate::LayerRef::without_pin).collect();
    drop((snapshot, store));
    let store = open(&folder);
    assert_eq!(read(&store, &by_name, "d/l").unwrap(), "f");
    assert!(store.examine(&by_name).is_ok());
}

#[test]
fn bytes_that_changed_are_found_when_they_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let snapshot = layer(&store, &["a", "b"]);
    remember(&store, "x", &snapshot);
    store.flush().unwrap();
    flip(&place(&store, &snapshot).join("a"));
    assert_eq!(read(&store, &snapshot, "b").unwrap(), "b");
    assert!(is_lost(&read(&store, &snapshot, "a").unwrap_err()));
    assert!(store.is_lost(&snapshot) && store.pin(&snapshot).is_none());
}

#[test]
fn a_damaged_blob_is_removed_and_can_be_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let id = store.put_blob(b"stream").unwrap();
    let path = crate::blob::place(&store.0.state, &id);
    let read = |store: &Store| {
        let mut bytes = vec![];
        let read = store.read_blob(&id)?.read_to_end(&mut bytes);
        read.map(|_| bytes).map_err(Error::from_read("stream"))
    };
    assert_eq!(read(&store).unwrap(), b"stream");
    for damage in [&b"strexm"[..], b"", b"stream and more"] {
        fs::write(&path, damage).unwrap();
        assert!(matches!(read(&store), Err(Error::MissingBlob(_))));
        assert!(!path.exists() && store.is_lost_blob(&id));
        assert!(store.pin_blob(&id).is_none());
        assert_eq!(store.put_blob(b"stream").unwrap(), id);
        assert!(!store.is_lost_blob(&id));
        assert_eq!(read(&store).unwrap(), b"stream");
    }
    // An earlier process may have died in the middle: its file is written anew.
    drop(store);
    fs::write(&path, "str").unwrap();
    let store = open(&folder);
    store.put_blob(b"stream").unwrap();
    assert_eq!(read(&store).unwrap(), b"stream");
}

#[test]
fn the_scrub_learns_digests_remembers_where_it_was_and_finds_damage() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let mut editor = store.edit(&Snapshot::empty()).unwrap();
    editor.new_file("d/f", b"bytes", 0o600, crate::Owner::default()).unwrap();
    let snapshot = editor.commit().unwrap();
    let other = layer(&store, &["o"]);
    remember(&store, "x", &snapshot);
    remember(&store, "y", &other);
    store.flush().unwrap();
    let inspector = &store.0.inspector;
    let layer = &snapshot.layers()[0];
    assert_eq!(inspector.sum(layer, b"d/f"), None);
    assert!(scrub::step(inspector, &mut |_| false), "stopped at once: nothing is noted");
    store.flush().unwrap();
    assert_eq!(inspector.sum(layer, b"d/f"), None);
    for more in [true, true, false] {
        assert_eq!(scrub::step(inspector, &mut |_| true), more);
        store.flush().unwrap();
    }
    assert_eq!(inspector.sum(layer, b"d/f"), Some(*crate::BlobId::of(b"bytes").as_bytes()));
    drop(store);
    let store = open(&folder);
    let inspector = &store.0.inspector;
    assert!(!scrub::step(inspector, &mut |_| true), "all was read a moment ago");

    flip(&place(&store, &snapshot).join("d/f"));
    let digest = store.0.database.manifest(layer.id).unwrap();
    store.0.database.put_manifest(layer.id, digest, 0);
    store.flush().unwrap();
    assert!(scrub::step(inspector, &mut |_| true));
    assert!(store.is_lost(&snapshot) && !store.is_lost(&other));
    assert!(store.0.state.durable().is_lost(Content::Layer(layer.id)));
}

#[test]
fn the_scrub_of_blobs_finds_damage_and_remembers_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let texts = [&b"whole"[..], b"flipped", b"cut", b"young"];
    let ids = texts.map(|text| store.put_blob(text).unwrap());
    let place = |number: usize| crate::blob::place(&store.0.state, &ids[number]);
    let needs = Needs::new().blob(&ids[1]).encode();
    let remembered =
        Remembered { value: b"x".into(), kind: "test", needs, ..Remembered::default() };
    store.put_action(key("x"), remembered);
    store.flush().unwrap();
    flip(&place(1));
    fs::write(place(2), b"cu").unwrap();
    flip(&place(3));
    let long_ago = |number: usize| {
        let time = SystemTime::now() - Duration::from_secs((30 - number as u64) * 24 * 3600);
        fs::File::open(place(number)).unwrap().set_modified(time).unwrap();
    };
    (0..3).for_each(long_ago);
    let inspector = &store.0.inspector;
    let mut due = DueBlobs::default();
    assert!(due.step(inspector, &mut |_| false), "stopped at once: nothing is noted");
    for more in [true, true, true, false] {
        assert_eq!(due.step(inspector, &mut |_| true), more);
    }
    let lost = ids.map(|id| store.is_lost_blob(&id));
    assert_eq!(lost, [false, true, true, false], "the last was written a moment ago");
    assert!(place(0).exists() && store.pin_blob(&ids[1]).is_none());
    assert!(!DueBlobs::default().step(inspector, &mut |_| true), "the rest was read a moment ago");
    assert_eq!(store.put_blob(texts[1]).unwrap(), ids[1]);
    assert!(store.pin_blob(&ids[1]).is_some() && !store.is_lost_blob(&ids[1]));
}

#[test]
fn layers_of_any_size_are_committed() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let names: Vec<String> = (0..2_100).map(|number| format!("{}/{number}", number % 7)).collect();
    let large = layer(&store, &names.iter().map(String::as_str).collect::<Vec<_>>());
    let small = layer(&store, &["small"]);
    remember(&store, "large", &large);
    remember(&store, "small", &small);
    store.flush().unwrap();
    for snapshot in [&large, &small] {
        assert!(store.0.database.manifest(snapshot.layers()[0].id).is_some());
    }
    drop((large, small, store));
    let store = open(&folder);
    assert!(store.action(&key("large")).is_some() && store.action(&key("small")).is_some());
}
