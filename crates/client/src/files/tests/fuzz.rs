//! An engine that asks for anything: every question is answered, and nothing outside is touched.

use super::*;
use std::time::Duration;
use testkit::{Random, rounds};

/// Damaged questions in one round.
const QUESTIONS: usize = 10;
/// Bounds a hang.
const DEADLINE: Duration = Duration::from_secs(20);

/// Questions in their right form; of paths they name only `a` in the working directory.
fn questions() -> Vec<(&'static str, Vec<u8>)> {
    let read = ReadRequest { include: vec!["x".into()], ..directory("a") };
    let json = |value: serde_json::Value| serde_json::to_vec(&value).unwrap();
    vec![
        (READ_PATH, serde_json::to_vec(&read).unwrap()),
        (FIND_UP_PATH, json(serde_json::json!({ "name": "a" }))),
        (
            OPEN_PATH,
            json(
                serde_json::json!({ "path": "a", "purpose": { "read": { "gitignore": true } }, "token": "t" }),
            ),
        ),
        (LOGIN_PATH, json(serde_json::json!({ "registry": "registry" }))),
        (SECRET_PATH, json(serde_json::json!({ "uri": "env:a" }))),
        (SOCKET_PATH, vec![]),
        (WRITE_PATH, frame(FrameKind::End, b"")),
    ]
}

#[tokio::test]
async fn damaged_questions_are_answered() {
    let mut random = Random::new("damaged questions");
    let mut served = Served::new().await;
    served.write("a/file", "text");
    let questions = questions();
    for _ in 0..rounds() as usize * QUESTIONS {
        let (path, mut body) = random.pick(&questions).clone();
        random.damage(&mut body);
        // No damage makes another path of `a`.
        for byte in body.iter_mut().filter(|byte| matches!(byte, b'/' | b'.' | b'~')) {
            *byte = b'x';
        }
        let request = Request::post(path).body(full(body.into())).unwrap();
        let answered = tokio::time::timeout(DEADLINE, served.post(request));
        answered.await.expect("every question is answered");
    }
    assert_eq!(served.listed(&[], &[], false).await, ["a", "a/file"]);
}

#[tokio::test]
async fn damaged_trees_are_written_nowhere_else() {
    let mut random = Random::new("damaged trees");
    let mut served = Served::new().await;
    let entry = |path: &str, kind: EntryKind| {
        let entry = Entry {
            path: path.into(),
            kind,
            mode: 0o644,
            modified: 0,
            size: 2,
            target: "t".into(),
        };
        frame(FrameKind::Entry, &serde_json::to_vec(&entry).unwrap())
    };
    let tree = [
        entry("d", EntryKind::Directory),
        entry("d/f", EntryKind::File),
        frame(FrameKind::Data, b"hi"),
        frame(FrameKind::EndOfFile, b""),
        entry("l", EntryKind::Symlink),
        frame(FrameKind::End, b""),
    ];
    for _ in 0..rounds() as usize * QUESTIONS {
        let mut frames = tree.concat();
        random.damage(&mut frames);
        let sending = served.send("out", Writing::Directory { wipe: false }, frames);
        // What comes of it does not matter, as long as something does.
        let _ = tokio::time::timeout(DEADLINE, sending).await.expect("every write is answered");
    }
    let above: Vec<_> = fs::read_dir(served.work()).unwrap().flatten().collect();
    assert!(above.iter().all(|entry| entry.file_name() == "out"), "{above:?}");
}
