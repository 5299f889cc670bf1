//! The network of containers without root: out through `pasta`, and nothing of it in the host's network.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use testkit::{Machine, Session, State, User};

/// Starts the user's engine in the machine.
fn start(machine: &Machine, state: &State) {
    let user = state.user().unwrap();
    let become_user = [
        "setpriv".to_owned(),
        format!("--reuid={}", user.uid),
        format!("--regid={}", user.gid),
        "--clear-groups".to_owned(),
        state.binary().display().to_string(),
    ];
    let root = state.program(Path::new("/usr/bin/nsenter")).as_root().args(machine.entrance());
    root.args(become_user).args(["core", "version"]).run().ok();
}

/// A script that asks. It does not end its own side first: older versions of `pasta` send the answer
/// again and again then.
fn ask(address: SocketAddr) -> String {
    let (ip, port) = (address.ip(), address.port());
    format!("mknod /open p; nc -w 3 {ip} {port} 0<>/open 2>&1 || echo failed")
}

/// What an engine could change in the machine's network.
fn network(machine: &Machine) -> [String; 4] {
    let ip = |words: &[&str]| machine.run("ip", words);
    let rules = machine.run("nft", &["list", "ruleset"]);
    [ip(&["-4", "-o", "addr"]), ip(&["-o", "link"]), ip(&["-4", "route"]), rules]
}

#[test]
fn commands_reach_the_outside_and_not_the_machine() {
    let state = State::of_user(User::with_ids(), "");
    let machine = Machine::new(1400);
    let before = network(&machine);
    start(&machine, &state);
    let session = Session::start(&state);
    assert_eq!(session.shell(&ask(machine.server())), Machine::ADDRESS.to_string());
    let local = machine.inside(|| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    let port = local.local_addr().unwrap().port();
    for address in [Ipv4Addr::LOCALHOST, Machine::ADDRESS, Machine::INTERNET] {
        let said = session.shell(&ask((address, port).into()));
        assert!(said.contains("failed"), "{address}: {said}");
    }
    assert_eq!(network(&machine), before, "the machine's network is not ours to change");
    let holdings = state.kill_engine();
    assert!(holdings.processes.len() >= 4, "engine, helpers and `pasta`: {holdings:?}");
    for process in &holdings.processes {
        assert!(process.wait_gone(), "{} is left", process.arguments());
    }
    drop(session);
    start(&machine, &state);
    assert_eq!(Session::start(&state).shell("echo again"), "again\n");
}
