//! Ctrl-C anywhere stops cleanly.

use rustix::process::Signal;
use testkit::process::{Process, named, wait_until, with_argument};
use testkit::registry::{Fault, FaultyProxy, Registry};
use testkit::{Random, Running, Session, State, busybox};

/// A command that sleeps under a number nobody else uses, and its processes once they run.
fn sleeper(state: &State, script: &str) -> (Running, Vec<Process>) {
    let number = 1_000_000 + Random::new("sleeper").below(1 << 30);
    let rootfs = format!("--directory={}", busybox().display());
    let args = format!("--args=sh,-c,{}", script.replace("NUMBER", &number.to_string()));
    let chain = ["core", "container", "with-rootfs", &rootfs, "with-exec", &args, "stdout"];
    let running = state.cli(chain).spawn();
    let name = format!("sleep {number}");
    let started = || !named(&name).is_empty();
    assert!(wait_until(state.remaining(), started), "{}", state.log());
    let processes = named(&name);
    (running, processes)
}

#[test]
fn an_interrupt_ends_the_command_in_the_container() {
    // Whoever waits for the grace to pass waits for ever.
    let state = State::with_config("grace = \"1h\"");
    let (running, processes) = sleeper(&state, "sleep NUMBER");
    state.look();
    running.signal_group(Signal::INT);
    let output = running.wait();
    output.fails(2);
    for process in processes {
        assert!(process.wait_gone(), "{}", process.arguments());
    }
    assert_eq!(output.stdout, "");
}

#[test]
fn a_command_that_ignores_sigterm_is_killed_after_the_grace() {
    let state = State::with_config("grace = \"1s\"");
    let script = "trap '' TERM INT; while :; do sleep NUMBER; done";
    let (running, processes) = sleeper(&state, script);
    running.signal_group(Signal::INT);
    let output = running.wait();
    output.fails(2);
    for process in processes {
        assert!(process.wait_gone(), "{}", process.arguments());
    }
    state.cli(["core", "version"]).run().ok();
}

#[test]
fn sigterm_stops_as_well() {
    let state = State::new();
    let (running, processes) = sleeper(&state, "sleep NUMBER");
    running.signal(Signal::TERM);
    let output = running.wait();
    assert!(!output.status.success(), "{output:#?}");
    for process in processes {
        assert!(process.wait_gone(), "{}", process.arguments());
    }
}

#[test]
fn a_client_that_is_killed_takes_its_work_with_it() {
    let state = State::new();
    let (running, processes) = sleeper(&state, "sleep NUMBER");
    running.signal(Signal::KILL);
    assert_eq!(running.wait().code(), 137);
    for process in processes {
        assert!(process.wait_gone(), "{}", process.arguments());
    }
}

#[test]
fn work_that_another_session_waits_for_goes_on() {
    let state = State::new();
    let number = 1_000_000 + Random::new("shared").below(1 << 30);
    let script = format!("until test -e /c/go; do usleep 5000; done; echo {number}");
    let session = testkit::Session::start(&state);
    let other = testkit::Session::start(&state);
    let key = format!("k{number}");
    let wait = |session: &testkit::Session| {
        let cache = session.leaf(&format!(r#"{{ cacheVolume(key: "{key}") {{ id }} }}"#));
        session.on_container(&format!(
            r#"withMountedCache(path: "/c", cache: {cache}) {{ withExec(args: ["sh", "-c", {script:?}]) {{ stdout }} }}"#
        ))
    };
    let document = wait(&session);
    // The first to ask goes away in the middle; the second still gets the answer.
    let mut connection = session.endpoint.connect().unwrap();
    let body = serde_json::json!({ "query": document }).to_string();
    let request = session.endpoint.request(body);
    testkit::write_request(&mut connection, &request).unwrap();
    let name = format!("echo {number}");
    assert!(wait_until(state.remaining(), || with_argument(&name).len() == 1));
    let running = with_argument(&name)[0];
    std::thread::scope(|scope| {
        let answer = scope.spawn(|| other.leaf(&wait(&other)));
        let release = other.on_container(&format!(
            r#"withMountedCache(path: "/c", cache: {}) {{ withExec(args: ["touch", "/c/go"]) {{ stdout }} }}"#,
            other.leaf(&format!(r#"{{ cacheVolume(key: "{key}") {{ id }} }}"#))
        ));
        drop(connection);
        session.end();
        other.leaf(&release);
        assert_eq!(answer.join().unwrap(), format!("{number}\n"));
    });
    assert!(running.wait_gone());
}

/// A program that hangs is interrupted; whatever it waits for, it ends at once.
fn interrupt(running: Running) {
    running.signal_group(Signal::INT);
    let output = running.wait();
    output.fails(2);
    assert_eq!(output.stdout, "");
}

#[test]
fn an_interrupted_pull_leaves_nothing_half_done() {
    let registry = Registry::start();
    let proxy = FaultyProxy::before(&registry.address());
    let state = State::new();
    let session = Session::start(&state);
    let file = r#"withNewFile(path: "/whole", contents: "yes")"#;
    session.container(&format!(r#"{file} {{ publish(address: "{}/app:1") }}"#, registry.address()));
    drop(session);
    // An engine that has none of it yet.
    let other = state.another();
    let address = format!("--address={}/app:1", proxy.address());
    let words = ["core", "container", "from", &address, "file", "--path=/whole", "contents"];
    for (path, fault) in
        [("/manifests/", Fault::Hang), ("/blobs/", Fault::Hang), ("/blobs/", Fault::HangAfter(100))]
    {
        proxy.fault("GET", path, fault, 1);
        let running = other.cli(words).spawn();
        assert!(wait_until(other.remaining(), || proxy.unmet() == 0), "{}", other.log());
        interrupt(running);
    }
    assert_eq!(other.cli(words).run().ok(), "yes");
}

#[test]
fn an_interrupted_push_leaves_no_image() {
    let registry = Registry::start();
    let proxy = FaultyProxy::before(&registry.address());
    let state = State::new();
    let (rootfs, address) = (
        format!("--directory={}", busybox().display()),
        format!("--address={}/app:1", proxy.address()),
    );
    let words = ["core", "container", "with-rootfs", &rootfs, "publish", &address];
    let there = |state: &State| {
        let address = format!("docker://{}/app:1", registry.address());
        let args = ["inspect", "--raw", "--tls-verify=false", &address];
        state.program(std::path::Path::new("skopeo")).args(args).run().status.success()
    };
    for (method, path, fault) in [
        ("POST", "/uploads/", Fault::Hang),
        ("PUT", "/uploads/", Fault::Hang),
        ("PUT", "/manifests/", Fault::Hang),
    ] {
        proxy.fault(method, path, fault, 1);
        let running = state.cli(words).spawn();
        assert!(wait_until(state.remaining(), || proxy.unmet() == 0), "{}", state.log());
        interrupt(running);
        assert!(!there(&state), "after {method} {path}");
    }
    assert!(state.cli(words).run().ok().contains("@sha256:"));
    assert!(there(&state));
}
