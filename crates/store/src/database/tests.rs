//! Rows survive a restart, damage does not stop a start.

use super::*;

fn durable(folder: &Path) -> Arc<Durable> {
    let root = std::fs::File::open(folder).unwrap();
    Arc::new(Durable::start(folder.to_owned(), root.into()).unwrap())
}

fn open(folder: &Path) -> Database {
    Database::open(folder, durable(folder)).unwrap()
}

fn digest(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

fn remembered(value: impl Into<Vec<u8>>) -> Remembered {
    let (value, label) = (value.into(), "a test".to_owned());
    Remembered { value, kind: "test", label, needs: vec![] }
}

#[test]
fn rows_are_visible_at_once_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (key, gone, call) = (digest("key"), digest("gone"), digest("call"));
    let layer = LayerId::random();
    {
        let database = open(folder.path());
        database.put_action(key, remembered(b"one".to_vec()));
        database.put_action(key, remembered(b"two".to_vec()));
        database.put_action(gone, remembered(b"x".to_vec()));
        database.flush().unwrap();
        database.remove_action(&gone);
        database.put_calls(vec![(call, b"record".to_vec())]);
        database.put_merge(digest("list"), layer, 3);
        database.put_tree_digest(digest("snapshot"), digest("tree"));
        assert_eq!(database.action(&key).unwrap(), b"two");
        assert_eq!(database.action(&gone), None);
        assert_eq!(database.call_by_handle(call.handle()).unwrap(), (call, b"record".to_vec()));
        assert_eq!(database.level(layer), 3);
    }
    let database = open(folder.path());
    assert_eq!(database.action(&key).unwrap(), b"two");
    assert_eq!(database.action(&gone), None);
    assert_eq!(database.call(&call).unwrap(), b"record");
    assert_eq!(database.call_by_handle(call.handle()).unwrap(), (call, b"record".to_vec()));
    assert_eq!(database.call_by_handle(1), None);
    assert_eq!(database.merge(&digest("list")), Some((layer, 3)));
    assert_eq!(database.level(layer), 3);
    assert_eq!(database.level(LayerId::random()), 0);
    assert_eq!(database.tree_digest(&digest("snapshot")), Some(digest("tree")));
}

#[test]
fn flush_commits_for_other_processes() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path());
    database.flush().unwrap();
    database.put_action(digest("a"), remembered(b"x".to_vec()));
    database.flush().unwrap();
    let other = Connection::open(folder.path().join("db.sqlite")).unwrap();
    let count: i64 = other.query_row("SELECT count(*) FROM actions", [], |row| row.get(0)).unwrap();
    assert_eq!(count, 1);
}

#[test]
fn a_damaged_file_is_moved_aside() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db.sqlite");
    std::fs::write(&path, "this is no database, whatever its name says".repeat(100)).unwrap();
    let database = open(folder.path());
    database.put_action(digest("a"), remembered(b"x".to_vec()));
    database.flush().unwrap();
    assert!(folder.path().join("db.sqlite.damaged").exists());
}

#[test]
fn damage_found_in_use_is_a_miss_and_renews_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db.sqlite");
    {
        let database = open(folder.path());
        for number in 0..500 {
            database.put_action(digest(&number.to_string()), remembered(vec![7; 500]));
        }
    }
    let mut bytes = std::fs::read(&path).unwrap();
    // The first page has the schema and stays; later pages are turned to noise.
    bytes[16 * 4096..].fill(0xa5);
    std::fs::write(&path, &bytes).unwrap();
    {
        let database = open(folder.path());
        let hits = (0..500).filter(|n| database.action(&digest(&n.to_string())).is_some()).count();
        assert!(hits < 500, "{hits}");
    }
    let database = open(folder.path());
    assert!(folder.path().join("db.sqlite.damaged").exists());
    database.put_action(digest("a"), remembered(b"x".to_vec()));
    database.flush().unwrap();
    assert_eq!(database.action(&digest("a")).unwrap(), b"x");
}

#[test]
fn old_call_records_expire_and_others_stay() {
    let folder = tempfile::tempdir().unwrap();
    let (old, young) = (digest("old"), digest("young"));
    {
        let database = open(folder.path());
        database.put_calls(vec![(old, b"o".to_vec()), (young, b"y".to_vec())]);
        database.flush().unwrap();
    }
    let age = |digest: &Digest, days: i64| {
        let file = Connection::open(folder.path().join("db.sqlite")).unwrap();
        let sql = "UPDATE calls SET last_used = ?2 WHERE digest = ?1";
        let seconds = now() - days * 24 * 3600;
        file.execute(sql, (digest.as_bytes(), seconds)).unwrap();
    };
    age(&old, 8);
    age(&young, 6);
    {
        let database = open(folder.path());
        // A use is noted and starts the seven days anew.
        assert!(database.call(&young).is_some());
    }
    let database = open(folder.path());
    assert_eq!(database.call(&old), None);
    let sql = "SELECT last_used FROM calls WHERE digest = ?1";
    let used: i64 = database.read(sql, [young.as_bytes()], |row| row.get(0)).unwrap();
    assert!(now() - used < 3600);
}

#[test]
fn another_schema_is_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()));
    let file = Connection::open(folder.path().join("db.sqlite")).unwrap();
    file.pragma_update(None, "user_version", 99).unwrap();
    drop(file);
    let database = open(folder.path());
    database.put_action(digest("a"), remembered(b"x".to_vec()));
    database.flush().unwrap();
    assert!(folder.path().join("db.sqlite.damaged").exists());
}

fn committed(folder: &Path) -> i64 {
    let other = Connection::open(folder.join("db.sqlite")).unwrap();
    other.query_row("SELECT count(*) FROM actions", [], |row| row.get(0)).unwrap()
}

/// Nobody commits here: a flush that waited would never end.
#[test]
fn a_flush_does_not_wait_for_unhurried_rows() {
    let queue = Queue::default();
    queue.put_unhurried(digest("a"), row(remembered(b"x".to_vec())));
    queue.flush().unwrap();
}

/// Unhurried rows come soon and at the end.
#[test]
fn unhurried_rows_are_committed_soon_and_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path());
    database.put_unhurried(digest("a"), remembered(b"x".to_vec()));
    assert_eq!(database.action(&digest("a")).unwrap(), b"x");
    let begin = std::time::Instant::now();
    while committed(folder.path()) < 1 {
        assert!(begin.elapsed().as_secs() < 30, "it never came");
        std::thread::yield_now();
    }
    // With others that are waited for; and what is put as both is waited for.
    database.put_unhurried(digest("b"), remembered(b"y".to_vec()));
    database.put_unhurried(digest("c"), remembered(b"y".to_vec()));
    database.put_action(digest("c"), remembered(b"z".to_vec()));
    database.put_action(digest("d"), remembered(b"z".to_vec()));
    database.flush().unwrap();
    assert!(committed(folder.path()) >= 3);
    drop(database);
    assert_eq!(committed(folder.path()), 4);
    assert_eq!(open(folder.path()).action(&digest("b")).unwrap(), b"y");
}
