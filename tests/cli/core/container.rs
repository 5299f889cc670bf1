//! Configuration of a container: environment, user, working directory, labels.

use serde_json::json;
use testkit::{Session, State};

#[test]
fn environment_variables() {
    let state = State::new();
    let session = Session::start(&state);
    let chain = |rest: &str| {
        session.on_container(&format!(
            r#"withEnvVariable(name: "A", value: "1") {{ withEnvVariable(name: "B", value: "2") {{ {rest} }} }}"#
        ))
    };
    assert_eq!(session.leaf(&chain(r#"envVariable(name: "A")"#)), "1");
    assert_eq!(session.leaf(&chain(r#"envVariable(name: "NONE")"#)), json!(null));
    assert_eq!(
        session.leaf(&chain(r#"withEnvVariable(name: "A", value: "3") { envVariables { name } }"#)),
        json!([{"name": "A"}, {"name": "B"}])
    );
    assert_eq!(
        session.leaf(&chain(r#"withoutEnvVariable(name: "A") { envVariable(name: "A") }"#)),
        json!(null)
    );
    assert_eq!(
        session.leaf(&chain(r#"withExec(args: ["sh", "-c", "echo $A$B"]) { stdout }"#)),
        "12\n"
    );
    let expanded = r#"withEnvVariable(name: "A", value: "${A}:more", expand: true) { envVariable(name: "A") }"#;
    assert_eq!(session.leaf(&chain(expanded)), "1:more");
}

#[test]
fn users_by_name_and_number() {
    let state = State::new();
    let session = Session::start(&state);
    let id = |user: &str| {
        session.container(&format!(
            r#"withUser(name: "{user}") {{ withExec(args: ["id", "-u"]) {{ stdout }} }}"#
        ))
    };
    assert_eq!(id("guest"), "1000\n");
    assert_eq!(id("1234"), "1234\n");
    assert_eq!(id("guest:root"), "1000\n");
    assert_eq!(
        session.container(r#"withUser(name: "12:34") { withExec(args: ["id", "-g"]) { stdout } }"#),
        "34\n"
    );
    assert_eq!(session.container(r#"withUser(name: "guest") { user }"#), "guest");
    assert_eq!(session.container("user"), "");
    assert_eq!(
        session.container(
            r#"withUser(name: "guest") { withoutUser { withExec(args: ["id", "-u"]) { stdout } } }"#
        ),
        "0\n"
    );
    let said = session
        .error(&session.on_container(
            r#"withUser(name: "nobody-here") { withExec(args: ["id"]) { stdout } }"#,
        ));
    assert!(said.contains("nobody-here"), "{said}");
}

#[test]
fn working_directories() {
    let state = State::new();
    let session = Session::start(&state);
    let pwd = |chain: &str, ends: &str| {
        session.container(&format!(r#"{chain} {{ withExec(args: ["pwd"]) {{ stdout }} }}{ends}"#))
    };
    assert_eq!(pwd(r#"withWorkdir(path: "/tmp")"#, ""), "/tmp\n");
    assert_eq!(pwd(r#"withWorkdir(path: "/tmp") { withWorkdir(path: "a/../b")"#, " }"), "/tmp/b\n");
    assert_eq!(pwd(r#"withWorkdir(path: "/tmp") { withoutWorkdir"#, " }"), "/\n");
    assert_eq!(session.container(r#"withWorkdir(path: "/x") { workdir }"#), "/x");
    assert_eq!(session.container(r#"withWorkdir(path: "/x") { withoutWorkdir { workdir } }"#), "");
}

#[test]
fn labels_entrypoint_and_default_arguments() {
    let state = State::new();
    let session = Session::start(&state);
    let data = session.query(
        r#"{ container { withLabel(name: "a", value: "1") { label(name: "a") none: label(name: "b")
            withoutLabel(name: "a") { labels { name } }
            withEntrypoint(args: ["e"]) { entrypoint withDefaultArgs(args: ["d"]) { defaultArgs
                withEntrypoint(args: ["f"]) { defaultArgs } withoutDefaultArgs { defaultArgs } } } } } }"#,
    );
    let label = &data["container"]["withLabel"];
    assert_eq!((&label["label"], &label["none"]), (&json!("1"), &json!(null)));
    assert_eq!(label["withoutLabel"]["labels"], json!([]));
    let entry = &label["withEntrypoint"];
    assert_eq!(entry["entrypoint"], json!(["e"]));
    assert_eq!(entry["withDefaultArgs"]["defaultArgs"], json!(["d"]));
    assert_eq!(
        entry["withDefaultArgs"]["withEntrypoint"]["defaultArgs"],
        json!([]),
        "a new entrypoint clears them"
    );
    assert_eq!(entry["withDefaultArgs"]["withoutDefaultArgs"]["defaultArgs"], json!([]));
}

#[test]
fn configuration_after_a_failed_command_is_the_failure() {
    let state = State::new();
    let session = Session::start(&state);
    let document = session.on_container(r#"withExec(args: ["false"]) { workdir }"#);
    assert_eq!(session.exec_error(&document).code, 1);
}

#[test]
fn root_file_systems_come_and_go() {
    let state = State::new();
    let session = Session::start(&state);
    assert_eq!(session.leaf("{ container { rootfs { entries } } }"), json!([]));
    let document = session.on_container(
        r#"withNewFile(path: "/kept", contents: "k") { rootfs { withNewFile(path: "other", contents: "") { entries } } }"#,
    );
    let names = session.leaf(&document);
    let names: Vec<&str> =
        names.as_array().unwrap().iter().filter_map(|name| name.as_str()).collect();
    assert!(names.contains(&"kept") && names.contains(&"other"), "{names:?}");
    let platform = session.leaf("{ defaultPlatform }");
    assert!(platform.as_str().unwrap().starts_with("linux/"), "{platform}");
    assert_eq!(session.leaf("{ container { platform } }"), platform);
}

#[test]
fn files_go_in_and_come_out() {
    let state = State::new();
    let session = Session::start(&state);
    let file = session.leaf(r#"{ file(name: "src.txt", contents: "copied") { id } }"#);
    let into = |path: &str, read: &str| {
        session.container(&format!(
            r#"withFile(path: "{path}", source: {file}) {{ file(path: "{read}") {{ contents }} }}"#
        ))
    };
    assert_eq!(into("/a/b/c.txt", "/a/b/c.txt"), "copied");
    assert_eq!(into("/tmp", "/tmp/src.txt"), "copied", "into a folder under its own name");
    let mode = session.container(&format!(
        r#"withFile(path: "/x", source: {file}, permissions: 493, owner: "guest") {{ withExec(args: ["stat", "-c", "%a %u %g", "/x"]) {{ stdout }} }}"#
    ));
    assert_eq!(mode, "755 1000 1000\n");
    let made = session.container(r#"withNewFile(path: "/n", contents: "", permissions: 384) { withExec(args: ["stat", "-c", "%a", "/n"]) { stdout } }"#);
    assert_eq!(made, "600\n");
    let gone = session.on_container(r#"withNewFile(path: "/n", contents: "") { withoutFile(path: "/n") { file(path: "/n") { contents } } }"#);
    assert!(session.error(&gone).contains("/n: no such file or directory"));
}
