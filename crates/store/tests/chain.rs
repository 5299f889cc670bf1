//! Long chains stay short.

use super::{ROOT, new_store, path_of, read};
use std::fs;
use store::{LayerRef, Snapshot};

#[test]
fn a_thousand_execs_keep_fewer_than_64_layers() {
    let (_folder, store) = new_store();
    let mut snapshot = super::tree_of(&store, &["base"]);
    let mut most = 0;
    for step in 0..1000 {
        let scratch = store.begin(&snapshot, &[]).unwrap();
        fs::write(path_of(scratch.mount()).join(format!("f{step}")), step.to_string()).unwrap();
        if step > 0 {
            let previous = path_of(scratch.mount()).join(format!("f{}", step - 1));
            assert_eq!(fs::read_to_string(&previous).unwrap(), (step - 1).to_string());
            if step % 3 == 0 {
                fs::remove_file(previous).unwrap();
            }
        }
        snapshot = scratch.commit().unwrap();
        most = most.max(snapshot.layers().len());
    }
    assert!(most < 64, "{most} layers");
    let names = super::paths(&store, &snapshot);
    let expected = (0..1000).filter(|step| *step == 999 || (step + 1) % 3 != 0).count();
    assert_eq!(names.len(), expected + 1);
}

#[test]
fn a_thousand_edits_keep_fewer_than_64_layers_and_branches_share_merges() {
    let (_folder, store) = new_store();
    let extend = |snapshot: &Snapshot, step: usize| {
        let mut editor = store.edit(snapshot).unwrap();
        let path = format!("d{}/f{step}", step % 7);
        editor.new_file(&path, step.to_string().as_bytes(), 0o644, ROOT).unwrap();
        editor.commit().unwrap()
    };
    let mut snapshot = Snapshot::empty();
    let mut most = 0;
    for step in 0..1000 {
        snapshot = extend(&snapshot, step);
        most = most.max(snapshot.layers().len());
    }
    assert!(most < 64, "{most} layers");
    let view = store.view(&snapshot);
    for step in [0, 1, 500, 999] {
        assert_eq!(read(&view, &format!("d{}/f{step}", step % 7)), step.to_string());
    }
    assert_eq!(view.read_dir("").unwrap().len(), 7);
    let branches = [extend(&snapshot, 1000), extend(&snapshot, 1001)];
    let shared = snapshot.layers().len() - 16;
    assert_eq!(branches[0].layers()[..shared], branches[1].layers()[..shared]);
}

#[test]
fn large_layers_are_left_alone_until_the_list_is_too_long_to_mount() {
    let (_folder, store) = new_store();
    let mut layer = store.new_layer().unwrap();
    for number in 0..2000 {
        let name = format!("f{number}");
        layer.file(&name, &super::meta(0o644), &mut &b""[..]).unwrap();
    }
    let large = layer.commit().unwrap();
    let mut snapshot = Snapshot::empty();
    for step in 0..15 {
        let mut editor = store.edit(&snapshot).unwrap();
        editor.new_file(&format!("s{step}"), b"", 0o644, ROOT).unwrap();
        snapshot = editor.commit().unwrap();
    }
    let mut snapshot = snapshot.push(large);
    assert_eq!(snapshot.layers().len(), 16);
    for step in 0..15 {
        let mut editor = store.edit(&snapshot).unwrap();
        editor.new_file(&format!("t{step}"), b"", 0o644, ROOT).unwrap();
        snapshot = editor.commit().unwrap();
    }
    assert_eq!(snapshot.layers().len(), 31);

    // By hand, because no chain gets there through tiers: 600 layers of one file each.
    let mut long: Vec<LayerRef> = snapshot.layers().to_vec();
    for number in 0..600 {
        let mut layer = store.new_layer().unwrap();
        layer.file(&format!("l{number}"), &super::meta(0o644), &mut &b""[..]).unwrap();
        long.push(layer.commit().unwrap());
    }
    let long: Snapshot = long.into_iter().collect();
    let scratch = store.begin(&long, &[]).unwrap();
    assert!(scratch.base().layers().len() <= 400);
    assert_eq!(fs::read_dir(path_of(scratch.mount())).unwrap().count(), 2000 + 30 + 600);
    assert_eq!(store.tree_digest(&long).unwrap(), store.tree_digest(scratch.base()).unwrap());
}
