//! `ci-tool run`: a command with a session in its environment.

use rustix::process::Signal;
use testkit::process::{wait_until, with_argument};
use testkit::{Endpoint, Random, State};

const SHOW_SESSION: &str = "echo $CITOOL_SESSION_PORT $CITOOL_SESSION_TOKEN";

#[test]
fn the_child_finds_a_session_that_answers() {
    let state = State::new();
    let script = format!("{SHOW_SESSION}; read line; echo got $line");
    let mut run = state.cli(["run", "--", "sh", "-c", &script]).stdin_open().spawn();
    run.wait_for("\n");
    let text = run.stdout_so_far();
    let (port, token) = text.trim().split_once(' ').expect("port and token");
    assert!(token.len() == 64 && token.chars().all(|c| c.is_ascii_hexdigit()), "{token}");
    let endpoint = Endpoint { port: port.parse().unwrap(), token: token.to_owned() };
    let reply = endpoint.send(&endpoint.request(r#"{"query":"{ version }"}"#)).unwrap();
    assert!(reply.json()["data"]["version"].is_string(), "{reply:?}");
    run.write(b"hello\n");
    let output = run.wait();
    assert!(output.ok().ends_with("got hello\n"), "{output:#?}");
    assert!(endpoint.send(&endpoint.request("{}")).is_err(), "the session ended with the child");
}

#[test]
fn names_that_published_client_libraries_read_are_set_too() {
    let state = State::new();
    let script = "test $DAGGER_SESSION_PORT = $CITOOL_SESSION_PORT && \
                  test $DAGGER_SESSION_TOKEN = $CITOOL_SESSION_TOKEN && echo same";
    let output = state.cli(["run", "sh", "-c", script]).run();
    assert_eq!(output.ok(), "same\n");
}

#[test]
fn input_output_and_exit_code_are_the_childs() {
    let state = State::new();
    let output = state.cli(["run", "sh", "-c", "cat; echo talk >&2; exit 42"]).stdin("in\n").run();
    assert!(output.fails(42).contains("talk"), "{output:#?}");
    assert_eq!(output.stdout, "in\n");
    let output = state.cli(["run", "sh", "-c", "kill -9 $$"]).run();
    assert_eq!(output.code(), 137, "{output:#?}");
}

#[test]
fn flags_of_the_child_stay_the_childs() {
    let state = State::new();
    let output = state.cli(["run", "echo", "--focus", "-q", "--help"]).run();
    assert_eq!(output.ok(), "--focus -q --help\n");
}

#[test]
fn a_missing_command_is_an_error() {
    let state = State::new();
    let output = state.cli(["run", "no-such-command-here"]).run();
    assert!(output.fails(1).contains("no-such-command-here"), "{output:#?}");
    let output = state.cli(["run"]).run();
    assert!(!output.fails(1).is_empty(), "{output:#?}");
}

#[test]
fn an_interrupt_ends_the_child_with_sigterm() {
    let state = State::new();
    let script = "trap 'echo cleaned; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    let mut run = state.cli(["run", "sh", "-c", script]).spawn();
    run.wait_for("ready");
    run.signal(Signal::INT);
    let output = run.wait();
    assert!(output.stdout.contains("cleaned"), "{output:#?}");
    assert!(output.fails(2).contains("cancel"), "says that it was cancelled: {output:#?}");
}

#[test]
fn a_child_that_does_not_end_is_killed_after_the_time() {
    let state = State::new();
    let marker = Random::new("cleanup-timeout").below(1 << 40).to_string();
    let script = format!("trap '' TERM INT; echo ready; while :; do sleep 0.05; done; : {marker}");
    let mut run = state.cli(["run", "--cleanup-timeout", "500ms", "sh", "-c", &script]).spawn();
    run.wait_for("ready");
    run.signal(Signal::INT);
    let output = run.wait();
    output.fails(2);
    let gone = || with_argument(&marker).is_empty();
    assert!(wait_until(state.remaining(), gone), "the child was killed");
}

#[test]
fn focus_shows_only_the_child() {
    let state = State::new();
    state.file(
        "ask.py",
        "import base64, json, os, urllib.request\n\
         request = urllib.request.Request('http://127.0.0.1:%s/query' % os.environ['CITOOL_SESSION_PORT'],\n\
         \x20   json.dumps({'query': '{ directory { entries } }'}).encode(), {'content-type': 'application/json',\n\
         \x20   'authorization': 'Basic ' + base64.b64encode((os.environ['CITOOL_SESSION_TOKEN'] + ':').encode()).decode()})\n\
         print(json.load(urllib.request.urlopen(request))['data'])\n",
    );
    let output = state.cli(["run", "--focus", "python3", "ask.py"]).run();
    assert_eq!(output.ok(), "{'directory': {'entries': []}}\n");
    assert_eq!(output.stderr, "");
}

#[test]
fn a_command_inside_a_session_joins_it() {
    let state = State::new();
    let binary = testkit::binary();
    let script = format!("echo '{{ version }}' | {} query", binary.display());
    let output = state.cli(["run", "sh", "-c", &script]).run();
    assert!(output.ok().contains("version"), "{output:#?}");
}
