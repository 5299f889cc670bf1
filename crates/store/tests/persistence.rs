//! What survives a restart.

use super::{Store, new_store, read, remembered};
use protocol::Digest;
use std::fs;
use store::{Needs, Remembered};

#[test]
fn reopening_keeps_actions_calls_layers_and_digests() {
    let (folder, store) = new_store();
    let snapshot = super::tree_of(&store, &["a/b"]);
    let digest = store.tree_digest(&snapshot).unwrap();
    let (action, gone, call) = (Digest::of(b"action"), Digest::of(b"gone"), Digest::of(b"call"));
    let needs = Needs::new().snapshot(&snapshot).encode();
    store.put_action(action, Remembered { needs, ..remembered(b"result".to_vec()) });
    store.put_action(gone, remembered(b"x".to_vec()));
    store.remove_action(&gone);
    store.put_calls(vec![(call, b"record".to_vec())]).unwrap();
    let blob = store.put_blob(b"stream").unwrap();
    store.flush().unwrap();
    drop(store);
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(store.action(&action).unwrap(), b"result");
    assert_eq!(store.action(&gone), None);
    assert_eq!(store.call(&call).unwrap(), b"record");
    assert_eq!(store.call_by_handle(call.handle()).unwrap(), (call, b"record".to_vec()));
    assert!(store.has(&snapshot));
    assert_eq!(read(&store.view(&snapshot), "a/b"), "a/b");
    assert_eq!(store.tree_digest(&snapshot).unwrap(), digest);
    assert_eq!(std::io::read_to_string(store.open_blob(&blob).unwrap()).unwrap(), "stream");
}

#[test]
fn a_damaged_database_costs_the_memo_and_never_the_start() {
    let (folder, store) = new_store();
    let snapshot = super::tree_of(&store, &["a"]);
    let action = Digest::of(b"action");
    store.put_action(action, remembered(b"result".to_vec()));
    drop(store);
    for damage in [&b"garbage"[..], &[0; 8192], b""] {
        fs::write(folder.path().join("db.sqlite"), damage).unwrap();
        let store = Store::open(folder.path()).unwrap();
        assert_eq!(store.action(&action), None);
        assert!(store.tree_digest(&snapshot).is_err(), "nobody knows the layer any more");
        store.put_action(action, remembered(b"again".to_vec()));
        store.flush().unwrap();
        assert_eq!(store.action(&action).unwrap(), b"again");
    }
    fs::remove_file(folder.path().join("db.sqlite")).unwrap();
    assert!(Store::open(folder.path()).is_ok());
}

#[test]
fn many_threads_put_and_read_at_once() {
    let (_folder, store) = new_store();
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let store = store.clone();
            scope.spawn(move || {
                for number in 0..500_u32 {
                    let key = Digest::of(format!("{thread} {number}").as_bytes());
                    let value = number.to_le_bytes().to_vec();
                    store.put_action(key, remembered(value.clone()));
                    assert_eq!(store.action(&key), Some(value));
                    if number % 100 == 0 {
                        store.flush().unwrap();
                    }
                }
            });
        }
    });
    store.flush().unwrap();
    for thread in 0..4 {
        let key = Digest::of(format!("{thread} 499").as_bytes());
        assert_eq!(store.action(&key), Some(499_u32.to_le_bytes().to_vec()));
    }
}
