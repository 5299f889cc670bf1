//! `ci-tool session`: what a client library that starts us relies on.

use rustix::process::Signal;
use serde_json::Value;
use std::io::BufReader;
use testkit::{Random, Session, State};

#[test]
fn the_first_line_has_exactly_two_keys() {
    let state = State::new();
    let mut run = state.cli(["session"]).stdin_open().spawn();
    run.wait_for("\n");
    let line = run.stdout_so_far();
    let hello: Value = serde_json::from_str(&line).unwrap();
    let keys: Vec<&String> = hello.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["port", "session_token"], "{line}");
    let token = hello["session_token"].as_str().unwrap();
    assert!(token.len() == 64 && token.chars().all(|c| c.is_ascii_hexdigit()), "{token}");
    run.close_stdin();
    let output = run.wait();
    assert_eq!(output.ok(), line, "nothing after the first line");
    assert_eq!(output.stderr, "", "a session that nobody asked to talk is quiet");
}

#[test]
fn it_ends_with_its_input_and_with_signals() {
    let state = State::new();
    assert_eq!(Session::start(&state).end(), 0);
    for signal in [Signal::TERM, Signal::INT] {
        let mut run = state.cli(["session"]).stdin_open().spawn();
        run.wait_for("\n");
        run.signal(signal);
        let output = run.wait();
        assert_eq!(output.status.code(), Some(0), "{signal:?}: {output:#?}");
    }
}

#[test]
fn arguments_of_old_and_new_libraries_are_accepted() {
    let state = State::new();
    let label = ["--label", "dagger.io/sdk.name:python", "--label", "dagger.io/sdk.version:0.16.3"];
    for extra in [
        &[][..],
        &["--project", "/x"],
        &["--serve-module"],
        &["--load-workspace-modules"],
        &["--skip-workspace-modules"],
        &["--version", "0.18.0"],
        &["-vv"],
    ] {
        let session = Session::start_with(&state, &[&label[..], extra].concat());
        assert!(session.query("{ version }")["version"].is_string(), "{extra:?}");
        assert_eq!(session.end(), 0, "{extra:?}");
    }
}

#[test]
fn the_working_directory_can_be_chosen() {
    let state = State::new();
    state.file("elsewhere/note.txt", "found");
    let folder = state.workdir().join("elsewhere");
    let session = Session::start_with(&state, &["--workdir", folder.to_str().unwrap()]);
    let contents = session.leaf(r#"{ host { file(path: "note.txt") { contents } } }"#);
    assert_eq!(contents, "found");
}

#[test]
fn a_session_that_cannot_start_says_so_and_prints_no_line() {
    let state = State::with_config("no-such-key = 1");
    let output = state.cli(["session"]).stdin_open().run();
    assert!(!output.status.success(), "{output:#?}");
    assert_eq!(output.stdout, "");
    assert!(output.stderr.contains("no-such-key"), "{output:#?}");
}

#[test]
fn requests_may_share_a_connection() {
    let state = State::new();
    let session = Session::start(&state);
    let stream = session.endpoint.connect().unwrap();
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    let body = r#"{"query":"{ version }","variables":null,"operationName":""}"#;
    for _ in 0..3 {
        let mut request = session.endpoint.request(body);
        request.headers.push(("connection".into(), "keep-alive".into()));
        let reply = testkit::send_on(&mut writer, &mut reader, &request).unwrap();
        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("content-type"), Some("application/json"), "{reply:?}");
        assert!(reply.json().get("errors").is_none(), "{reply:?}");
    }
}

#[test]
fn requests_run_side_by_side() {
    let state = State::new();
    let session = Session::start(&state);
    let key = Random::new("side by side").word();
    let cache = session.leaf(&format!(r#"{{ cacheVolume(key: "{key}") {{ id }} }}"#));
    // Each waits for the file that the other makes.
    let exec = |own: &str, other: &str| {
        let script =
            format!("touch /c/{own}; until test -e /c/{other}; do usleep 5000; done; echo {own}");
        session.on_container(&format!(
            r#"withMountedCache(path: "/c", cache: {cache}) {{ withExec(args: ["sh", "-c", {script:?}]) {{ stdout }} }}"#
        ))
    };
    let (one, two) = (exec("one", "two"), exec("two", "one"));
    std::thread::scope(|scope| {
        let first = scope.spawn(|| session.leaf(&one));
        assert_eq!(session.leaf(&two), "two\n");
        assert_eq!(first.join().unwrap(), "one\n");
    });
}
