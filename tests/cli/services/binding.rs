//! Containers that services are bound to.

use super::{ask, bound, fresh, says, service};
use serde_json::json;
use testkit::{Session, State};

#[test]
fn an_alias_is_known_to_its_container_alone() {
    let state = State::new();
    let session = Session::start(&state);
    let id = service(&session, &says("hello", 8080));
    let line = format!("nc -w 5 web 8080 # {}", fresh());
    assert_eq!(session.container(&bound("web", &id, &line, "stdout")), "hello\n");
    let not = format!("nc -w 2 web 8080 2>/dev/null || echo unknown # {}", fresh());
    assert_eq!(session.shell(&not), "unknown\n");
    // The last one of an alias counts.
    let other = json!(service(&session, &says("other", 8080)));
    let line = json!(format!("nc -w 5 web 8080 # {}", fresh()));
    let twice = format!(
        r#"withServiceBinding(alias: "web", service: {}) {{
            withServiceBinding(alias: "web", service: {other}) {{
            withExec(args: ["sh", "-c", {line}]) {{ stdout }} }} }}"#,
        json!(id)
    );
    assert_eq!(session.container(&twice), "other\n");
}

#[test]
fn what_is_bound_is_part_of_the_name_of_a_command_and_runs_only_when_it_must() {
    let state = State::new();
    let line = "cat /proc/sys/kernel/random/uuid; nc -w 5 web 80";
    let run = |session: &Session, word: &str| {
        let id = service(session, &says(word, 80));
        session.container(&bound("web", &id, line, "stdout"))
    };
    let session = Session::start(&state);
    let first = run(&session, "one");
    assert!(first.ends_with("one\n"), "{first}");
    drop(session);
    let session = Session::start(&state);
    assert_eq!(run(&session, "one"), first);
    let second = run(&session, "two");
    assert!(second.ends_with("two\n") && second != first, "{second}");
}

#[test]
fn one_service_serves_many_and_services_are_bound_to_services() {
    let state = State::new();
    let session = Session::start(&state);
    // It counts who connects, so one that runs twice would begin again.
    let counting = "echo 0 > /n; cat > /count <<'E'\\n#!/bin/sh\\nread n < /n; n=$((n+1)); echo $n > /n; echo $n\\nE\\nchmod +x /count; exec nc -ll -p 80 -e /count";
    let chain = format!(
        r#"withExposedPort(port: 80, experimentalSkipHealthcheck: true) {{
            asService(args: ["sh", "-c", "{counting}"]) {{ id }} }}"#
    );
    let inner = service(&session, &chain);
    let relay = json!("exec nc -ll -p 81 -e sh -c 'echo via $(nc -w 5 inner 80)'");
    let outer = format!(
        r#"withServiceBinding(alias: "inner", service: {}) {{
            withExposedPort(port: 81, experimentalSkipHealthcheck: true) {{
            asService(args: ["sh", "-c", {relay}]) {{ id }} }} }}"#,
        json!(inner)
    );
    let outer = service(&session, &outer);
    // Nobody waits for it to listen.
    let patient = |host: &str, port: u16| {
        format!("until nc -w 5 {host} {port}; do sleep 0.01; done # {}", fresh())
    };
    let mut heard = vec![];
    for _ in 0..2 {
        let said = session.container(&bound("inner", &inner, &patient("inner", 80), "stdout"));
        heard.push(said.trim().to_owned());
        let said = session.container(&bound("outer", &outer, &patient("outer", 81), "stdout"));
        heard.push(said.trim().to_owned());
    }
    assert_eq!(heard, ["1", "via 2", "3", "via 4"]);
    assert_ne!(ask(&session, &outer, "hostname"), ask(&session, &inner, "hostname"));
}

#[test]
fn what_a_bound_command_wrote_is_read_afterwards() {
    let state = State::new();
    let session = Session::start(&state);
    let id = service(&session, &says("hello", 80));
    let line = format!("nc -w 5 web 80 > /out # {}", fresh());
    let read = r#"file(path: "/out") { contents }"#;
    assert_eq!(session.container(&bound("web", &id, &line, read)), "hello\n");
    let entries = r#"directory(path: "/") { file(path: "out") { size } }"#;
    assert_eq!(session.leaf(&session.on_container(&bound("web", &id, &line, entries))), 6);
    let again = json!("nc -w 5 web 80 >> /out; cat /out");
    let more = format!(r#"withExec(args: ["sh", "-c", {again}]) {{ stdout }}"#);
    assert_eq!(session.container(&bound("web", &id, &line, &more)), "hello\nhello\n");
}

#[test]
fn packets_reach_a_service_too() {
    let state = State::debian();
    let session = Session::start(&state);
    let serve = json!(
        "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.bind(('', 5353))\nwhile True:\n d, a = s.recvfrom(9999); s.sendto(d.upper(), a)"
    );
    let python = r#"from(address: "deb://bookworm+python3")"#;
    let id = session.leaf(&format!(
        r#"{{ container {{ {python} {{ withExposedPort(port: 5353, protocol: UDP) {{
            asService(args: ["python3", "-c", {serve}]) {{ id }} }} }} }} }}"#
    ));
    let asks = json!(
        "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.2)\nwhile True:\n try:\n  s.sendto(b'hello', ('echo', 5353)); print(s.recv(99).decode()); break\n except (TimeoutError, ConnectionError): pass"
    );
    let said = session.leaf(&format!(
        r#"{{ container {{ {python} {{ withServiceBinding(alias: "echo", service: {id}) {{
            withExec(args: ["python3", "-c", {asks}]) {{ stdout }} }} }} }} }}"#
    ));
    assert_eq!(said, "HELLO\n");
}
