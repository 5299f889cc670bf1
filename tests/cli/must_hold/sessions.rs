//! Two sessions on one engine: what was worked out is everybody's; secrets, sockets and services are one's own.

use serde_json::{Value, json};
use std::os::unix::net::UnixListener;
use testkit::{Session, State};

/// A command whose output differs each time that it really runs.
const DIFFERS: &str = "cat /proc/sys/kernel/random/uuid";

const FOREIGN: &str = "belongs to another session";

/// The id that a document asks for, as it stands in another document.
fn id(session: &Session, document: &str) -> String {
    session.leaf(document).to_string()
}

/// The refusal of a document that uses what is another session's.
#[track_caller]
fn refused(session: &Session, document: &str) {
    let said = session.error(document);
    assert!(said.contains(FOREIGN), "{document}: {said}");
}

fn shell(script: &str) -> String {
    format!(r#"withExec(args: ["sh", "-c", {}])"#, json!(script))
}

#[test]
fn what_was_worked_out_is_shared_while_both_go_on() {
    let state = State::new();
    let (one, two) = (Session::start(&state), Session::start(&state));
    let first = one.shell(DIFFERS);
    assert_eq!(two.shell(DIFFERS), first, "a command runs once");
    // At the same time, too.
    let script = format!("sleep 0.2; {DIFFERS}");
    let (left, right) = std::thread::scope(|scope| {
        let left = scope.spawn(|| one.shell(&script));
        (two.shell(&script), left.join().unwrap())
    });
    assert_eq!(left, right);
    // An id of one means the same to the other.
    let document = r#"{ directory { withNewFile(path: "f", contents: "made") { id } } }"#;
    let made = id(&one, document);
    let read =
        format!(r#"{{ loadDirectoryFromID(id: {made}) {{ file(path: "f") {{ contents }} }} }}"#);
    assert_eq!((one.leaf(&read), two.leaf(&read)), (json!("made"), json!("made")));
    // Cache volumes are the engine's.
    let volume = r#"{ cacheVolume(key: "both") { id } }"#;
    let with = |session: &Session, script: &str| {
        let chain = format!(
            r#"withMountedCache(path: "/c", cache: {}) {{ {} {{ stdout }} }}"#,
            id(session, volume),
            shell(script)
        );
        session.container(&chain)
    };
    with(&one, "echo kept > /c/f");
    assert_eq!(with(&two, "cat /c/f"), "kept\n");
}

#[test]
fn secrets_are_those_of_who_has_them() {
    let state = State::new();
    let one = Session::start_in(&state, &[("TOKEN", "kept-by-one")]);
    let two = Session::start_in(&state, &[("TOKEN", "kept-by-two")]);
    let set = r#"{ setSecret(name: "s", plaintext: "one-knows-this") { id } }"#;
    let kept = r#"{ secret(uri: "env://TOKEN") { id } }"#;
    for document in [set, kept] {
        let secret = id(&one, document);
        refused(&two, &format!("{{ loadSecretFromID(id: {secret}) {{ plaintext }} }}"));
        let variable = format!(r#"withSecretVariable(name: "S", secret: {secret})"#);
        let chain = format!("{variable} {{ {} {{ stdout }} }}", shell("echo ${#S}"));
        refused(&two, &two.on_container(&chain));
        // Nor by way of what was made with it.
        let chain = format!("{variable} {{ {} {{ id }} }}", shell("echo $S > /leaked"));
        let container = id(&one, &one.on_container(&chain));
        let read = |more: &str| format!("{{ loadContainerFromID(id: {container}) {{ {more} }} }}");
        assert!(one.leaf(&read(r#"file(path: "/leaked") { contents }"#)).is_string());
        refused(&two, &read(r#"file(path: "/leaked") { contents }"#));
        refused(&two, &read(&format!("{} {{ stdout }}", shell("echo ${#S}"))));
    }
    let by_name = r#"{ loadSecretFromName(name: "s") { plaintext } }"#;
    assert_eq!(one.leaf(by_name), "one-knows-this");
    assert!(two.error(by_name).contains("this session has set no secret `s`"));
    // One name for two things: nobody gets what came of the other's.
    let length = |session: &Session, document: &str| {
        let secret = id(session, document);
        let run = shell(&format!("printf %s \"$S\" | md5sum; {DIFFERS}"));
        session.container(&format!(
            r#"withSecretVariable(name: "S", secret: {secret}) {{ {run} {{ stdout }} }}"#
        ))
    };
    assert_ne!(length(&one, kept), length(&two, kept));
    let theirs = r#"{ setSecret(name: "s", plaintext: "two-knows-this") { id } }"#;
    assert_ne!(length(&one, set), length(&two, theirs));
    // Who knows the same gets the same.
    assert_eq!(length(&one, set), length(&two, set));
}

#[test]
fn sockets_are_those_of_who_has_them() {
    let state = State::new();
    let (one, two) = (Session::start(&state), Session::start(&state));
    let path = state.workdir().join("socket");
    let _listener = UnixListener::bind(&path).unwrap();
    let path = json!(path.display().to_string());
    let socket = id(&one, &format!("{{ host {{ unixSocket(path: {path}) {{ id }} }} }}"));
    let mounted =
        |more: &str| format!(r#"withUnixSocket(path: "/s", source: {socket}) {{ {more} }}"#);
    let run = format!("{} {{ stdout }}", shell("test -S /s && echo there"));
    assert_eq!(one.container(&mounted(&run)), "there\n");
    refused(&two, &two.on_container(&mounted(&run)));
    let container = id(&one, &one.on_container(&mounted("id")));
    refused(&two, &format!("{{ loadContainerFromID(id: {container}) {{ {run} }} }}"));
}

#[test]
fn services_are_those_of_who_started_them() {
    let state = State::new();
    let (one, two) = (Session::start(&state), Session::start(&state));
    // It says which instance it is.
    let line = json!(format!("{DIFFERS} > /own; exec nc -ll -p 80 -e cat /own"));
    let chain = format!(
        r#"withExposedPort(port: 80) {{ asService(args: ["sh", "-c", {line}]) {{ id }} }}"#
    );
    // Each has the chain for itself, and both come to the same service.
    let service = |session: &Session| id(session, &session.on_container(&chain));
    let field = |session: &Session, field: &str| -> Value {
        let service = service(session);
        session.leaf(&format!("{{ loadServiceFromID(id: {service}) {{ {field} }} }}"))
    };
    let host = field(&one, "hostname");
    assert_eq!(field(&two, "hostname"), host);
    let (host, mut asked) = (host.as_str().unwrap(), 0);
    let mut reach = |session: &Session, wait: u32| {
        asked += 1;
        session.shell(&format!("nc -w {wait} {host} 80 2>/dev/null || echo nobody # {asked}"))
    };
    field(&one, "start");
    let first = reach(&one, 5);
    assert_ne!(first, "nobody\n");
    assert_eq!(reach(&two, 2), "nobody\n", "not by the name that both know");
    // The same service of the other is another instance, with an end of its own.
    field(&two, "start");
    let second = reach(&two, 5);
    assert!(second != first && second != "nobody\n", "{second}");
    assert_eq!(reach(&one, 5), first);
    field(&two, "stop(kill: true)");
    assert_eq!((reach(&two, 2), reach(&one, 5)), ("nobody\n".to_owned(), first.clone()));
    field(&two, "start");
    assert_eq!(two.end(), 0);
    assert_eq!(reach(&one, 5), first);
    // What is on the machine of one is nobody else's.
    let three = Session::start(&state);
    for document in [
        "{ host { service(ports: [{backend: 1}]) { id } } }".to_owned(),
        format!("{{ host {{ tunnel(service: {}) {{ id }} }} }}", service(&one)),
        r#"{ address(value: "tcp://localhost:1") { service { id } } }"#.to_owned(),
    ] {
        let own = id(&one, &document);
        refused(&three, &format!("{{ loadServiceFromID(id: {own}) {{ start }} }}"));
    }
}
