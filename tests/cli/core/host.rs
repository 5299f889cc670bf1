//! What is read from the host: only what was asked for, once a session.

use serde_json::json;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use testkit::{Session, State};

#[test]
fn a_directory_with_filters() {
    let state = State::new();
    for name in ["tree/a.txt", "tree/b.o", "tree/sub/c.txt"] {
        state.file(name, name);
    }
    let session = Session::start(&state);
    let entries = |filter: &str, path: &str| {
        session.leaf(&format!(
            r#"{{ host {{ directory(path: "tree"{filter}) {{ entries(path: "{path}") }} }} }}"#
        ))
    };
    assert_eq!(entries("", ""), json!(["a.txt", "b.o", "sub/"]));
    assert_eq!(entries(r#", exclude: ["*.o"]"#, ""), json!(["a.txt", "sub/"]));
    assert_eq!(entries(r#", include: ["sub"]"#, ""), json!(["sub/"]));
    let said = session.error(r#"{ host { directory(path: "none") { entries } } }"#);
    assert!(said.contains("none"), "{said}");
    let said = session.error(r#"{ host { directory(path: "tree/a.txt") { entries } } }"#);
    assert!(said.contains("not a directory"), "{said}");
}

#[test]
fn a_file_and_links_and_modes_are_taken_as_they_are() {
    let state = State::new();
    let path = state.file("tree/run.sh", "#!/bin/sh\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    symlink("run.sh", state.workdir().join("tree/link")).unwrap();
    symlink("/etc/passwd", state.workdir().join("tree/out")).unwrap();
    std::fs::hard_link(&path, state.workdir().join("tree/same")).unwrap();
    let session = Session::start(&state);
    assert_eq!(
        session.leaf(r#"{ host { file(path: "tree/run.sh") { contents } } }"#),
        "#!/bin/sh\n"
    );
    let tree = session.leaf(r#"{ host { directory(path: "tree") { id } } }"#);
    let seen = session.container(&format!(
        r#"withDirectory(path: "/t", source: {tree}) {{ withExec(args: ["sh", "-c",
            "readlink /t/link; readlink /t/out; stat -c %a /t/run.sh; test /t/run.sh -ef /t/same && echo same; cat /t/out"]) {{ stdout }} }}"#
    ));
    assert!(
        seen.starts_with("run.sh\n/etc/passwd\n755\nsame\nroot:x:0:0"),
        "the container's own file: {seen}"
    );
    assert!(!seen.contains("daemon"), "not the host's: {seen}");
}

#[test]
fn paths_are_relative_to_the_working_directory_or_the_home() {
    let state = State::new();
    state.file("here.txt", "work");
    std::fs::write(state.home().join("there.txt"), "home").unwrap();
    let session = Session::start(&state);
    assert_eq!(session.leaf(r#"{ host { file(path: "here.txt") { contents } } }"#), "work");
    assert_eq!(session.leaf(r#"{ host { file(path: "~/there.txt") { contents } } }"#), "home");
    assert_eq!(
        session.leaf(r#"{ host { file(path: "../home/there.txt") { contents } } }"#),
        "home"
    );
}

#[test]
fn it_is_read_once_a_session_and_again_in_the_next() {
    let state = State::new();
    let read = |session: &Session| {
        session.leaf(r#"{ host { directory(path: "tree") { file(path: "f") { contents } } } }"#)
    };
    state.file("tree/f", "first");
    let session = Session::start(&state);
    assert_eq!(read(&session), "first");
    state.file("tree/f", "second");
    assert_eq!(read(&session), "first", "the same session sees what it saw");
    assert_eq!(read(&Session::start(&state)), "second");
}

#[test]
fn equal_content_from_another_path_hits_the_cache() {
    let state = State::new();
    state.file("one/f", "same");
    state.file("two/f", "same");
    let run = |session: &Session, path: &str| {
        let tree = session.leaf(&format!(r#"{{ host {{ directory(path: "{path}") {{ id }} }} }}"#));
        session.container(&format!(
            r#"withDirectory(path: "/t", source: {tree}) {{ withExec(args: ["cat", "/t/f", "/proc/sys/kernel/random/uuid"]) {{ stdout }} }}"#
        ))
    };
    let first = run(&Session::start(&state), "one");
    assert_eq!(run(&Session::start(&state), "two"), first);
}

#[test]
fn the_command_line_takes_paths_for_directories_and_files() {
    let state = State::new();
    state.file("tree/f.txt", "by path");
    let output = state
        .cli([
            "core",
            "directory",
            "with-directory",
            "--path=t",
            "--source=tree",
            "entries",
            "--path=t",
        ])
        .run();
    assert_eq!(output.ok(), "f.txt\n");
    let output = state
        .cli([
            "core",
            "container",
            "with-file",
            "--path=/f",
            "--source=tree/f.txt",
            "file",
            "--path=/f",
            "contents",
        ])
        .run();
    assert_eq!(output.ok(), "by path");
    let output = state
        .cli(["core", "directory", "with-directory", "--path=t", "--source=missing", "entries"])
        .run();
    assert!(output.fails(1).contains("missing"), "{output:#?}");
}

#[test]
fn what_is_no_file_does_not_hang_an_import() {
    let state = State::new();
    state.file("tree/f", "x");
    let fifo = state.workdir().join("tree/fifo");
    let mode = rustix::fs::Mode::from_raw_mode(0o644);
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, kind, mode, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(state.workdir().join("tree/s")).unwrap();
    let session = Session::start(&state);
    let reply =
        session.send(r#"{ host { directory(path: "tree") { file(path: "f") { contents } } } }"#);
    let json = reply.json();
    let taken = json["data"]["host"]["directory"]["file"]["contents"] == "x";
    let named = json["errors"][0]["message"].as_str().is_some_and(|text| text.contains("tree/"));
    assert!(taken || named, "left out, or refused by name: {json}");
    let reply = session.send(r#"{ host { file(path: "tree/fifo") { contents } } }"#).json();
    assert!(reply["errors"].is_array(), "{reply}");
}

#[test]
fn the_way_up_from_the_working_directory() {
    let state = State::new();
    state.file("here.txt", "");
    std::fs::write(state.workdir().parent().unwrap().join("above.txt"), "").unwrap();
    let session = Session::start(&state);
    let up = |name: &str| session.leaf(&format!(r#"{{ host {{ findUp(name: "{name}") }} }}"#));
    assert_eq!(up("here.txt"), "here.txt");
    assert_eq!(up("above.txt"), "../above.txt");
    assert_eq!(up("no-such-name-anywhere"), json!(null));
    let said = session.error(r#"{ host { findUp(name: "a/b") } }"#);
    assert!(said.contains("`a/b` is not one file name"), "{said}");
}
