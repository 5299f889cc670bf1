//! Services on the caller's machine: tunnels, and `up`.

use super::{ask, on_service, says, service};
use rustix::process::Signal;
use serde_json::json;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use testkit::{Session, State};

/// All that a server says.
fn fetch(address: &str) -> String {
    let mut said = String::new();
    TcpStream::connect(address).unwrap().read_to_string(&mut said).unwrap();
    said
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn a_tunnel_leads_from_the_host_to_a_service() {
    let state = State::new();
    let session = Session::start(&state);
    let upstream = service(&session, &says("hello", 8080));
    let tunnel = |options: &str| {
        let id = json!(upstream);
        let document = format!("{{ host {{ tunnel(service: {id}{options}) {{ id }} }} }}");
        session.leaf(&document).as_str().unwrap().to_owned()
    };
    let id = tunnel("");
    let said = session.error(&on_service(&id, "endpoint"));
    assert!(said.contains("the tunnel is not open"), "{said}");
    ask(&session, &id, "start");
    let endpoint = ask(&session, &id, "endpoint");
    let endpoint = endpoint.as_str().unwrap();
    assert!(endpoint.starts_with("localhost:") && !endpoint.ends_with(":8080"), "{endpoint}");
    for _ in 0..3 {
        assert_eq!(fetch(endpoint), "hello\n");
    }
    ask(&session, &id, "stop");
    assert!(TcpStream::connect(endpoint).is_err());
    // A port of one's own, and one that somebody has.
    let port = free_port();
    let id = tunnel(&format!(", ports: [{{frontend: {port}, backend: 8080}}]"));
    ask(&session, &id, "start");
    assert_eq!(fetch(&format!("127.0.0.1:{port}")), "hello\n");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let id = tunnel(&format!(", ports: [{{frontend: {port}, backend: 8080}}]"));
    let said = session.error(&on_service(&id, "start"));
    assert!(said.contains("is in use by another program"), "{said}");
    let silent = service(&session, r#"asService(args: ["sleep", "1000"]) { id }"#);
    // Said as soon as it is named: who starts it may be far away.
    let document = format!("{{ host {{ tunnel(service: {}) {{ id }} }} }}", json!(silent));
    assert!(session.error(&document).contains("there are no ports to listen on"));
    let document = format!(
        "{{ host {{ tunnel(service: {}, ports: [{{backend: 0}}]) {{ id }} }} }}",
        json!(upstream)
    );
    assert!(session.error(&document).contains("0 is no port"));
    let document =
        format!("{{ host {{ tunnel(service: {}, native: true) {{ id }} }} }}", json!(tunnel("")));
    assert!(session.error(&document).contains("only the service of a container"));
    let bind = format!(
        r#"withServiceBinding(alias: "t", service: {}) {{ withExec(args: ["true"]) {{ stdout }} }}"#,
        json!(tunnel(""))
    );
    let said = session.error(&session.on_container(&bind));
    assert!(said.contains("containers cannot be bound to it"), "{said}");
}

#[test]
fn up_runs_until_it_is_interrupted() {
    let state = State::new();
    let port = free_port();
    let rootfs = format!("--directory={}", testkit::busybox().display());
    let words =
        ["core", "container", "with-rootfs", &rootfs, "with-exposed-port", "--port=80", "up"];
    let forwards = format!("--ports={port}:80");
    let mut running = state.cli(words).args(["--args=nc,-ll,-p,80,-e,cat", &forwards]).spawn();
    running.wait_for(&format!("localhost:{port} -> "));
    // Each side ends by itself.
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(&[7; 100_000]).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut back = vec![];
    stream.read_to_end(&mut back).unwrap();
    assert_eq!(back.len(), 100_000);
    running.signal_group(Signal::INT);
    running.wait().ok();
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn whoever_waits_is_told_where_it_is_without_a_terminal_too() {
    let state = State::new();
    let port = free_port();
    let rootfs = format!("--directory={}", testkit::busybox().display());
    let mut running = state
        .cli(["--progress=report", "core", "container", "with-rootfs", &rootfs])
        .args(["with-exposed-port", "--port=80", "as-service", "--args=nc,-ll,-p,80,-e,echo,hi"])
        .args(["up", &format!("--ports={port}:80")])
        .spawn();
    running.wait_for(&format!("[ci-tool] localhost:{port} -> s"));
    assert_eq!(fetch(&format!("127.0.0.1:{port}")), "hi\n");
    running.signal_group(Signal::INT);
    let output = running.wait();
    output.ok();
    assert!(!output.stderr.contains("Interrupted"), "{}", output.stderr);
    // A port that nobody opens is named, and stopping the wait is no failure either.
    let mut running = state
        .cli(["--progress=report", "core", "container", "with-rootfs", &rootfs])
        .args(["with-exposed-port", "--port=81", "as-service", "--args=nc,-ll,-p,80,-e,echo,hi"])
        .args(["up", "--random"])
        .spawn();
    running.wait_for("[ci-tool] nobody listens on port 81/tcp of the service yet");
    running.signal_group(Signal::INT);
    running.wait().ok();
}

#[test]
fn up_ends_with_an_error_when_the_service_does() {
    let state = State::new();
    let rootfs = format!("--directory={}", testkit::busybox().display());
    let output = state
        .cli(["core", "container", "with-rootfs", &rootfs, "with-exposed-port", "--port=80"])
        .args(["as-service", "--args=sh,-c,exit 5", "up", "--random"])
        .run();
    let said = output.fails(5);
    assert!(said.contains("exit code: 5"), "{said}");
}

#[test]
fn a_real_redis_is_reached_as_typed() {
    let state = State::debian();
    let port = free_port();
    let mut running = state
        .cli(["core", "container", "from", "--address=deb://bookworm+redis-server"])
        .args(["with-exposed-port", "--port=6379", "as-service"])
        .args(["--args=redis-server", "up", &format!("--ports={port}:6379")])
        .spawn();
    running.wait_for(&format!("localhost:{port} -> "));
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut say = |line: &str| {
        stream.write_all(line.as_bytes()).unwrap();
        let mut answer = [0; 64];
        let length = stream.read(&mut answer).unwrap();
        String::from_utf8_lossy(&answer[..length]).into_owned()
    };
    assert_eq!(say("SET key value\r\n"), "+OK\r\n");
    assert_eq!(say("GET key\r\n"), "$5\r\nvalue\r\n");
    running.signal_group(Signal::INT);
    running.wait();
    // The same in a pipeline, with redis's own client.
    let session = Session::start(&state);
    let image = r#"from(address: "deb://bookworm+redis-server")"#;
    let id = session.leaf(&format!(
        r#"{{ container {{ {image} {{ withExposedPort(port: 6379) {{
            asService(args: ["redis-server", "--protected-mode", "no"]) {{ id }} }} }} }} }}"#
    ));
    let said = session.leaf(&format!(
        r#"{{ container {{ {image} {{ withServiceBinding(alias: "db", service: {id}) {{
            withExec(args: ["redis-cli", "-h", "db", "incr", "n"]) {{
            withExec(args: ["redis-cli", "-h", "db", "incr", "n"]) {{ stdout }} }} }} }} }} }}"#
    ));
    assert_eq!(said, "2\n");
}
