//! Files as values.

use testkit::{Session, State};

#[test]
fn contents_size_and_name() {
    let state = State::new();
    let session = Session::start(&state);
    let data = session.query(
        r#"{ file(name: "a.txt", contents: "one\ntwo\nthree\n") { name size contents
        part: contents(offsetLines: 1, limitLines: 1) } }"#,
    );
    assert_eq!(data["file"]["name"], "a.txt");
    assert_eq!(data["file"]["size"], 14);
    assert_eq!(data["file"]["contents"], "one\ntwo\nthree\n");
    assert_eq!(data["file"]["part"], "two\n");
    let said = session.error(r#"{ file(name: "a/b", contents: "") { sync } }"#);
    assert!(said.contains("not contain a directory"), "{said}");
}

#[test]
fn a_file_of_a_directory_keeps_its_base_name() {
    let state = State::new();
    let session = Session::start(&state);
    let name = session.leaf(r#"{ directory { withNewFile(path: "a/b.txt", contents: "") { file(path: "a/b.txt") { name } } } }"#);
    assert_eq!(name, "b.txt");
}

#[test]
fn contents_that_are_too_long_are_refused() {
    let state = State::new();
    let session = Session::start(&state);
    let exec = r#"withExec(args: ["dd", "if=/dev/zero", "of=/big", "bs=1M", "count=129"]) { file(path: "/big")"#;
    let size = session.leaf(&session.on_container(&format!("{exec} {{ size }} }}")));
    assert_eq!(size, 129 << 20);
    let said = session.error(&session.on_container(&format!("{exec} {{ contents }} }}")));
    assert!(!said.is_empty(), "128 MiB is the limit");
}

#[test]
fn contents_that_are_no_text_are_answered() {
    let state = State::new();
    let session = Session::start(&state);
    let document = session.on_container(
        r#"withExec(args: ["sh", "-c", "printf '\\377\\000x' > /b"]) { file(path: "/b") { contents } }"#,
    );
    let reply = session.send(&document);
    assert_eq!(reply.status, 200);
    assert!(reply.json().is_object());
}
