//! Mounts: directories, files, temporary space and cache volumes.

use serde_json::json;
use testkit::{Session, State};

#[test]
fn a_mounted_directory_is_part_of_the_container_value() {
    let state = State::new();
    let session = Session::start(&state);
    let directory =
        session.leaf(r#"{ directory { withNewFile(path: "f", contents: "1") { id } } }"#);
    let start = format!(r#"withMountedDirectory(path: "/m", source: {directory}) {{"#);
    assert_eq!(
        session.container(&format!(r#"{start} withExec(args: ["cat", "/m/f"]) {{ stdout }} }}"#)),
        "1"
    );
    let written = session.container(&format!(
        r#"{start} withExec(args: ["sh", "-c", "echo 2 > /m/g"]) {{ directory(path: "/m") {{ file(path: "g") {{ contents }} }} }} }}"#
    ));
    assert_eq!(written, "2\n");
    let outside = session.on_container(&format!(
        r#"{start} withExec(args: ["sh", "-c", "echo 2 > /m/g"]) {{ withoutMount(path: "/m") {{ file(path: "/m/g") {{ contents }} }} }} }}"#
    ));
    assert!(
        session.error(&outside).contains("no such file or directory"),
        "it was in the mount, not in the root"
    );
    assert_eq!(session.leaf(&session.on_container(&format!("{start} mounts }}"))), json!(["/m"]));
}

#[test]
fn a_read_only_mount_cannot_be_written() {
    let state = State::new();
    let session = Session::start(&state);
    let directory =
        session.leaf(r#"{ directory { withNewFile(path: "f", contents: "1") { id } } }"#);
    let document = session.on_container(&format!(
        r#"withMountedDirectory(path: "/m", source: {directory}, readOnly: true) {{ withExec(args: ["touch", "/m/x"]) {{ stdout }} }}"#
    ));
    let error = session.exec_error(&document);
    assert!(error.stderr.contains("Read-only file system"), "{error:?}");
}

#[test]
fn files_are_mounted_one_by_one() {
    let state = State::new();
    let session = Session::start(&state);
    let file = session.leaf(r#"{ file(name: "x", contents: "mounted") { id } }"#);
    let text = session.container(&format!(
        r#"withMountedFile(path: "/etc/a", source: {file}) {{ withMountedFile(path: "/etc/b", source: {file}) {{
            withExec(args: ["cat", "/etc/a", "/etc/b", "/etc/passwd"]) {{ stdout }} }} }}"#
    ));
    assert!(text.starts_with("mountedmountedroot:"), "{text}");
}

#[test]
fn temporary_space_is_empty_each_time() {
    let state = State::new();
    let session = Session::start(&state);
    let text = session.container(
        r#"withMountedTemp(path: "/t") { withExec(args: ["touch", "/t/x"]) { withExec(args: ["ls", "/t"]) { stdout } } }"#,
    );
    assert_eq!(text, "");
    let said = session.error(
        &session
            .on_container(r#"withMountedTemp(path: "/t") { directory(path: "/t") { entries } }"#),
    );
    assert!(said.contains("cannot retrieve path from tmpfs"), "{said}");
    let full = session.on_container(
        r#"withMountedTemp(path: "/t", size: 1048576) { withExec(args: ["dd", "if=/dev/zero", "of=/t/x", "bs=1M", "count=3"]) { stdout } }"#,
    );
    assert!(session.exec_error(&full).stderr.contains("No space left"), "the size is a limit");
}

#[test]
fn a_cache_volume_keeps_its_content_over_sessions_and_restarts() {
    let state = State::new();
    let append = |session: &Session, text: &str| {
        let cache = session.leaf(r#"{ cacheVolume(key: "log") { id } }"#);
        session.container(&format!(
            r#"withMountedCache(path: "/c", cache: {cache}) {{ withExec(args: ["sh", "-c", "echo {text} >> /c/log; cat /c/log"]) {{ stdout }} }}"#
        ))
    };
    assert_eq!(append(&Session::start(&state), "one"), "one\n");
    assert_eq!(append(&Session::start(&state), "two"), "one\ntwo\n");
    state.stop();
    let session = Session::start(&state);
    assert_eq!(append(&session, "three"), "one\ntwo\nthree\n");
    let cache = session.leaf(r#"{ cacheVolume(key: "log") { id } }"#);
    let read = session.on_container(&format!(
        r#"withMountedCache(path: "/c", cache: {cache}) {{ directory(path: "/c") {{ entries }} }}"#
    ));
    assert!(session.error(&read).contains("cannot retrieve path from cache"));
    let other = session.leaf(r#"{ cacheVolume(key: "other") { id } }"#);
    let empty = session.container(&format!(
        r#"withMountedCache(path: "/c", cache: {other}) {{ withExec(args: ["ls", "/c"]) {{ stdout }} }}"#
    ));
    assert_eq!(empty, "", "another key is another volume");
}

#[test]
fn a_mount_at_the_same_place_replaces_and_a_parent_removes() {
    let state = State::new();
    let session = Session::start(&state);
    let one = session.leaf(r#"{ directory { withNewFile(path: "one", contents: "") { id } } }"#);
    let two = session.leaf(r#"{ directory { withNewFile(path: "two", contents: "") { id } } }"#);
    let replaced = session.container(&format!(
        r#"withMountedDirectory(path: "/m", source: {one}) {{ withMountedDirectory(path: "/m", source: {two}) {{
            withExec(args: ["ls", "/m"]) {{ stdout }} }} }}"#
    ));
    assert_eq!(replaced, "two\n");
    let parent = session.leaf(&session.on_container(&format!(
        r#"withMountedDirectory(path: "/m/n", source: {one}) {{ withMountedDirectory(path: "/m", source: {two}) {{ mounts }} }}"#
    )));
    assert_eq!(parent, json!(["/m"]));
}
