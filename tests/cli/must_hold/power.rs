//! A power cut at any moment loses nothing that was said to be safe.
//!
//! The state folder is on a disk of its own. A copy of that disk has what the file system had written
//! to it and nothing of what only memory had: that is what a machine finds after a power cut.

use super::workload::{Seen, all_hit, begin_anew};
use rustix::process::Signal;
use testkit::process::signal;
use testkit::{Random, Session, State, rounds};

/// Room for all rounds of a soak; the file is sparse.
const MEBIBYTES: u64 = 2048;

#[test]
fn what_is_committed_survives_a_power_cut() {
    let mut random = Random::new("power");
    let state = State::on_disk(MEBIBYTES, "");
    let image = state.workdir().join("copy");
    for round in 0..rounds() {
        let context = format!("round {round}");
        let session = Session::start(&state);
        let root = session.busybox();
        begin_anew(&session);
        let seen = Seen::default();
        let target = 1 + random.below(4) as usize;
        let setting = (&state, &session, &*root);
        let safe = seen.interrupted(setting, (target, &mut random), || {
            let safe = seen.safe();
            // The engine stands still while its disk is copied, or the copy would never be of one
            // moment; what it has asked the kernel to write goes on.
            let engine = state.engine();
            signal(engine.pid, Signal::STOP);
            state.disk().copy(&image);
            signal(engine.pid, Signal::CONT);
            safe
        });
        drop(session);

        let after = state.another_on(&image);
        let session = Session::start(&after);
        let root = session.busybox();
        all_hit(&session, &root, &safe, &context);
        drop(session);
    }
}
