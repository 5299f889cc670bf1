//! Starting, naming, stopping.

use super::{ask, bound, fresh, on_service, says, service};
use serde_json::json;
use testkit::{Session, State};

#[test]
fn a_service_has_a_name_ports_and_an_endpoint() {
    let state = State::new();
    let session = Session::start(&state);
    let id = service(&session, &says("hello", 8080));
    let name = ask(&session, &id, "hostname");
    let host = name.as_str().unwrap();
    assert!(host.starts_with('s') && host.len() == 17, "{host}");
    assert_eq!(ask(&session, &id, "endpoint"), format!("{host}:8080"));
    assert_eq!(ask(&session, &id, "endpoint(port: 9)"), format!("{host}:9"));
    let url = ask(&session, &id, r#"endpoint(scheme: "http")"#);
    assert_eq!(url, format!("http://{host}:8080"));
    let ports = session.query(&on_service(&id, "ports { port protocol description }"));
    let port = json!({ "port": 8080, "protocol": "TCP", "description": null });
    assert_eq!(ports["loadServiceFromID"]["ports"], json!([port]));
    assert!(ask(&session, &id, "sync").is_string());
    // Equal services have equal names, in every session; others have others.
    let again = Session::start(&state);
    assert_eq!(ask(&again, &service(&again, &says("hello", 8080)), "hostname"), name);
    assert_ne!(ask(&session, &service(&session, &says("hallo", 8080)), "hostname"), name);
    let own = ask(&session, &id, r#"withHostname(hostname: "mine") { endpoint }"#);
    assert_eq!(own, "mine:8080");
    let odd = session.error(&on_service(&id, r#"withHostname(hostname: "a b") { hostname }"#));
    assert!(odd.contains("`a b` cannot be the name of a host"), "{odd}");
}

#[test]
fn without_a_command_or_a_port_there_is_an_error() {
    let state = State::new();
    let session = Session::start(&state);
    let said = session.error(&session.on_container("asService { hostname }"));
    assert!(said.contains("no service command has been set"), "{said}");
    let default = r#"withDefaultArgs(args: ["sleep", "1000"]) { asService { endpoint } }"#;
    let said = session.error(&session.on_container(default));
    assert!(said.contains("no ports exposed"), "{said}");
    // Without ports nobody can say whether it works.
    let id = service(&session, r#"asService(args: ["false"]) { id }"#);
    assert!(ask(&session, &id, "start").is_string());
}

#[test]
fn a_started_service_is_reached_by_name_and_only_in_its_session() {
    let state = State::new();
    let session = Session::start(&state);
    let id = service(&session, &says("hello", 8080));
    assert_eq!(ask(&session, &id, "start"), id);
    let host = ask(&session, &id, "hostname");
    let fetch =
        format!("nc -w 5 {0} 8080; nc -w 5 {0}.ci-tool.internal 8080", host.as_str().unwrap());
    assert_eq!(session.shell(&fetch), "hello\nhello\n");
    let named = ask(&session, &id, r#"withHostname(hostname: "mine") { start }"#);
    assert!(named.is_string());
    assert_eq!(session.shell("nc -w 5 mine 8080"), "hello\n");
    // Neither its name nor its address is anybody else's.
    let host = host.as_str().unwrap();
    let address = session.shell(&format!("nslookup {host} | tail -n +3 | sed -n 's/Address: //p'"));
    let address = address.trim();
    assert!(address.starts_with("10."), "{address}");
    let other = Session::start(&state);
    let theirs = service(&other, &says("theirs", 8080));
    ask(&other, &theirs, "start");
    let line = format!(
        "nc -w 2 {address} 8080 || echo unreached; nslookup mine.ci-tool.internal >/dev/null || echo unknown # {}",
        fresh()
    );
    assert_eq!(other.shell(&line), "unreached\nunknown\n");
}

#[test]
fn a_stopped_service_is_gone_and_starts_again() {
    let state = State::new();
    let session = Session::start(&state);
    let polite = r#"trap 'echo bye; exit 0' TERM; nc -ll -p 80 -e echo up & wait"#;
    let chain = format!(
        r#"withExposedPort(port: 80) {{ asService(args: ["sh", "-c", {}]) {{ id }} }}"#,
        json!(polite)
    );
    let id = service(&session, &chain);
    let host = ask(&session, &id, "hostname");
    let host = host.as_str().unwrap();
    let reach = |line: &str| session.shell(&format!("{line} # {}", fresh()));
    for _ in 0..2 {
        ask(&session, &id, "start");
        assert_eq!(reach(&format!("nc -w 5 {host} 80")), "up\n");
        assert_eq!(ask(&session, &id, "stop"), id);
        assert_eq!(reach(&format!("nc -w 5 {host} 80 2>/dev/null || echo gone")), "gone\n");
    }
    // One that does not run is left alone.
    ask(&session, &id, "stop(kill: true)");
}

#[test]
fn a_stop_that_waits_is_released_by_one_that_kills() {
    let state = State::with_config("grace = \"1h\"");
    let session = Session::start(&state);
    let stubborn = r#"trap '' TERM; nc -ll -p 80 -e echo up"#;
    let chain = format!(
        r#"withExposedPort(port: 80) {{ asService(args: ["sh", "-c", {}]) {{ id }} }}"#,
        json!(stubborn)
    );
    let id = service(&session, &chain);
    ask(&session, &id, "start");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| ask(&session, &id, "stop"));
        // The second may come before the first: both end then.
        assert_eq!(ask(&session, &id, "stop(kill: true)"), id);
        assert_eq!(waiting.join().unwrap(), id);
    });
}

#[test]
fn a_health_check_decides_when_a_service_is_ready() {
    let state = State::new();
    let session = Session::start(&state);
    // It is ready once it was found not to be.
    let line = "until test -e /asked; do usleep 5000; done; touch /ready; exec sleep 1000";
    let chain = |check: &str, retries: u32| {
        format!(
            r#"withDockerHealthcheck(args: ["{check}"], shell: true, interval: "100ms", retries: {retries}, timeout: "60s") {{
                withEnvVariable(name: "FRESH", value: "{}") {{
                asService(args: ["sh", "-c", "{line}"]) {{ id }} }} }}"#,
            fresh()
        )
    };
    let id = service(
        &session,
        &chain("test -e /ready && test $FRESH || { touch /asked; false; }", 1000),
    );
    assert!(ask(&session, &id, "start").is_string());
    let never = service(&session, &chain("echo not yet; exit 7", 20));
    let said = session.error(&on_service(&never, "start"));
    assert!(said.contains("health check errored: exit code: 7: not yet"), "{said}");
    let check = session.query(&session.on_container(
        r#"withDockerHealthcheck(args: ["a", "b"], interval: "60s", startPeriod: "1500ms", retries: 4) {
            dockerHealthcheck { args shell interval timeout startPeriod startInterval retries }
            withoutDockerHealthcheck { dockerHealthcheck { args } } }"#,
    ));
    let check = &check["container"]["withRootfs"]["withDockerHealthcheck"];
    let expected = json!({
        "args": ["a", "b"], "shell": false, "interval": "1m0s", "timeout": "0s",
        "startPeriod": "1.5s", "startInterval": "0s", "retries": 4
    });
    assert_eq!(check["dockerHealthcheck"], expected);
    assert!(check["withoutDockerHealthcheck"]["dockerHealthcheck"].is_null());
}

#[test]
fn a_network_that_is_off_is_an_error_that_says_so() {
    for network in ["none", "host"] {
        let state = State::with_config(&format!("network = \"{network}\""));
        let session = Session::start(&state);
        let id = service(&session, &says("hello", 8080));
        let said = session.error(&on_service(&id, "start"));
        assert!(said.contains("services need the engine's own network"), "{said}");
        let said = session.error(&session.on_container(&bound("a", &id, "true", "stdout")));
        assert!(said.contains("(aliased as a): services need the engine's own network"), "{said}");
    }
}
