//! Ids: short, the same for the same call, good in other sessions and after a restart.

use testkit::{Session, State};

fn id(session: &Session, document: &str) -> String {
    session.leaf(document).as_str().expect("an id is text").to_owned()
}

#[test]
fn equal_calls_have_equal_ids() {
    let state = State::new();
    let session = Session::start(&state);
    let one = id(&session, r#"{ directory { withNewFile(path: "a", contents: "b") { id } } }"#);
    let two = id(&session, r#"{ directory { withNewFile(contents: "b", path: "a") { id } } }"#);
    let other = id(&session, r#"{ directory { withNewFile(path: "a", contents: "c") { id } } }"#);
    assert_eq!(one, two);
    assert_ne!(one, other);
    assert!(one.chars().all(|c| c.is_ascii_alphanumeric() || "+/=".contains(c)), "{one}");
    let parsed: protocol::Id = one.parse().unwrap();
    assert_eq!(parsed.type_name, "Directory");
    assert_eq!(parsed.handle >> 63, 0);
    assert!(one.len() < 64, "{one}");
}

#[test]
fn an_id_loads_its_object_again() {
    let state = State::new();
    let session = Session::start(&state);
    let id = id(&session, r#"{ file(name: "n", contents: "text") { id } }"#);
    let loaded = session.leaf(&format!(r#"{{ loadFileFromID(id: "{id}") {{ contents }} }}"#));
    assert_eq!(loaded, "text");
    let node = session.leaf(&format!(r#"{{ node(id: "{id}") {{ ... on File {{ contents }} }} }}"#));
    assert_eq!(node, "text");
    let again = session.leaf(&format!(r#"{{ node(id: "{id}") {{ id }} }}"#));
    assert_eq!(again, *id);
    let wrong =
        session.query(&format!(r#"{{ node(id: "{id}") {{ ... on Directory {{ entries }} }} }}"#));
    assert_eq!(wrong["node"], serde_json::json!({}), "a fragment that does not match");
    let typename = session.leaf(&format!(r#"{{ node(id: "{id}") {{ __typename }} }}"#));
    assert_eq!(typename, "File");
    let said = session.error(&format!(r#"{{ loadDirectoryFromID(id: "{id}") {{ entries }} }}"#));
    assert!(said.contains("File") || said.contains("Directory"), "{said}");
    for wrong in ["", "nonsense", "EgwIBRIICgRGaWxlGAE="] {
        let said = session.error(&format!(r#"{{ loadFileFromID(id: "{wrong}") {{ contents }} }}"#));
        assert!(!said.is_empty());
    }
}

#[test]
fn ids_survive_sessions_and_restarts() {
    let state = State::new();
    let session = Session::start(&state);
    let file = id(&session, r#"{ file(name: "n", contents: "kept") { id } }"#);
    let sync =
        id(&session, r#"{ directory { withNewFile(path: "a/b", contents: "c") { sync } } }"#);
    session.end();
    let check = |session: &Session| {
        let text = session.leaf(&format!(r#"{{ loadFileFromID(id: "{file}") {{ contents }} }}"#));
        assert_eq!(text, "kept");
        let names =
            session.leaf(&format!(r#"{{ loadDirectoryFromID(id: "{sync}") {{ entries }} }}"#));
        assert_eq!(names, serde_json::json!(["a/"]));
    };
    check(&Session::start(&state));
    state.stop();
    check(&Session::start(&state));
    state.kill_engine();
    check(&Session::start(&state));
}

#[test]
fn what_is_one_sessions_own_is_a_named_error_in_another() {
    let state = State::new();
    state.file("mine/note.txt", "private");
    let one = Session::start(&state);
    let two = Session::start(&state);
    let id = one.host_directory(&state.workdir().join("mine"));
    let document = format!(
        r#"{{ loadDirectoryFromID(id: "{id}") {{ file(path: "note.txt") {{ contents }} }} }}"#
    );
    let said = two.error(&document);
    assert!(said.contains("session"), "{said}");
    assert_eq!(one.leaf(&document), "private");
    let said = two.error(&document);
    assert!(said.contains("session"), "cached or not: {said}");
}

#[test]
fn sync_gives_an_id_that_loads() {
    let state = State::new();
    let session = Session::start(&state);
    let id = session.container(r#"withExec(args: ["sh", "-c", "echo x > /made"]) { sync }"#);
    let text = session.leaf(&format!(
        r#"{{ loadContainerFromID(id: "{id}") {{ file(path: "/made") {{ contents }} }} }}"#
    ));
    assert_eq!(text, "x\n");
}

#[test]
fn asking_for_an_id_runs_nothing() {
    let state = State::new();
    let session = Session::start(&state);
    let id = session.container(r#"withExec(args: ["false"]) { id }"#);
    let error = session.exec_error(&format!(r#"{{ loadContainerFromID(id: "{id}") {{ sync }} }}"#));
    assert_eq!(error.code, 1);
    assert!(
        !session.error(r#"{ container(platform: "plan9/abacus") { id } }"#).is_empty(),
        "checked eagerly"
    );
}
