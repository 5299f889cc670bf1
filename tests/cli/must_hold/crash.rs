//! `kill -9` at random points of a running workload loses nothing that was said to be safe.

use super::workload::{Outputs, Seen, all_hit, begin_anew, run};
use testkit::leftovers::mounts_below;
use testkit::process::wait_until;
use testkit::{Random, Session, State, rounds};

#[test]
fn what_is_committed_survives_a_kill_and_a_closed_session_loses_nothing() {
    let mut random = Random::new("crash");
    let state = State::new();
    let mut expected = Outputs::new();
    for round in 0..rounds() {
        let context = format!("round {round}");
        let session = Session::start(&state);
        let root = session.busybox();
        assert!(mounts_below(&state.dir()).is_empty(), "{context}");
        all_hit(&session, &root, &expected, &context);
        let swept = wait_until(state.remaining(), || state.half_made().is_empty());
        assert!(swept, "{context}: {:?}", state.half_made());

        begin_anew(&session);
        expected = closed_session(&state, &mut random);
        let seen = Seen::default();
        let target = random.below(8) as usize;
        let setting = (&state, &session, &*root);
        let holdings = seen.interrupted(setting, (target, &mut random), || state.kill_engine());
        for process in &holdings.processes {
            let gone = process.wait_gone();
            assert!(gone, "{context}: {} is left", process.arguments());
        }
        expected.extend(seen.safe());
        drop(session);
    }
    let session = Session::start(&state);
    let root = session.busybox();
    all_hit(&session, &root, &expected, "at the end");
}

/// What a session has run that was closed before anything happened.
fn closed_session(state: &State, random: &mut Random) -> Outputs {
    let session = Session::start(state);
    let root = session.busybox();
    let mut outputs = Outputs::new();
    for _ in 0..=random.below(3) {
        let word = random.word();
        let output = run(&session, &root, &word).expect("the engine runs");
        outputs.insert(word, output);
    }
    assert_eq!(session.end(), 0);
    outputs
}
