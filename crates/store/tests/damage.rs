//! A damaged database, a disk that cannot be written: the start is spared, or the error is clear.

use super::{Store, new_store};
use protocol::Digest;
use std::fs;
use std::path::Path;
use std::process::Command;
use store::Remembered;

const ROWS: u32 = 400;

fn key(number: u32) -> Digest {
    Digest::of(&number.to_le_bytes())
}

fn value(number: u32) -> Vec<u8> {
    format!("result {number} ").repeat(20).into_bytes()
}

/// Puts all rows; false when they could not be committed.
fn fill(store: &Store) -> bool {
    for number in 0..ROWS {
        let remembered = Remembered { value: value(number), kind: "test", ..Remembered::default() };
        store.put_action(key(number), remembered);
    }
    store.flush().is_ok()
}

/// Opens the folder and finds rows that are right or missing, never wrong; then it can be used.
fn check(folder: &Path, context: &str) -> usize {
    // Damage that shows only in use is repaired by the start after the next.
    for _ in 0..2 {
        let store = Store::open(folder).unwrap_or_else(|error| panic!("{context}: {error}"));
        for number in 0..ROWS {
            if let Some(found) = store.action(&key(number)) {
                assert_eq!(found, value(number), "{context}");
            }
        }
    }
    let mut store = Store::open(folder).unwrap();
    let hits = (0..ROWS).filter(|number| store.action(&key(*number)).is_some()).count();
    // Damage that only a write meets is noticed by it, and repaired by the next start.
    if !fill(&store) {
        drop(store);
        store = Store::open(folder).unwrap();
        assert!(fill(&store), "{context}");
    }
    drop(store);
    let store = Store::open(folder).unwrap();
    assert!((0..ROWS).all(|number| store.action(&key(number)) == Some(value(number))), "{context}");
    hits
}

#[test]
fn a_database_cut_short_or_flipped_costs_rows_and_never_the_start() {
    let (folder, store) = new_store();
    assert!(fill(&store));
    drop(store);
    let file = folder.path().join("db.sqlite");
    let whole = fs::read(&file).unwrap();
    let cuts = [0, 1, 50, 99, 100, 4096, whole.len() / 3, whole.len() - 4097, whole.len() - 1];
    for cut in cuts {
        fs::write(&file, &whole[..cut]).unwrap();
        check(folder.path(), &format!("cut to {cut}"));
    }
    let mut random = super::Random(0x5eed);
    for round in 0..30 {
        let mut bytes = whole.clone();
        for _ in 0..=random.below(20) {
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }
        fs::write(&file, &bytes).unwrap();
        check(folder.path(), &format!("round {round}"));
    }
    fs::write(&file, vec![0xa5; 100_000]).unwrap();
    assert_eq!(check(folder.path(), "noise"), 0);
}

#[test]
fn a_missing_or_foreign_log_of_the_database_is_survived() {
    let (folder, store) = new_store();
    assert!(fill(&store));
    // Copied while in use, as a crash leaves it: the newest rows are in the log alone.
    let names = ["db.sqlite", "db.sqlite-wal", "db.sqlite-shm"];
    let copies: Vec<Vec<u8>> =
        names.iter().map(|name| fs::read(folder.path().join(name)).unwrap()).collect();
    drop(store);
    let lay_out = |kept: &[usize]| {
        for (number, name) in names.iter().enumerate() {
            let path = folder.path().join(name);
            match kept.contains(&number) {
                true => fs::write(path, &copies[number]).unwrap(),
                false => drop(fs::remove_file(path)),
            }
        }
    };
    lay_out(&[0, 1, 2]);
    assert_eq!(check(folder.path(), "as a crash leaves it"), ROWS as usize);
    lay_out(&[0, 1]);
    assert_eq!(check(folder.path(), "without -shm"), ROWS as usize);
    lay_out(&[0]);
    check(folder.path(), "without -wal and -shm");
    lay_out(&[0, 2]);
    check(folder.path(), "without -wal");
    lay_out(&[1, 2]);
    check(folder.path(), "without the database");
    lay_out(&[0, 1, 2]);
    let log = folder.path().join("db.sqlite-wal");
    let half = copies[1].len() / 2;
    fs::write(&log, &copies[1][..half]).unwrap();
    check(folder.path(), "half a log");
    lay_out(&[0, 1, 2]);
    fs::write(&log, vec![0xa5; 50_000]).unwrap();
    check(folder.path(), "noise as log");
}

#[test]
fn a_read_only_file_system_is_named() {
    let (folder, store) = new_store();
    assert!(fill(&store));
    drop(store);
    let path = folder.path();
    let mount = |arguments: &[&str]| {
        let status = Command::new("mount").args(arguments).arg(path).status().unwrap();
        assert!(status.success(), "{arguments:?}");
    };
    let name = path.to_str().unwrap();
    mount(&["--bind", name]);
    mount(&["-o", "remount,ro,bind"]);
    let opened = Store::open(path);
    let status = Command::new("umount").arg(path).status().unwrap();
    assert!(status.success());
    let error = opened.err().unwrap();
    assert!(error.to_string().contains("is on a read-only file system"), "{error}");
    assert!(error.hint().is_some());
    assert_eq!(check(path, "writable again"), ROWS as usize);
}
