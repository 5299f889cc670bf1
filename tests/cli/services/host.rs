//! The caller's machine as a service of containers.

use super::{bound, fresh};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use testkit::{Session, State};

/// A server on the loopback that reads to the end, and then says how much that was.
fn counting() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut all = vec![];
            let _ = stream.read_to_end(&mut all);
            let _ = stream.write_all(format!("{} bytes\n", all.len()).as_bytes());
        }
    });
    port
}

fn host_service(session: &Session, ports: &str) -> Value {
    session.leaf(&format!("{{ host {{ service(ports: [{ports}]) {{ id }} }} }}"))
}

#[test]
fn a_command_reaches_a_port_of_the_host_and_either_side_ends_by_itself() {
    let state = State::new();
    let session = Session::start(&state);
    let port = counting();
    let id = host_service(&session, &format!("{{frontend: 80, backend: {port}}}"));
    let id = id.as_str().unwrap();
    // The command ends its side first, and hears the answer then.
    let line = format!("head -c 300000 /dev/zero | nc -w 10 db 80 # {}", fresh());
    assert_eq!(session.container(&bound("db", id, &line, "stdout")), "300000 bytes\n");
    let endpoint = super::ask(&session, id, "endpoint");
    assert!(endpoint.as_str().unwrap().ends_with(":80"), "{endpoint}");
    // Nobody listens there any more.
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let id = host_service(&session, &format!("{{backend: {gone}}}"));
    let line = format!("nc -w 5 db {gone} </dev/null | wc -c");
    assert_eq!(session.container(&bound("db", id.as_str().unwrap(), &line, "stdout")), "0\n");
    let said = session.error("{ host { service(ports: []) { id } } }");
    assert!(said.contains("at least one port"), "{said}");
    let said = session.error("{ host { service(ports: [{backend: 70000}]) { id } } }");
    assert!(said.contains("70000 is no port"), "{said}");
    for address in ["tcp://nohost", "tcp://:80", "http://host:80", "tcp://host:0", "host:80", ""] {
        let said = session
            .error(&format!("{{ address(value: {}) {{ service {{ id }} }} }}", json!(address)));
        assert!(said.contains("is not of the form tcp://host:port"), "{address}: {said}");
    }
}

#[test]
fn a_port_of_the_host_that_nobody_has_is_told_once() {
    let state = State::new();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let rootfs = format!("--directory={}", testkit::busybox().display());
    let line =
        format!("--args=sh,-c,for n in 1 2 3; do nc -w 5 db {gone} </dev/null; done; exit 9");
    let output = state
        .cli(["--progress=report", "core", "container", "with-rootfs", &rootfs])
        .args(["with-service-binding", "--alias=db", &format!("--service=tcp://localhost:{gone}")])
        .args(["with-exec", &line, "stdout"])
        .run();
    output.fails(9);
    let told = output.stderr.lines().filter(|line| line.starts_with("[ci-tool] "));
    let told: Vec<&str> = told.collect();
    assert!(told.len() == 1 && told[0].contains(&format!(":{gone}")), "{}", output.stderr);
}

#[test]
fn a_close_of_the_host_reaches_the_container() {
    let state = State::new();
    let session = Session::start(&state);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(b"bye\n");
        }
    });
    let id = host_service(&session, &format!("{{backend: {port}}}"));
    // It has nothing to say, and waits for the end.
    let line = format!("nc db {port} -e sh -c 'cat >&2' 2>&1 # {}", fresh());
    assert_eq!(session.container(&bound("db", id.as_str().unwrap(), &line, "stdout")), "bye\n");
}

#[test]
fn a_port_of_the_host_is_a_value_of_a_flag_and_an_address() {
    let state = State::new();
    let port = counting();
    let session = Session::start(&state);
    let address = format!("tcp://localhost:{port}");
    let id = session.leaf(&format!("{{ address(value: \"{address}\") {{ service {{ id }} }} }}"));
    let line = format!("echo x | nc -w 5 db {port} # {}", fresh());
    let said = session.container(&bound("db", id.as_str().unwrap(), &line, "stdout"));
    assert_eq!(said, "2 bytes\n");
    for odd in ["localhost:80", "tcp://localhost", "http://localhost:80", "tcp://:80"] {
        let value = json!(odd);
        let said =
            session.error(&format!("{{ address(value: {value}) {{ service {{ hostname }} }} }}"));
        assert!(said.contains("is not of the form tcp://host:port"), "{odd}: {said}");
    }
    let rootfs = format!("--directory={}", testkit::busybox().display());
    let output = state
        .cli(["core", "container", "with-rootfs", &rootfs, "with-service-binding", "--alias=db"])
        .args([&format!("--service={address}"), "with-exec"])
        .args([&format!("--args=sh,-c,echo xyz | nc -w 5 db {port}"), "stdout"])
        .run();
    assert_eq!(output.ok(), "4 bytes\n");
}

#[test]
fn packets_reach_the_host() {
    let state = State::debian();
    let session = Session::start(&state);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let _ = socket.send_to(&buffer[..length].to_ascii_uppercase(), from);
        }
    });
    let id = host_service(&session, &format!("{{frontend: 53, backend: {port}, protocol: UDP}}"));
    let asks = json!(
        "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.5)\nwhile True:\n try:\n  s.sendto(b'hello', ('names', 53)); print(s.recv(99).decode()); break\n except TimeoutError: pass"
    );
    let said = session.leaf(&format!(
        r#"{{ container {{ from(address: "deb://bookworm+python3") {{
            withServiceBinding(alias: "names", service: {id}) {{
            withExec(args: ["python3", "-c", {asks}]) {{ stdout }} }} }} }} }}"#
    ));
    assert_eq!(said, "HELLO\n");
}
