//! No container reaches another session's, nor the host itself; and nothing of the network outlives the
//! engine.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;
use testkit::process::wait_until;
use testkit::{Machine, Random, Session, State, rounds};

/// How long the kernel may take to let go of what was a dead engine's.
const GONE_TIME: Duration = Duration::from_secs(20);

#[test]
fn nothing_stays_in_the_hosts_network_after_the_engine() {
    let state = State::new();
    let machine = Machine::new(1400);
    let before = machine.network();
    let mut random = Random::new("network after the engine");
    for round in 0..rounds().div_ceil(8) {
        machine.start_engine(&state);
        assert_ne!(machine.network(), before, "there is something while it runs");
        let session = Session::start(&state);
        session.shell(&format!("echo {round}"));
        let killed = random.below(2) == 0;
        match killed {
            true => drop(state.kill_engine()),
            false => {
                drop(session);
                state.stop();
            }
        }
        let same = wait_until(GONE_TIME, || machine.network() == before);
        assert!(same, "round {round}, killed {killed}:\n{}\nbefore:\n{before}", machine.network());
    }
}

#[test]
fn two_engines_in_one_network_do_not_disturb_each_other() {
    let one = State::new();
    let two = one.another();
    let machine = Machine::new(1400);
    let before = machine.network();
    machine.start_engine(&one);
    machine.start_engine(&two);
    let listener = machine.outside(|| TcpListener::bind((Machine::INTERNET, 8080)).unwrap());
    std::thread::spawn(move || while listener.accept().is_ok() {});
    let reach = "nc -w 5 203.0.113.1 8080 </dev/null && echo reached";
    one.kill_engine();
    let session = Session::start(&two);
    assert_eq!(session.shell(reach), "reached\n", "the other's end changes nothing");
    drop(session);
    two.stop();
    assert!(wait_until(GONE_TIME, || machine.network() == before), "{}", machine.network());
}

/// Where a container of the session listens, and the session's connection that keeps it.
fn listening(state: &State, session: &Session, port: u16) -> (String, TcpStream) {
    let script = format!(
        "ip -4 -o addr show eth0 | sed 's/.*inet //; s,/.*,,'; while :; do echo | nc -l -p {port}; done"
    );
    let document = session.on_container(&format!(
        r#"withExec(args: ["sh", "-c", {}]) {{ stdout }}"#,
        serde_json::Value::from(script)
    ));
    let body = serde_json::json!({ "query": document }).to_string();
    let mut connection = session.endpoint.connect().unwrap();
    testkit::write_request(&mut connection, &session.endpoint.request(body)).unwrap();
    let mark = format!("-l -p {port}");
    let up = || !testkit::process::with_argument(&mark).is_empty();
    assert!(wait_until(state.remaining(), up), "{}", state.log());
    let process = testkit::process::with_argument(&mark)[0];
    let table = std::fs::read_to_string(format!("/proc/{}/net/fib_trie", process.pid)).unwrap();
    let own = table.lines().filter_map(|line| line.trim().strip_prefix("|-- "));
    let address =
        own.filter(|address| address.starts_with("10.")).find(|address| !address.ends_with(".0.1"));
    (address.expect("a container has an address").to_owned(), connection)
}

#[test]
fn containers_of_two_sessions_do_not_reach_each_other() {
    let state = State::new();
    let (one, two) = (Session::start(&state), Session::start(&state));
    let port = 20_000 + Random::new("two sessions").below(20_000) as u16;
    let (address, _held) = listening(&state, &one, port);
    for session in [&two, &one] {
        let said = session.shell(&format!(
            "nc -w 3 {address} {port} </dev/null && echo reached || echo not; ping -c 1 -W 1 {address} >/dev/null && echo reached || echo not"
        ));
        assert_eq!(said, "not\nnot\n", "{address}");
    }
}

#[test]
fn no_container_reaches_a_session_or_the_loopback_of_the_host() {
    let state = State::new();
    let session = Session::start(&state);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let ports = [listener.local_addr().unwrap().port(), session.endpoint.port];
    let gateway = session.shell("sed -n 's/nameserver //p' /etc/resolv.conf");
    let gateway: Ipv4Addr = gateway.trim().parse().unwrap();
    let host = Ipv4Addr::from(u32::from(gateway) + 0xfffc);
    let own = session
        .shell("hostname -i 2>/dev/null; ip -4 -o addr show eth0 | sed 's/.*inet //; s,/.*,,'");
    let addresses = [
        "127.0.0.1".to_owned(),
        gateway.to_string(),
        host.to_string(),
        "169.254.169.254".to_owned(),
    ];
    for address in addresses {
        for port in ports {
            let line = format!("nc -w 2 {address} {port} </dev/null && echo reached || echo not");
            assert_eq!(session.shell(&line), "not\n", "{address}:{port} from {own}");
        }
    }
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "nobody came");
}

#[test]
fn many_short_commands_run_out_of_nothing() {
    let state = State::with_config("subnet = \"192.168.212.0/24\"");
    let machine = Machine::new(1500);
    machine.start_engine(&state);
    let session = Session::start(&state);
    // More than there are addresses.
    for round in 0..(rounds() * 15) {
        assert_eq!(
            session.shell(&format!("echo {round} >/dev/null; ls /sys/class/net")),
            "eth0\nlo\n"
        );
    }
}
