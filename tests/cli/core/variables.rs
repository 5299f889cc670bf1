//! Volatile variables: commands see them, and nothing else knows of them.

use serde_json::json;
use testkit::{Session, State};

/// `withVolatileVariable(name: "V", value: ...) { <rest> }`.
fn volatile(value: &str, rest: &str) -> String {
    format!(r#"withVolatileVariable(name: "V", value: "{value}") {{ {rest} }}"#)
}

const RANDOM: &str =
    r#"withExec(args: ["sh", "-c", "echo $V; head -c 12 /dev/urandom | base64"]) { stdout }"#;

#[test]
fn volatile_variables_are_seen_by_commands_alone() {
    let state = State::new();
    let session = Session::start(&state);
    let first = session.container(&volatile("one", RANDOM));
    assert!(first.starts_with("one\n"), "{first}");
    // Another value is the same command, and an older container keeps its own.
    assert_eq!(session.container(&volatile("two", RANDOM)), first);
    let other = r#"withExec(args: ["sh", "-c", "echo $V"]) { stdout }"#;
    assert_eq!(session.container(&volatile("two", other)), "two\n");
    assert_eq!(session.container(&volatile("one", &RANDOM.replace("12", "13")))[..4], *"one\n");

    let data = session.query(&session.on_container(&format!(
        r#"withEnvVariable(name: "V", value: "kept") {{ {} }}"#,
        volatile(
            "over",
            r#"envVariable(name: "V") envVariables { name value }
            asTarball { size }
            seen: withExec(args: ["sh", "-c", "echo over $V"]) { stdout }
            revealed: withoutVolatileVariable(name: "V") {
                withExec(args: ["sh", "-c", "echo revealed $V"]) { stdout } }"#
        )
    )));
    let made = &data["container"]["withRootfs"]["withEnvVariable"]["withVolatileVariable"];
    assert_eq!(made["envVariable"], "kept");
    assert!(!made["envVariables"].to_string().contains("over"));
    assert_eq!(made["seen"]["stdout"], "over over\n");
    assert_eq!(made["revealed"]["withExec"]["stdout"], "revealed kept\n");

    let expand = r#"withExec(args: ["echo", "$V"], expand: true) { stdout }"#;
    let said = session.error(&session.on_container(&volatile("x", expand)));
    assert_eq!(said, "expand cannot be used with volatile env variable \"V\"");
    let said = session.error(&session.on_container(
        r#"withVolatileVariable(name: "A=B", value: "x") { withExec(args: ["true"]) { stdout } }"#,
    ));
    assert!(said.contains("`A=B` cannot be the name"), "{said}");
}

#[test]
fn volatile_variables_are_in_no_image() {
    let state = State::new();
    let session = Session::start(&state);
    let path = json!("image.tar");
    session.query(&session.on_container(&volatile("nowhere", &format!("export(path: {path})"))));
    let tar = std::fs::read(state.workdir().join("image.tar")).unwrap();
    let found = tar.windows(7).any(|window| window == b"nowhere");
    assert!(!found, "the image knows the variable");
}
