//! What is said before anything else: versions, and who may come in.

use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use testkit::State;

/// Writes one line to the engine and reads one back.
fn greet(state: &State, line: &str) -> String {
    let mut stream = UnixStream::connect(state.dir().join("engine.sock")).unwrap();
    stream.set_read_timeout(Some(state.remaining())).unwrap();
    let _ = writeln!(stream, "{line}");
    let mut answer = String::new();
    let _ = BufReader::new(stream).read_line(&mut answer);
    answer
}

#[test]
fn another_version_is_refused_with_a_hint() {
    let state = State::new();
    state.cli(["core", "version"]).run().ok();
    for (wire, version) in
        [(protocol::WIRE_VERSION + 1, protocol::VERSION), (protocol::WIRE_VERSION, "0.0.1")]
    {
        let hello = json!({"wire": wire, "version": version, "purpose": {"query": {}}});
        let answer: Value = serde_json::from_str(&greet(&state, &hello.to_string())).unwrap();
        let refused = &answer["refused"];
        assert!(
            refused["message"].as_str().is_some_and(|text| text.contains("version")),
            "{answer}"
        );
        assert_eq!(refused["engine"]["version"], protocol::VERSION, "{answer}");
        assert!(refused["hints"].as_array().is_some_and(|hints| !hints.is_empty()), "{answer}");
    }
    let hello = json!({"wire": protocol::WIRE_VERSION, "version": protocol::VERSION, "purpose": {"query": {}}});
    let answer: Value = serde_json::from_str(&greet(&state, &hello.to_string())).unwrap();
    assert!(answer["welcome"]["session"].as_str().is_some_and(|name| name.len() >= 32), "{answer}");
}

#[test]
fn nonsense_is_sent_away_and_the_engine_goes_on() {
    let state = State::new();
    state.cli(["core", "version"]).run().ok();
    for line in ["", "{}", "nonsense", "GET / HTTP/1.1", &"x".repeat(200_000), "[1,2"] {
        let answer = greet(&state, line);
        assert!(!answer.contains("welcome"), "{answer}");
    }
    let hello = json!({"wire": protocol::WIRE_VERSION, "version": protocol::VERSION,
        "purpose": {"attach": {"session": "0000"}}});
    let answer = greet(&state, &hello.to_string());
    assert!(!answer.contains("welcome"), "no session has that name: {answer}");
    state.cli(["core", "version"]).run().ok();
}

#[test]
fn a_connection_that_says_nothing_disturbs_nobody() {
    let state = State::new();
    state.cli(["core", "version"]).run().ok();
    let silent: Vec<UnixStream> =
        (0..50).map(|_| UnixStream::connect(state.dir().join("engine.sock")).unwrap()).collect();
    state.cli(["core", "version"]).run().ok();
    drop(silent);
}
