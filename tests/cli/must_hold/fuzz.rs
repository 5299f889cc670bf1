//! Damaged traffic at every door: a request, a greeting, what follows a greeting. Each connection ends,
//! the engine stays the same one, and others are served.

use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use testkit::{Random, Session, State, rounds};

/// Connections in one round.
const CONNECTIONS: usize = 20;
/// Bounds a hang.
const DEADLINE: Duration = Duration::from_secs(30);

/// Reads what comes until the connection ends; a wait past the deadline fails the test.
fn drain(mut connection: impl Read, sent: &[u8]) {
    let mut bytes = vec![0; 16 << 10];
    loop {
        match connection.read(&mut bytes) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!("no end of the connection after {:?}", String::from_utf8_lossy(sent));
            }
            Err(_) => return,
        }
    }
}

#[test]
fn damaged_requests_end_and_others_are_answered() {
    let state = State::new();
    let session = Session::start(&state);
    let mut random = Random::new("damaged requests");
    let body =
        json!({ "query": "{ directory { entries } }", "variables": { "a": [1, null, "x"] } });
    let request = testkit::whole(&session.endpoint.request(body.to_string()));
    let engine = state.engine().pid;
    for _ in 0..rounds() as usize {
        for _ in 0..CONNECTIONS {
            let mut bytes = request.clone();
            random.damage(&mut bytes);
            let mut connection = session.endpoint.connect().unwrap();
            connection.set_read_timeout(Some(DEADLINE)).unwrap();
            // It may be refused before all of it was sent.
            let _ = connection.write_all(&bytes);
            let _ = connection.shutdown(Shutdown::Write);
            drain(connection, &bytes);
        }
        assert_eq!(session.leaf("{ directory { entries } }"), json!([]));
    }
    assert_eq!(state.engine().pid, engine, "the same engine");
}

#[test]
fn damaged_greetings_and_what_follows_them() {
    let state = State::new();
    let session = Session::start(&state);
    let mut random = Random::new("damaged greetings");
    let engine = state.engine().pid;
    let socket = state.dir().join("engine.sock");
    let (mut owner, name) = open(&socket);
    let purposes = [
        json!({ "query": { "workdir": "/", "labels": [["a", "b"]] } }),
        json!({ "attach": { "session": name, "handsOver": true } }),
        json!({ "attach": { "session": "nobody" } }),
        json!({ "handOver": { "session": name, "token": "t" } }),
    ];
    for _ in 0..rounds() as usize {
        for _ in 0..CONNECTIONS {
            let mut line = hello(random.pick(&purposes));
            let mut rest = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x04\x08\0\0\0\0\0\0\x0f\0\x01".to_vec();
            // Half of them are greeted well and go on badly.
            if random.below(2) == 0 {
                random.damage(&mut line);
            }
            random.damage(&mut rest);
            line.extend(rest);
            let mut connection = UnixStream::connect(&socket).unwrap();
            connection.set_read_timeout(Some(DEADLINE)).unwrap();
            let _ = connection.write_all(&line);
            let _ = connection.shutdown(Shutdown::Write);
            drain(connection, &line);
        }
        assert_eq!(session.leaf("{ directory { entries } }"), json!([]));
    }
    owner.write_all(b"noise").unwrap();
    assert_eq!(state.engine().pid, engine, "the same engine");
}

fn hello(purpose: &Value) -> Vec<u8> {
    let hello =
        json!({ "wire": protocol::WIRE_VERSION, "version": protocol::VERSION, "purpose": purpose });
    format!("{hello}\n").into_bytes()
}

/// Opens a session by hand and gives its secret name.
fn open(socket: &std::path::Path) -> (UnixStream, String) {
    let mut connection = UnixStream::connect(socket).unwrap();
    connection.write_all(&hello(&json!({ "query": {} }))).unwrap();
    let (mut line, mut byte) = (vec![], [0]);
    while byte != [b'\n'] {
        connection.read_exact(&mut byte).unwrap();
        line.push(byte[0]);
    }
    let welcome: Value = serde_json::from_slice(&line).unwrap();
    let name = welcome["welcome"]["session"].as_str().expect("a session has a name").to_owned();
    (connection, name)
}
