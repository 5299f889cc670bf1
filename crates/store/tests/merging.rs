//! View, kernel and merge agree on what a stack of layers is.

use super::{Listing, Random, listing, listing_of_mount, meta, new_store};
use std::time::{SystemTime, UNIX_EPOCH};
use store::{LayerRef, Owner, Snapshot, Store};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// One random layer: any mix of directories, opaque ones, files, links and whiteouts.
fn random_layer(store: &Store, random: &mut Random, number: usize) -> LayerRef {
    let mut layer = store.new_layer().unwrap();
    layer.directory("/", &meta(*random.pick(&[0o755, 0o700, 0o1777]))).unwrap();
    for _ in 0..1 + random.below(7) {
        let depth = 1 + random.below(3);
        let names: Vec<&str> = (0..depth).map(|_| *random.pick(&NAMES)).collect();
        let path = names.join("/");
        // Parents that are not directories in this layer are simply not written through.
        let blocked = (1..depth).any(|end| {
            let above = names[..end].join("/");
            layer.exists(&above) && layer.directory(&above, &meta(0o755)).is_err()
        });
        if blocked {
            continue;
        }
        let mode = *random.pick(&[0o755, 0o750, 0o711]);
        match random.below(6) {
            0 => layer.directory(&path, &meta(mode)).unwrap(),
            1 => {
                layer.directory(&path, &meta(mode)).unwrap();
                layer.set_opaque(&path).unwrap();
            }
            2 | 3 => {
                let contents = format!("{number} {path}");
                let owner = random.below(3) as u32;
                let meta = store::Meta { mode, uid: owner, gid: owner, ..meta(0) };
                layer.file(&path, &meta, &mut contents.as_bytes()).unwrap();
            }
            4 => layer.symlink(&path, &format!("../{number}"), &meta(0o777)).unwrap(),
            _ => layer.whiteout(&path).unwrap(),
        }
    }
    layer.commit().unwrap()
}

/// One random layer made by the kernel: what a process changed over the layers so far.
fn random_exec(store: &Store, random: &mut Random, base: &Snapshot, number: usize) -> Snapshot {
    let scratch = store.begin(base, &[]).unwrap();
    let root = super::path_of(scratch.mount());
    for _ in 0..1 + random.below(5) {
        let depth = 1 + random.below(3);
        let names: Vec<&str> = (0..depth).map(|_| *random.pick(&NAMES)).collect();
        let path = root.join(names.join("/"));
        // What cannot be done over this tree is simply not done.
        let outcome = match random.below(6) {
            0 => std::fs::create_dir(&path),
            1 => std::fs::remove_dir_all(&path),
            2 => std::fs::remove_file(&path),
            3 => std::fs::rename(&path, root.join(random.pick(&NAMES))),
            4 => std::os::unix::fs::symlink(format!("{number}"), &path),
            _ if path.is_symlink() => Ok(()),
            _ => std::fs::write(&path, format!("{number} written")),
        };
        drop(outcome);
    }
    // The tiers must not merge here: this test merges by hand.
    let after = scratch.commit().unwrap();
    assert!(after.layers().len() <= base.layers().len() + 1);
    after
}

fn random_layers(store: &Store, random: &mut Random, count: usize) -> Vec<LayerRef> {
    let mut snapshot = Snapshot::empty();
    for number in 0..count {
        snapshot = match random.below(2) {
            0 => snapshot.push(random_layer(store, random, number)),
            _ => random_exec(store, random, &snapshot, number),
        };
    }
    let bottom = random_layer(store, random, count);
    let empty = snapshot.layers().is_empty();
    if empty { vec![bottom] } else { snapshot.layers().to_vec() }
}

fn check_equal(context: &str, expected: &Listing, found: &Listing) {
    assert_eq!(expected, found, "{context}");
}

#[test]
fn random_layers_look_the_same_viewed_mounted_and_merged() {
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64 | 1;
    println!("seed {seed}");
    let (_folder, store) = new_store();
    let mut random = Random(seed);
    for round in 0..20 {
        let count = 2 + random.below(8);
        let layers = random_layers(&store, &mut random, count);
        let count = layers.len();
        let snapshot: Snapshot = layers.iter().cloned().collect();
        let expected = listing_of_mount(&store.mount_read_only(&snapshot).unwrap());
        let context = format!("seed {seed}, round {round}, {layers:?}");
        check_equal(&context, &expected, &listing(&store.view(&snapshot)));
        for _ in 0..4 {
            let from = random.below(count);
            let to = from + 1 + random.below(count - from);
            let merged = store.merge(&layers[from..to]).unwrap();
            let parts = [&layers[..from], &[merged], &layers[to..]];
            let shorter: Snapshot = parts.concat().into_iter().collect();
            let context = format!("{context}, {from}..{to} merged");
            check_equal(&context, &expected, &listing(&store.view(&shorter)));
            let mount = store.mount_read_only(&shorter).unwrap();
            check_equal(&context, &expected, &listing_of_mount(&mount));
            let digests = [&snapshot, &shorter].map(|tree| store.tree_digest(tree).unwrap());
            assert_eq!(digests[0], digests[1], "{context}");
        }
        check_subtrees(&store, &snapshot, &expected, &context);
    }
}

/// Every directory taken on its own is what the whole tree shows below it.
fn check_subtrees(store: &Store, snapshot: &Snapshot, whole: &Listing, context: &str) {
    for directory in whole.iter().filter(|(_, line)| line.ends_with("directory")) {
        let prefix = format!("{}/", directory.0);
        let expected: Listing = match directory.0.as_str() {
            "." => whole.clone(),
            _ => whole
                .iter()
                .filter_map(|(path, line)| Some((path.strip_prefix(&prefix)?.into(), line.clone())))
                .chain([(".".to_owned(), directory.1.clone())])
                .collect(),
        };
        let subtree = store.view(snapshot).subtree(directory.0).unwrap();
        let context = format!("{context}, subtree {}", directory.0);
        check_equal(&context, &expected, &listing(&store.view(&subtree)));
        let mount = store.mount_read_only(&subtree).unwrap();
        check_equal(&context, &expected, &listing_of_mount(&mount));
    }
}

#[test]
fn a_directory_that_replaced_something_becomes_opaque_when_merged() {
    let (_folder, store) = new_store();
    let layer = |write: &dyn Fn(&mut store::LayerBuilder)| {
        let mut layer = store.new_layer().unwrap();
        write(&mut layer);
        layer.commit().unwrap()
    };
    let base = layer(&|layer| {
        layer.file("d/old", &meta(0o644), &mut &b"old"[..]).unwrap();
        layer.file("e/old", &meta(0o644), &mut &b"old"[..]).unwrap();
    });
    let gone = layer(&|layer| {
        layer.whiteout("d").unwrap();
        layer.file("e", &meta(0o644), &mut &b"file"[..]).unwrap();
    });
    let anew = layer(&|layer| {
        layer.file("d/new", &meta(0o644), &mut &b"new"[..]).unwrap();
        layer.file("e/new", &meta(0o644), &mut &b"new"[..]).unwrap();
    });
    let merged = store.merge(&[gone, anew]).unwrap();
    let snapshot: Snapshot = [base, merged].into_iter().collect();
    assert_eq!(super::paths(&store, &snapshot), ["d", "d/new", "e", "e/new"]);
}

#[test]
fn equal_lists_give_the_same_layer_after_a_restart_too() {
    let (folder, store) = new_store();
    let layers: Vec<LayerRef> = ["a", "b"]
        .iter()
        .flat_map(|name| super::tree_of(&store, &[name]).layers().to_vec())
        .collect();
    let merged = store.merge(&layers).unwrap();
    assert_eq!(store.merge(&layers).unwrap(), merged);
    // Something must need the layers for them to be there after a restart.
    let needs = store::Needs::new().snapshot(&layers.iter().cloned().collect()).encode();
    let remembered = store::Remembered { needs, ..super::remembered(vec![]) };
    store.put_action(protocol::Digest::of(b"both"), remembered);
    drop(store);
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(store.merge(&layers).unwrap(), merged);
    let other: Vec<LayerRef> = layers.iter().rev().cloned().collect();
    assert_ne!(store.merge(&other).unwrap(), merged);
}

#[test]
fn equal_content_gives_equal_digests_whatever_the_layers() {
    let (_folder, store) = new_store();
    let one = super::tree_of(&store, &["a/x", "b", "c/d/e"]);
    let mut other = super::tree_of(&store, &["c/d/e", "gone"]);
    for file in ["b", "a/x"] {
        let mut editor = store.edit(&other).unwrap();
        editor.new_file(file, file.as_bytes(), 0o644, Owner::default()).unwrap();
        editor.remove("gone", store::Remove::File).unwrap();
        other = editor.commit().unwrap();
    }
    let subtree = |tree: &Snapshot, path: &str| store.view(tree).subtree(path).unwrap();
    // What the store goes by, and what users see.
    let digest =
        |tree: &Snapshot| [store.tree_digest(tree), store.tree_sum(tree)].map(Result::unwrap);
    assert_eq!(digest(&one), digest(&other));
    assert_eq!(digest(&subtree(&one, "c/d")), digest(&subtree(&other, "c/d")));
    let changes: [&dyn Fn(&mut store::Editor); 5] = [
        &|editor| editor.new_file("b", b"B", 0o644, Owner::default()).unwrap(),
        &|editor| editor.new_file("b", b"b", 0o600, Owner::default()).unwrap(),
        &|editor| editor.new_file("b", b"b", 0o644, Owner { uid: 1, gid: 0 }).unwrap(),
        &|editor| editor.symlink("b", "l").unwrap(),
        &|editor| editor.new_directory("empty", 0o755, Owner::default()).unwrap(),
    ];
    for change in changes {
        let mut editor = store.edit(&one).unwrap();
        change(&mut editor);
        let changed = digest(&editor.commit().unwrap());
        assert!(digest(&one).iter().zip(&changed).all(|(before, after)| before != after));
    }
    for digest in [Store::file_digest, Store::file_sum] {
        let files = [&one, &other].map(|tree| digest(&store, tree, "/a/x").unwrap());
        assert_eq!(files[0], files[1]);
        assert_ne!(files[0], digest(&store, &one, "b").unwrap());
        assert!(digest(&store, &one, "a").is_err());
    }
}

#[test]
fn sums_are_those_that_programs_of_this_ecosystem_know() {
    let (_folder, store) = new_store();
    let sum = |tree: &Snapshot| store.tree_sum(tree).unwrap().to_string();
    assert_eq!(
        sum(&Snapshot::default()),
        "0e5db88383bce812f795689f5318a2b2f4fde740ef31c2a2365a46368aafddd2"
    );
    let mut editor = store.edit(&Snapshot::default()).unwrap();
    editor.new_file("foo.txt", b"Hello, World!", 0o644, Owner::default()).unwrap();
    let hello = editor.commit().unwrap();
    assert_eq!(sum(&hello), "48ac4b4b73af8a75a3c77e9dc6211d89321c6ed4f13c6987c6837ac58645bd89");
    assert_eq!(
        store.file_sum(&hello, "foo.txt").unwrap().to_string(),
        "8a887cdd3e476c79e1a14a65a6c401673b56071a24561dadb5e152605e72a613"
    );
    let mut editor = store.edit(&Snapshot::default()).unwrap();
    editor.new_file("a/b/c", b"c", 0o600, Owner::default()).unwrap();
    editor.symlink("b/c", "a/link").unwrap();
    editor.new_file("a.txt", b"", 0o644, Owner::default()).unwrap();
    let nested = editor.commit().unwrap();
    assert_eq!(sum(&nested), "57757e2925e69d292253c126973e371a0f1d6c9ec765bbc00de038eddcbbd4e9");
    assert_eq!(
        sum(&store.view(&nested).subtree("a").unwrap()),
        "185e4c5ff71dbaf6502d7286136087c28afe5ede688d917d68d2fecac276189e"
    );
    assert_eq!(sum(&nested), sum(&nested), "found again");
}
