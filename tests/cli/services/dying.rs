//! Services that end when they should not, and what is left of services.

use super::{ask, bound, fresh, on_service, says, service};
use serde_json::json;
use testkit::{Session, State};

/// A service that ends badly.
fn fails(line: &str) -> String {
    let line = json!(line);
    format!(r#"withExposedPort(port: 80) {{ asService(args: ["sh", "-c", {line}]) {{ id }} }}"#)
}

#[test]
fn a_service_that_ends_before_it_is_ready_is_an_exec_error() {
    let state = State::new();
    let session = Session::start(&state);
    let id = service(&session, &fails("echo ' out '; echo err >&2; exit 42"));
    let host = ask(&session, &id, "hostname");
    let host = host.as_str().unwrap();
    let error = session.exec_error(&on_service(&id, "start"));
    assert_eq!(error.message, format!("start {host}: exit code: 42"));
    assert_eq!((error.code, &*error.stdout, &*error.stderr), (42, " out \n", "err\n"));
    let error = session.exec_error(&session.on_container(&bound("db", &id, "true", "stdout")));
    assert_eq!(error.message, format!("start {host} (aliased as db): exit code: 42"));
    let missing = r#"withExposedPort(port: 80) { asService(args: ["no-such-program"]) { id } }"#;
    let id = service(&session, missing);
    let error = session.exec_error(&on_service(&id, "start"));
    assert!(error.message.contains("cannot run `no-such-program`"), "{}", error.message);
    assert_eq!(error.code, 127);
}

#[test]
fn a_service_that_dies_takes_the_command_with_it() {
    let state = State::new();
    let session = Session::start(&state);
    // It ends as soon as somebody says so.
    let line =
        "nc -l -p 81 >/dev/null & listening=$!; nc -ll -p 80 -e echo up & wait $listening; exit 3";
    let chain = format!(
        r#"withExposedPort(port: 80) {{ withEnvVariable(name: "F", value: "{}") {{
            asService(args: ["sh", "-c", "{line}"]) {{ id }} }} }}"#,
        fresh()
    );
    let inner = service(&session, &chain);
    let host = ask(&session, &inner, "hostname");
    let kill = "until echo x | nc -w 5 db 81; do sleep 0.01; done; sleep 1000";
    let error = session.exec_error(&session.on_container(&bound("db", &inner, kill, "stdout")));
    let host = host.as_str().unwrap();
    let expected = format!("bound service {host} (aliased as db) exited: exit code: 3");
    assert_eq!((error.message, error.code), (expected, 3));
    // Through a service in between.
    let outer = format!(
        r#"withServiceBinding(alias: "inner", service: {}) {{ withExposedPort(port: 82) {{
            asService(args: ["nc", "-ll", "-p", "82", "-e", "sh", "-c", "echo x | nc -w 5 inner 81"]) {{ id }} }} }}"#,
        json!(inner)
    );
    let outer = service(&session, &outer);
    let outer_host = ask(&session, &outer, "hostname");
    let kill = "while :; do nc -w 5 web 82; sleep 0.01; done";
    let error = session.exec_error(&session.on_container(&bound("web", &outer, kill, "stdout")));
    let expected = format!(
        "bound service {} (aliased as web) exited: bound service {host} (aliased as inner) exited: exit code: 3",
        outer_host.as_str().unwrap()
    );
    assert_eq!((error.message, error.code), (expected, 3));
}

#[test]
fn many_services_run_at_once_and_nothing_of_them_is_left() {
    let state = State::new();
    let session = Session::start(&state);
    let count = 200;
    let busybox = json!(session.busybox());
    let services: String = (0..count)
        .map(|number| {
            format!(
                r#"s{number}: withExposedPort(port: 80) {{
                    asService(args: ["nc", "-ll", "-p", "80", "-e", "echo", "number {number}"]) {{ start }} }} "#
            )
        })
        .collect();
    let all = session
        .query(&format!("{{ container {{ withRootfs(directory: {busybox}) {{ {services} }} }} }}"));
    let all = all["container"]["withRootfs"].as_object().unwrap();
    let ids: Vec<&str> =
        all.values().map(|it| it["asService"]["start"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), count);
    let mut line = String::new();
    for id in &ids {
        let host = ask(&session, id, "hostname");
        line += &format!("nc -w 5 {} 80; ", host.as_str().unwrap());
    }
    let said = session.shell(&format!("({line}) | sort -u | wc -l"));
    assert_eq!(said.trim(), count.to_string());
    // The state looks for what is left when it is dropped.
    drop(session);
}

#[test]
fn services_end_with_their_session() {
    let state = State::new();
    let session = Session::start(&state);
    let mark = fresh();
    let id = service(&session, &says(&mark, 80));
    ask(&session, &id, "start");
    let runs = || {
        let marked = |entry: std::fs::DirEntry| {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&mark)
        };
        std::fs::read_dir("/proc").unwrap().flatten().any(marked)
    };
    assert!(runs());
    session.end();
    assert!(testkit::process::wait_until(state.remaining(), || !runs()));
}
