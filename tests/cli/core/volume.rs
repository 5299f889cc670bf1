//! Volumes: live directories, whose commands run every time.

use serde_json::{Value, json};
use testkit::{Session, State};

fn volume(session: &Session, name: &str, more: &str) -> Value {
    session.leaf(&format!(r#"{{ engineVolume(name: "{name}"{more}) {{ id }} }}"#))
}

/// Output of a script with a volume at `/v`.
fn shell(session: &Session, volume: &Value, more: &str, script: &str) -> String {
    let script = json!(script);
    session.container(&format!(
        r#"withMountedVolume(path: "/v", volume: {volume}{more}) {{
            withExec(args: ["sh", "-c", {script}]) {{ stdout }} }}"#
    ))
}

#[test]
fn a_volume_is_live_and_never_cached() {
    let state = State::new();
    let session = Session::start(&state);
    let count = "echo x >> /v/count; wc -l < /v/count";
    let data = volume(&session, "data", "");
    assert_eq!(shell(&session, &data, "", count), "1\n");
    assert_eq!(shell(&session, &data, "", count), "1\n", "the same call of a session is one call");
    drop(session);
    // Each session runs it again, and sees what others wrote.
    for expected in ["2\n", "3\n"] {
        let session = Session::start(&state);
        let data = volume(&session, "data", "");
        assert_eq!(shell(&session, &data, "", count), expected);
    }
    let session = Session::start(&state);
    let at = session.leaf(r#"{ address(value: "engine-volume://data") { volume { id } } }"#);
    assert_eq!(shell(&session, &at, "", "cat /v/count | wc -l"), "3\n");
    // Other names are other volumes, and cache volumes are none of them.
    let other = volume(&session, "other", "");
    assert_eq!(shell(&session, &other, "", "ls /v"), "");
    let cache = session.leaf(r#"{ cacheVolume(key: "data") { id } }"#);
    let listed = session.container(&format!(
        r#"withMountedCache(path: "/v", cache: {cache}) {{ withExec(args: ["ls", "/v"]) {{ stdout }} }}"#
    ));
    assert_eq!(listed, "");
    // What is built on such a command is its own too: it changes with it.
    let built = |session: &Session| {
        let data = volume(session, "data", "");
        session.container(&format!(
            r#"withMountedVolume(path: "/v", volume: {data}) {{
                withExec(args: ["sh", "-c", "echo x >> /v/count; wc -l < /v/count > /n"]) {{
                withExec(args: ["cat", "/n"]) {{ stdout }} }} }}"#
        ))
    };
    assert_eq!((built(&session), built(&Session::start(&state))), ("4\n".into(), "5\n".into()));
}

#[test]
fn parts_of_a_volume_and_what_is_refused() {
    let state = State::new();
    let session = Session::start(&state);
    let (whole, part) = (volume(&session, "d", ""), volume(&session, "d", r#", subdir: "a/b""#));
    assert_eq!(shell(&session, &part, "", "echo hi > /v/f; cat /v/f"), "hi\n");
    assert_eq!(shell(&session, &whole, "", "cat /v/a/b/f"), "hi\n");
    let read_only =
        shell(&session, &whole, ", readOnly: true", "touch /v/x 2>/dev/null || cat /v/a/b/f");
    assert_eq!(read_only, "hi\n");
    // A link that a command left leads nowhere.
    shell(&session, &whole, "", "ln -s / /v/out");
    let out = volume(&session, "d", r#", subdir: "out/etc""#);
    let said = session.error(&session.on_container(&format!(
        r#"withMountedVolume(path: "/v", volume: {out}) {{ withExec(args: ["ls", "/v"]) {{ stdout }} }}"#
    )));
    assert!(said.contains("out/etc"), "{said}");
    for (query, expect) in [
        (r#"engineVolume(name: "") { id }"#, None),
        (r#"engineVolume(name: "a/b") { id }"#, None),
        (r#"engineVolume(name: "a", subdir: "../b") { id }"#, None),
    ] {
        // Naming it runs nothing; using it is refused.
        let id = session.leaf(&format!("{{ {query} }}"));
        let said =
            session.error(&session.on_container(&format!(
                r#"withMountedVolume(path: "/v", volume: {id}) {{ mounts }}"#
            )));
        let expect: Option<&str> = expect;
        assert!(said.contains(expect.unwrap_or("volume")), "{query}: {said}");
    }
    // An address is looked at when it is named.
    let said = session.error(r#"{ address(value: "ssh://host/x") { volume { id } } }"#);
    assert!(said.contains("names no volume"), "{said}");
    let read = session.error(&session.on_container(&format!(
        r#"withMountedVolume(path: "/v", volume: {whole}) {{ file(path: "/v/a/b/f") {{ contents }} }}"#
    )));
    assert!(read.contains("cannot retrieve path from volume"), "{read}");
}
