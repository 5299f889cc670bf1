//! Starting, sharing and ending of the engine.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;
use testkit::leftovers::engines;
use testkit::process::wait_until;
use testkit::{Session, State};

#[test]
fn the_first_command_starts_it_and_the_next_ones_use_it() {
    let state = State::new();
    state.cli(["core", "version"]).run().ok();
    let engine = state.engine();
    state.cli(["core", "version"]).run().ok();
    assert_eq!(state.engine(), engine);
}

#[test]
fn ten_commands_at_once_start_one_engine() {
    let state = State::new();
    let running: Vec<_> = (0..10).map(|_| state.cli(["core", "version"]).spawn()).collect();
    for command in running {
        command.wait().ok();
    }
    state.engine();
}

#[test]
fn it_ends_when_idle_and_leaves_no_socket() {
    let state = State::with_config("idle-timeout = \"300ms\"");
    state.cli(["core", "version"]).run().ok();
    let gone = wait_until(state.remaining(), || engines(&state.dir()).is_empty());
    assert!(gone, "{}", state.log());
    assert!(!state.dir().join("engine.sock").exists());
    state.cli(["core", "version"]).run().ok();
}

#[test]
fn it_does_not_end_while_a_session_is_open() {
    let state = State::with_config("idle-timeout = \"200ms\"");
    let session = Session::start(&state);
    let engine = state.engine();
    // Longer than the idle time, by work that the engine itself does.
    session.shell("sleep 1");
    assert!(engine.is_alive());
    assert!(session.query("{ version }")["version"].is_string());
    session.end();
    assert!(engine.wait_gone(), "{}", state.log());
}

#[test]
fn stopping_is_refused_while_a_session_is_open_unless_forced() {
    let state = State::new();
    let session = Session::start(&state);
    let engine = state.engine();
    let output = state.cli(["engine", "stop"]).run();
    assert!(!output.status.success(), "{output:#?}");
    assert!(engine.is_alive());
    state.cli(["engine", "stop", "--force"]).run().ok();
    assert!(engine.wait_gone());
    drop(session);
    let output = state.cli(["engine", "stop"]).run();
    assert!(output.status.success(), "there is none to stop: {output:#?}");
}

#[test]
fn status_tells_about_it_and_starts_none() {
    let state = State::new();
    let output = state.cli(["engine", "status"]).run();
    assert!(engines(&state.dir()).is_empty(), "{output:#?}");
    state.cli(["core", "version"]).run().ok();
    let output = state.cli(["engine", "status"]).run();
    assert!(output.ok().contains(&state.engine().pid.to_string()), "{output:#?}");
}

#[test]
fn another_engine_is_reached_by_its_address() {
    let state = State::new();
    let other = state.another();
    state.cli(["core", "version"]).run().ok();
    let address = format!("unix://{}", state.dir().join("engine.sock").display());
    other.cli(["core", "version"]).env("CITOOL_ENGINE", address).run().ok();
    assert!(engines(&other.dir()).is_empty(), "no engine of one's own was started");
}

#[test]
fn its_files_are_the_users_own() {
    let state = State::new();
    state.cli(["core", "version"]).run().ok();
    let socket = state.dir().join("engine.sock");
    let mode = std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode & 0o077, 0, "{mode:o}");
    assert!(state.dir().join("engine.log").exists());
}

#[test]
fn cold_start_is_quick() {
    // The figure proper is in the benchmarks; this only catches a start that waits for something.
    let state = State::new();
    let output = state.cli(["core", "version"]).run();
    output.ok();
    assert!(output.elapsed < Duration::from_secs(10), "{output:#?}");
}
