//! However it ends: no process of a user's engine is left, and the next one goes on.

use super::{core, rootfs, state};
use rustix::process::Signal;
use testkit::leftovers::mounts_below;
use testkit::process::{named, wait_until, with_argument};
use testkit::{Random, Session, State, User, rounds};

fn number(name: &str) -> u64 {
    3_000_000 + Random::new(name).below(1 << 30)
}

#[test]
fn an_interrupt_ends_the_command() {
    let state = state();
    let (root, name) = (rootfs(), format!("sleep {}", number("rootless interrupt")));
    let script = format!("--args=sh,-c,{name}");
    let running = state.cli(core(&root, &["with-exec", &script, "stdout"])).spawn();
    assert!(wait_until(state.remaining(), || !named(&name).is_empty()), "{}", state.log());
    let processes = named(&name);
    state.look();
    running.signal_group(Signal::INT);
    running.wait().fails(2);
    for process in processes {
        assert!(process.wait_gone(), "{}", process.arguments());
    }
}

#[test]
fn a_killed_engine_leaves_no_process_and_the_next_cleans_up() {
    let state = state();
    let mut random = Random::new("rootless crashes");
    for round in 0..rounds() {
        let session = Session::start(&state);
        let kept = session.shell(&format!("echo kept {round}"));
        let name = format!("sleep {}", 3_000_000 + random.below(1 << 30));
        let script =
            format!("{name} & setsid {name} & mkdir /w; echo x > /w/f; chown -R 5 /w; wait");
        let document = session
            .on_container(&format!(r#"withExec(args: ["sh", "-c", "{script}"]) {{ stdout }}"#));
        let body = serde_json::json!({ "query": document }).to_string();
        let mut connection = session.endpoint.connect().unwrap();
        testkit::write_request(&mut connection, &session.endpoint.request(body)).unwrap();
        let started = || with_argument(&name).len() >= 2;
        assert!(wait_until(state.remaining(), started), "{}", state.log());
        let holdings = state.kill_engine();
        for process in &holdings.processes {
            let gone = process.wait_gone();
            assert!(gone, "round {round}: {} is left", process.arguments());
        }
        drop(session);
        let next = Session::start(&state);
        assert_eq!(next.shell(&format!("echo kept {round}")), kept);
        assert!(mounts_below(&state.dir()).is_empty(), "round {round}");
        let swept = wait_until(state.remaining(), || state.half_made().is_empty());
        assert!(swept, "round {round}: {:?}", state.half_made());
    }
}

#[test]
fn an_idle_engine_ends_by_itself() {
    let config = format!("{}idle-timeout = \"100ms\"\n", super::ALONE);
    let state = State::of_user(User::with_ids(), &config);
    let root = rootfs();
    for word in ["one", "two"] {
        let args = format!("--args=echo,{word}");
        let output = state.cli(core(&root, &["with-exec", &args, "stdout"])).run();
        assert_eq!(output.ok().trim(), word);
        let gone = || testkit::leftovers::engines(&state.dir()).is_empty();
        assert!(wait_until(state.remaining(), gone), "{}", state.log());
    }
}
