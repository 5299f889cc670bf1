//! Volumes of other machines: a real `sshd` and a real `sshfs`.

use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::Path;
use testkit::SshServer;
use testkit::process::with_argument;
use testkit::{Random, Session, State};

fn secret(session: &Session, name: &str, text: &str) -> Value {
    let text = json!(text);
    session.leaf(&format!(r#"{{ setSecret(name: "{name}", plaintext: {text}) {{ id }} }}"#))
}

/// The key that the server lets in, as a secret of the session.
fn key(session: &Session, server: &SshServer) -> Value {
    secret(session, "key", &std::fs::read_to_string(server.key()).unwrap())
}

fn volume(session: &Session, endpoint: &str, key: &Value, more: &str) -> Value {
    let endpoint = json!(endpoint);
    session
        .leaf(&format!("{{ sshfsVolume(endpoint: {endpoint}, privateKey: {key}{more}) {{ id }} }}"))
}

/// The document of a script with a volume at `/v`.
fn with(session: &Session, volume: &Value, more: &str, script: &str) -> String {
    let script = json!(script);
    session.on_container(&format!(
        r#"withMountedVolume(path: "/v", volume: {volume}{more}) {{
            withExec(args: ["sh", "-c", {script}]) {{ stdout }} }}"#
    ))
}

#[test]
fn a_directory_of_another_machine_is_mounted_as_it_is() {
    let state = State::new();
    let server = SshServer::start(&state.home().join("ssh"));
    let there = state.home().join("there");
    std::fs::create_dir(&there).unwrap();
    std::fs::write(there.join("f"), "one\n").unwrap();
    let session = Session::start(&state);
    let known = secret(&session, "known", &server.known_hosts());
    let (url, key) = (server.url(&there), key(&session, &server));
    let volume = volume(&session, &url, &key, &format!(", knownHosts: {known}"));
    let run = |more: &str, script: &str| session.leaf(&with(&session, &volume, more, script));
    assert_eq!(run("", "cat /v/f; mkdir /v/d; echo two > /v/d/g; mv /v/d/g /v/g"), "one\n");
    assert_eq!(std::fs::read_to_string(there.join("g")).unwrap(), "two\n");
    // Another command sees what has changed there meanwhile.
    std::fs::write(there.join("f"), "changed\n").unwrap();
    assert_eq!(run("", "cat /v/f; head -c 3000000 /dev/zero > /v/big"), "changed\n");
    assert_eq!(there.join("big").metadata().unwrap().len(), 3_000_000);
    let read_only = run(", readOnly: true", "touch /v/x 2>/dev/null || cat /v/g");
    assert_eq!(read_only, "two\n");
    // A user of the container has the rights that the bits of a file say.
    let others = session.container(&format!(
        r#"withMountedVolume(path: "/v", volume: {volume}) {{ withUser(name: "1000") {{
            withExec(args: ["sh", "-c", "touch /v/x 2>/dev/null || cat /v/g"]) {{ stdout }} }} }}"#
    ));
    assert_eq!(others, "two\n");
    assert!(!there.join("x").exists());
    // By its address, with secrets of this machine.
    let hosts = state.file("hosts", server.known_hosts());
    let address = format!(
        "sshfs://{}?privateKey=file://{}&knownHosts=file://{}",
        url.strip_prefix("ssh://").unwrap(),
        server.key().display(),
        hosts.display()
    );
    let at =
        session.leaf(&format!("{{ address(value: {}) {{ volume {{ id }} }} }}", json!(address)));
    assert_eq!(session.leaf(&with(&session, &at, "", "cat /v/g # by address")), "two\n");
    // Nothing of a connection is left when its command is gone.
    let there = there.display().to_string();
    let gone = || testkit::process::with_argument(&there).is_empty();
    assert!(testkit::process::wait_until(state.remaining(), gone), "sshfs goes on");
}

#[test]
fn another_machine_may_be_a_service() {
    let state = State::new();
    let server = SshServer::start(&state.home().join("ssh"));
    let there = state.home().join("there");
    std::fs::create_dir(&there).unwrap();
    std::fs::write(there.join("f"), "served\n").unwrap();
    let session = Session::start(&state);
    let port = server.port();
    let service = session.leaf(&format!(
        "{{ host {{ service(ports: [{{frontend: 2222, backend: {port}}}]) {{ id }} }} }}"
    ));
    let own = server.known_hosts();
    let (_, own) = own.split_once(' ').unwrap();
    let known = secret(&session, "known", &format!("[files]:2222 {own}"));
    let endpoint = format!("ssh://root@files:2222{}", there.display());
    let more = format!(", knownHosts: {known}, experimentalServiceHost: {service}");
    let volume = volume(&session, &endpoint, &key(&session, &server), &more);
    assert_eq!(session.leaf(&with(&session, &volume, "", "cat /v/f")), "served\n");
}

#[test]
fn who_does_not_let_us_in_is_named() {
    let state = State::new();
    let server = SshServer::start(&state.home().join("ssh"));
    let session = Session::start(&state);
    let key = key(&session, &server);
    let url = server.url(&state.workdir());
    let error = |volume: &Value| session.error(&with(&session, volume, "", "ls /v"));
    // Nobody vouches for the machine: said as soon as the volume is named.
    let document = format!("{{ sshfsVolume(endpoint: \"{url}\", privateKey: {key}) {{ id }} }}");
    assert!(session.error(&document).contains("nothing says who the other machine is"));
    let document = format!(
        "{{ sshfsVolume(endpoint: \"nowhere\", privateKey: {key}, insecureSkipHostKeyCheck: true) {{ id }} }}"
    );
    assert!(session.error(&document).contains("`nowhere` is no directory of another machine"));
    let stranger = secret(&session, "stranger", "[127.0.0.1]:1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5");
    let said = error(&volume(&session, &url, &key, &format!(", knownHosts: {stranger}")));
    assert!(said.contains("Host key verification failed"), "{said}");
    let insecure = ", insecureSkipHostKeyCheck: true";
    let wrong = secret(&session, "wrong", "no key at all");
    let said = error(&volume(&session, &url, &wrong, insecure));
    assert!(said.contains("Permission denied"), "{said}");
    let said = error(&volume(&session, "ssh://root@127.0.0.1:1/d", &key, insecure));
    assert!(said.contains("Connection refused"), "{said}");
    let said = error(&volume(&session, &server.url(Path::new("/no/such")), &key, insecure));
    assert!(said.contains("No such file or directory"), "{said}");
}

#[test]
fn a_machine_that_falls_silent_holds_nobody() {
    let state = State::new();
    let server = SshServer::start(&state.home().join("ssh"));
    state.file("f", "text");
    let number = 1_000_000 + Random::new("silent").below(1 << 30);
    let url = server.url(&state.workdir());
    let volume = format!(
        "--volume=sshfs://{}?privateKey=file://{}&insecureSkipHostKeyCheck=true",
        url.strip_prefix("ssh://").unwrap(),
        server.key().display()
    );
    let rootfs = format!("--directory={}", testkit::busybox().display());
    let line = format!("--args=sh,-c,echo begun {number}; while :; do cat /v/f; done");
    let mut running = state
        .cli(["core", "container", "with-rootfs", &rootfs])
        .args(["with-mounted-volume", "--path=/v", &volume, "with-exec", &line, "stdout"])
        .spawn();
    running.wait_for(&format!("| begun {number}"));
    server.silence();
    let mark = format!("begun {number}; while");
    let command = with_argument(&mark).into_iter().find(|it| it.arguments().starts_with("sh "));
    let command = command.expect("the command runs");
    running.signal_group(Signal::INT);
    running.wait().fails(2);
    assert!(command.wait_gone(), "{}", state.log());
}

#[test]
fn without_fuse_the_error_says_what_is_missing() {
    let state = State::new();
    let document = "{ setSecret(name: \"k\", plaintext: \"key\") { id } }";
    let hidden = "mount --bind /dev/null /dev/fuse; exec \"$0\" \"$@\"";
    let binary = state.binary().display().to_string();
    let run = |document: &str| {
        let words = ["-m", "--propagation=private", "sh", "-ec", hidden, &binary, "query"];
        state.program(Path::new("/usr/bin/unshare")).args(words).stdin(document).run()
    };
    // The first one starts the engine, so the engine has no fuse.
    let data: Value = serde_json::from_str(run(document).ok()).unwrap();
    assert!(data["setSecret"]["id"].is_string(), "{data}");
    let words = [
        "core",
        "container",
        "with-mounted-volume",
        "--path=/v",
        "--volume=sshfs://root@127.0.0.1/d?privateKey=env://KEY&insecureSkipHostKeyCheck=true",
        "with-exec",
        "--args=true",
        "sync",
    ];
    let output = state.cli(words).env("KEY", "key").run();
    let said = output.fails(1);
    assert!(said.contains("fuse") && said.contains("modprobe fuse"), "{said}");
}
