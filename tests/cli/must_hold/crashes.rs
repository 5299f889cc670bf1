//! `kill -9` of the engine: no process is left, and the next start cleans the rest.

use testkit::leftovers::mounts_below;
use testkit::process::{wait_until, with_argument};
use testkit::{Random, Session, State, rounds};

#[test]
fn a_killed_engine_leaves_no_process_and_the_next_cleans_up() {
    let mut random = Random::new("crashes");
    let state = State::new();
    for round in 0..rounds() {
        let session = Session::start(&state);
        let kept = session.shell(&format!("echo kept {round}"));
        let number = 1_000_000 + random.below(1 << 30);
        let document = session.on_container(&format!(
            r#"withExec(args: ["sh", "-c", "sleep {number} & setsid sleep {number} & echo x > /f; wait"]) {{ stdout }}"#
        ));
        let body = serde_json::json!({ "query": document }).to_string();
        let mut connection = session.endpoint.connect().unwrap();
        testkit::write_request(&mut connection, &session.endpoint.request(body)).unwrap();
        let name = format!("sleep {number}");
        let started = || with_argument(&name).len() >= 2;
        assert!(wait_until(state.remaining(), started), "{}", state.log());

        let holdings = state.kill_engine();
        assert!(holdings.processes.len() >= 4, "engine, zygote, init and commands: {holdings:?}");
        for process in &holdings.processes {
            let gone = process.wait_gone();
            assert!(gone, "round {round}: {} is left", process.arguments());
        }
        assert!(with_argument(&name).is_empty(), "round {round}");
        drop(session);

        let next = Session::start(&state);
        assert_eq!(next.shell(&format!("echo kept {round}")), kept);
        let cgroups: Vec<_> = holdings.cgroups.iter().filter(|path| path.exists()).collect();
        assert!(cgroups.is_empty(), "round {round}: the next start removes {cgroups:?}");
        assert!(mounts_below(&state.dir()).is_empty(), "round {round}");
        let swept = wait_until(state.remaining(), || state.half_made().is_empty());
        assert!(swept, "round {round}: {:?}", state.half_made());
    }
}

#[test]
fn a_killed_zygote_is_an_error_and_not_the_end() {
    let state = State::new();
    let session = Session::start(&state);
    session.shell("true");
    let engine = state.engine();
    let zygote = testkit::process::tree(engine.pid)
        .into_iter()
        .find(|process| process.pid != engine.pid && process.arguments().contains("ci-tool.init"))
        .expect("the engine has a zygote");
    zygote.kill();
    assert!(zygote.wait_gone());
    // What asks now gets an answer, whatever it is, and a new engine does the work.
    let reply =
        session.send(&session.on_container(r#"withExec(args: ["echo", "after"]) { stdout }"#));
    assert_eq!(reply.status, 200);
    drop(session);
    let _ = state.cli(["engine", "stop", "--force"]).run();
    assert!(engine.wait_gone(), "{}", state.log());
    assert_eq!(Session::start(&state).shell("echo after"), "after\n");
}
