//! Ten thousand queries that nobody would write: made from the schema, with hostile values in the
//! arguments of everything that works, or with damage done to the text. Each is answered, by data or by
//! an error that says what is wrong and is not ours, and memory stays flat.

mod make;
mod values;

use make::{Maker, Query};
use serde_json::{Value, json};
use std::io::BufReader;
use std::sync::atomic::{AtomicUsize, Ordering};
use testkit::process::{Process, tree};
use testkit::{Endpoint, Random, Session, State, rounds, send_on};

/// Queries in one round; each round has a session of its own.
const QUERIES: usize = 500;
/// Connections that send at the same time.
const CONNECTIONS: usize = 4;
/// Rounds after which everything that is made once has been made.
const WARM: u32 = 4;
/// What memory may differ by afterwards, pages of the allocator and the database included.
const GROWTH: u64 = 64 << 20;
/// The longest text that people can still read.
const LONGEST_MESSAGE: usize = 16 << 10;

#[test]
fn ten_thousand_of_them_are_answered() {
    let state = State::new();
    state.file("present/a.txt", "text\n");
    let schema = e2e::schema().unwrap();
    let mut random = Random::new("hostile queries");
    let (mut before, mut sent, mut answered) = (None, 0, 0);
    let first = Session::start(&state);
    let engine = state.engine().pid;
    for round in 0..rounds().max(WARM + 1) {
        let session = Session::start(&state);
        let mut maker = Maker::new(&schema, &mut random, known_objects(&session));
        let queries: Vec<Query> = (0..QUERIES).map(|_| maker.query()).collect();
        answered += answer_all(&session.endpoint, &queries);
        sent += queries.len();
        assert_eq!(session.end(), 0, "the session ends well");
        if round + 1 == WARM {
            before = Some(memory(engine));
        }
    }
    assert_eq!(first.leaf("{ directory { entries } }"), json!([]), "others are served");
    assert_eq!(state.engine().pid, engine, "the same engine");
    assert!(answered * 5 > sent, "too few get beyond their arguments: {answered} of {sent}");
    let (before, after) = (before.unwrap(), memory(engine));
    assert!(after < before + GROWTH, "memory is flat: {before} before, {after} after");
}

/// Memory of the engine's processes.
fn memory(engine: i32) -> u64 {
    tree(engine).iter().map(Process::proportional_memory).sum()
}

/// Ids of objects that exist, by type: what arguments and receivers can be.
fn known_objects(session: &Session) -> Vec<(&'static str, String)> {
    let root = json!(session.busybox());
    let data = session.query(&format!(
        r#"{{
            empty: container {{ id }}
            container {{ withRootfs(directory: {root}) {{ id }} }}
            directory {{ withNewFile(path: "a/b.txt", contents: "one\ntwo\n") {{ id }} }}
            file(name: "f.txt", contents: "text") {{ id }}
            cacheVolume(key: "fuzzed") {{ id }}
            setSecret(name: "fuzzed", plaintext: "plain text of a secret") {{ id }}
            host {{ unixSocket(path: "missing.sock") {{ id }} }}
        }}"#
    ));
    let found = [
        ("Container", "/empty/id"),
        ("Container", "/container/withRootfs/id"),
        ("Directory", "/directory/withNewFile/id"),
        ("File", "/file/id"),
        ("CacheVolume", "/cacheVolume/id"),
        ("Secret", "/setSecret/id"),
        ("Socket", "/host/unixSocket/id"),
    ];
    let id = |path| data.pointer(path).and_then(Value::as_str).expect("an id is text").to_owned();
    found.map(|(kind, path)| (kind, id(path))).into()
}

/// Sends all queries, several at a time, and counts those that were answered by data.
fn answer_all(endpoint: &Endpoint, queries: &[Query]) -> usize {
    let answered = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for connection in 0..CONNECTIONS {
            let answered = &answered;
            scope.spawn(move || {
                let mut writer = endpoint.connect().unwrap();
                let mut reader = BufReader::new(writer.try_clone().unwrap());
                for query in queries.iter().skip(connection).step_by(CONNECTIONS) {
                    let mut request = endpoint.request(query.body());
                    request.headers.push(("connection".into(), "keep-alive".into()));
                    let kinds = protocol::session::ERROR_KINDS_HEADER;
                    request.headers.push((kinds.into(), "1".into()));
                    let reply = send_on(&mut writer, &mut reader, &request);
                    let reply = reply.unwrap_or_else(|error| panic!("{error}: {query:?}"));
                    if is_clear(reply.status, &reply.json(), query) {
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    answered.into_inner()
}

/// Checks that an answer is data, or an error that says what is wrong; tells which.
#[track_caller]
fn is_clear(status: u16, reply: &Value, query: &Query) -> bool {
    assert!(matches!(status, 200 | 400 | 413), "{status}: {query:?}");
    if reply.get("errors").is_none() {
        assert!(reply["data"].is_object(), "{reply}: {query:?}");
        return true;
    }
    assert!(reply["data"].is_null(), "all or nothing: {reply}: {query:?}");
    let errors = reply["errors"].as_array().expect("errors are a list");
    assert!(!errors.is_empty(), "{query:?}");
    for error in errors {
        let message = error["message"].as_str().unwrap_or_default();
        assert!(!message.trim().is_empty(), "an error says something: {error}: {query:?}");
        assert!(message.len() <= LONGEST_MESSAGE, "{} bytes: {query:?}", message.len());
        let kind = error["extensions"]["_type"].as_str().unwrap_or_default();
        let ours = matches!(kind, "INTERNAL" | "LOST" | "CANCELLED") || message.contains("panic");
        assert!(!ours, "a defect: {error}: {query:?}");
    }
    false
}
