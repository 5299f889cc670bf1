//! Cancels at random points: all processes gone, nothing leaks, the engine goes on.

use rustix::process::Signal;
use std::time::Duration;
use testkit::process::{Process, tree, wait_until, with_argument};
use testkit::{Random, Session, State, busybox, rounds};

/// Open descriptors of a process.
fn descriptors(process: Process) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", process.pid)).map_or(0, |entries| entries.count())
}

#[test]
fn cancels_at_random_points_leave_nothing() {
    let mut random = Random::new("cancels");
    let state = State::with_config("grace = \"2s\"");
    let warm = Session::start(&state);
    warm.shell("true");
    let engine = state.engine();
    let before = descriptors(engine);
    // The next container waits half-made, but perhaps it was not there yet.
    let processes_before = tree(engine.pid).len() + 1;
    for round in 0..rounds() {
        let number = 1_000_000 + random.below(1 << 30);
        let rootfs = format!("--directory={}", busybox().display());
        let script = format!(
            "--args=sh,-c,echo {number} > /f; sleep {number} & dd if=/dev/zero of=/z bs=64k count=200; wait"
        );
        let first = format!("--args=sh,-c,echo {number} > /first");
        let chain = [
            "core",
            "container",
            "with-rootfs",
            &rootfs,
            "with-exec",
            &first,
            "with-exec",
            &script,
            "stdout",
        ];
        let running = state.cli(chain).spawn();
        std::thread::sleep(Duration::from_micros(random.below(400_000)));
        let signal = *random.pick(&[Signal::INT, Signal::TERM, Signal::KILL]);
        running.signal_group(signal);
        running.wait();
        let gone = || with_argument(&format!("sleep {number}")).is_empty();
        assert!(wait_until(state.remaining(), gone), "round {round}, {signal:?}: {}", state.log());
    }
    assert_eq!(warm.shell("echo healthy"), "healthy\n");
    assert_eq!(state.engine(), engine, "the engine was there all the time");
    let calm = || tree(engine.pid).len() <= processes_before && descriptors(engine) <= before + 8;
    assert!(
        wait_until(state.remaining(), calm),
        "descriptors {before} before, {} after; processes {processes_before} before, {} after",
        descriptors(engine),
        tree(engine.pid).len()
    );
    let swept = || state.half_made().is_empty();
    assert!(wait_until(state.remaining(), swept), "{:?}", state.half_made());
}

#[test]
fn a_request_whose_connection_goes_is_cancelled() {
    let mut random = Random::new("connections");
    let state = State::with_config("grace = \"1s\"");
    let session = Session::start(&state);
    session.shell("true");
    for round in 0..rounds() {
        let number = 1_000_000 + random.below(1 << 30);
        let document =
            session.on_container(&format!(r#"withExec(args: ["sleep", "{number}"]) {{ stdout }}"#));
        let body = serde_json::json!({ "query": document }).to_string();
        let mut connection = session.endpoint.connect().unwrap();
        testkit::write_request(&mut connection, &session.endpoint.request(body)).unwrap();
        let name = format!("sleep {number}");
        if random.below(2) == 0 {
            assert!(
                wait_until(state.remaining(), || !with_argument(&name).is_empty()),
                "{}",
                state.log()
            );
        } else {
            std::thread::sleep(Duration::from_micros(random.below(5_000)));
        }
        drop(connection);
        // It may not have begun yet: give it the time it would need, then look.
        let gone = || with_argument(&name).is_empty();
        assert!(wait_until(state.remaining(), gone), "round {round}");
        assert_eq!(session.shell(&format!("echo {number}")), format!("{number}\n"));
        let gone_again = wait_until(state.remaining(), gone);
        assert!(gone_again, "round {round}: it was started after nobody waited");
    }
}
