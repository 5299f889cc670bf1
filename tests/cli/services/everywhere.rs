//! Services wherever an engine is: without root, through `pasta`, on another machine; and what is left of them
//! after `kill -9`.

use super::{bound, fresh, on_service, says, service};
use crate::remote::{Remote, SshServer, free_port};
use crate::terminal::{chain, types};
use rustix::process::Signal;
use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use testkit::process::{wait_until, with_argument};
use testkit::{Cli, Machine, Session, State, Terminal, User};

/// Services in a session: one that is bound to another, a port of the host, and a tunnel to it.
fn all_ways(session: &Session) {
    let inner = service(session, &says("inner", 8080));
    let relay = format!(
        r#"withServiceBinding(alias: "inner", service: "{inner}") {{ withExposedPort(port: 81) {{
            asService(args: ["nc", "-ll", "-p", "81", "-e", "nc", "-w", "5", "inner", "8080"]) {{ id }} }} }}"#
    );
    let outer = service(session, &relay);
    let line = format!("nc -w 5 web 81 # {}", fresh());
    assert_eq!(session.container(&bound("web", &outer, &line, "stdout")), "inner\n");
    // From the caller's machine, and to it.
    let id = super::ask(session, &inner, "id");
    let document = format!("{{ host {{ tunnel(service: {id}) {{ id }} }} }}");
    let tunnel = session.leaf(&document).as_str().unwrap().to_owned();
    super::ask(session, &tunnel, "start");
    let endpoint = super::ask(session, &tunnel, "endpoint");
    assert_eq!(fetch(endpoint.as_str().unwrap()), "inner\n");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = std::io::Write::write_all(&mut stream, b"of the host\n");
        }
    });
    let document = format!("{{ host {{ service(ports: [{{backend: {port}}}]) {{ id }} }} }}");
    let host = session.leaf(&document).as_str().unwrap().to_owned();
    let line = format!("nc -w 5 host {port} </dev/null # {}", fresh());
    assert_eq!(session.container(&bound("host", &host, &line, "stdout")), "of the host\n");
}

/// All that a server says.
fn fetch(address: &str) -> String {
    let mut said = String::new();
    TcpStream::connect(address).unwrap().read_to_string(&mut said).unwrap();
    said
}

#[test]
fn an_engine_without_root_has_services() {
    let state = State::of_user(User::with_ids(), "");
    let session = Session::start(&state);
    all_ways(&session);
    let dying = r#"withExposedPort(port: 80) { asService(args: ["sh", "-c", "exit 9"]) { id } }"#;
    let id = service(&session, dying);
    assert_eq!(session.exec_error(&on_service(&id, "start")).code, 9);
}

#[test]
fn services_are_reached_where_packets_go_through_pasta() {
    let state = State::new();
    let machine = Machine::new(1500);
    let chain = "{ type filter hook forward priority 0 ; policy drop ; }";
    machine.run("nft", &[&format!("add table inet theirs; add chain inet theirs forward {chain}")]);
    machine.start_engine(&state);
    let session = Session::start(&state);
    assert!(state.log().contains("does not pass packets on"), "{}", state.log());
    all_ways(&session);
}

#[test]
fn a_service_of_an_engine_elsewhere_is_up_on_the_clients_machine() {
    let remote = Remote::new();
    is_up_here(|words| remote.cli(words));
}

#[test]
fn a_service_of_an_engine_behind_ssh_is_up_on_the_clients_machine() {
    let server = SshServer::start();
    is_up_here(|words| server.cli(words));
    let [path, address] = server.environment();
    let surroundings = [(path.0, path.1.as_str()), (address.0, address.1.as_str())];
    all_ways(&Session::start_in(&server.client, &surroundings));
    assert!(testkit::leftovers::engines(&server.client.dir()).is_empty());
}

/// Runs a chain on a container with the static root file system.
fn run<'a>(cli: &impl Fn(&[&str]) -> Cli<'a>, words: &[&str]) -> String {
    let words = chain(words);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    cli(&words).run().ok().to_owned()
}

/// A service of an engine elsewhere on the machine of its client, and a port of that machine in a container there.
fn is_up_here<'a>(cli: impl Fn(&[&str]) -> Cli<'a>) {
    let port = free_port();
    let forwards = format!("--ports={port}:80");
    let words = chain(&[
        "with-exposed-port",
        "--port=80",
        "as-service",
        "--args=nc,-ll,-p,80,-e,echo,from there",
        "up",
        &forwards,
    ]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut running = cli(&words).spawn();
    running.wait_for(&format!("localhost:{port} -> "));
    assert_eq!(fetch(&format!("127.0.0.1:{port}")), "from there\n");
    running.signal_group(Signal::INT);
    running.wait().ok();
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    // And a port of the client's machine in a container there.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = std::io::Write::write_all(&mut stream, b"from here\n");
        }
    });
    let (here, line) =
        (format!("--service=tcp://localhost:{own}"), format!("--args=nc,-w,5,db,{own}"));
    let words = ["with-service-binding", "--alias=db", &here, "with-exec", &line, "stdout"];
    assert_eq!(run(&cli, &words), "from here\n");
}

#[test]
fn a_killed_engine_leaves_no_service_and_the_next_one_begins_anew() {
    let state = State::new();
    let port = free_port();
    for round in 0..3 {
        let session = Session::start(&state);
        let mark = fresh();
        let inner = service(&session, &says(&mark, 80));
        let bound_to = format!(
            r#"withServiceBinding(alias: "inner", service: "{inner}") {{ withExposedPort(port: 81) {{
                asService(args: ["nc", "-ll", "-p", "81", "-e", "echo", "outer {mark}"]) {{ id }} }} }}"#
        );
        let outer = service(&session, &bound_to);
        super::ask(&session, &outer, "start");
        let document = format!(
            r#"{{ host {{ tunnel(service: "{inner}", ports: [{{frontend: {port}, backend: 80}}]) {{ start }} }} }}"#
        );
        session.leaf(&document);
        assert_eq!(fetch(&format!("127.0.0.1:{port}")), format!("{mark}\n"));
        assert!(with_argument(&mark).len() >= 2);
        let holdings = state.kill_engine();
        for process in &holdings.processes {
            let gone = process.wait_gone();
            assert!(gone, "round {round}: {} is left", process.arguments());
        }
        assert!(with_argument(&mark).is_empty(), "round {round}");
        // The client is told, and lets go of the port.
        let free = || TcpListener::bind(("127.0.0.1", port)).is_ok();
        assert!(wait_until(state.remaining(), free), "round {round}: port {port} is taken");
        drop(session);
        let next = Session::start(&state);
        let again = service(&next, &says(&mark, 80));
        let line = format!("nc -w 5 web 80 # {}", fresh());
        assert_eq!(next.container(&bound("web", &again, &line, "stdout")), format!("{mark}\n"));
        let cgroups: Vec<_> = holdings.cgroups.iter().filter(|path| path.exists()).collect();
        assert!(cgroups.is_empty(), "round {round}: {cgroups:?}");
    }
}

#[test]
fn a_shell_in_a_service_that_runs() {
    let state = State::new();
    let words = [
        "with-exposed-port",
        "--port=80",
        "with-env-variable",
        "--name=OF",
        "--value=the-service",
        "as-service",
        "--args=sh,-c,echo up > /begun; exec nc -ll -p 80 -e cat /begun",
        "terminal",
    ];
    let mut terminal = Terminal::start(state.cli(chain(&words)), 80, 24);
    terminal.wait_for("/ #");
    assert!(terminal.is_raw());
    // Its files, its network, its variables.
    types(&mut terminal, "nc -w 5 127.0.0.1 80; cat /begun; echo $OF", "up\nup\nthe-service");
    types(&mut terminal, "clear; echo changed > /begun; nc -w 5 127.0.0.1 80", "changed\n/ #");
    types(&mut terminal, "clear; stty size", "24 80\n/ #");
    terminal.send("exit 3\r");
    let ended = terminal.wait();
    assert!(ended.ok().lines().last().unwrap().starts_with("Service@"), "{ended:#?}");
    // One that cannot be started has none.
    let words = ["with-exposed-port", "--port=80", "as-service", "--args=false", "terminal"];
    let terminal = Terminal::start(state.cli(chain(&words)), 80, 24);
    let ended = terminal.wait();
    assert!(ended.ends_with(1).contains("exit code: 1"), "{ended:#?}");
}

#[test]
fn services_are_bound_to_services_three_deep() {
    let state = State::new();
    let session = Session::start(&state);
    let mut id = service(&session, &says("end", 80));
    for level in 1..=3 {
        let line = format!("exec nc -ll -p 80 -e sh -c 'echo {level} $(nc -w 5 next 80)'");
        id = service(
            &session,
            &format!(
                r#"withServiceBinding(alias: "next", service: "{id}") {{ withExposedPort(port: 80) {{
                    asService(args: ["sh", "-c", {}]) {{ id }} }} }}"#,
                serde_json::json!(line)
            ),
        );
    }
    let line = format!("nc -w 5 first 80 # {}", fresh());
    assert_eq!(session.container(&bound("first", &id, &line, "stdout")), "3 2 1 end\n");
}
