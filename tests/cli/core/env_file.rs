//! Env files: their language, the caller's variables, and containers that get them.

use serde_json::{Value, json};
use testkit::{Session, State};

const FILE: &str = r#"# pets
animal=dog
message=hello, nice ${animal}
export message2="hello, nice $animal"
quoted="double (with \"), 'and single'"
single='no $animal'
default=${NOBODY:-none}
"#;

/// `{ file { asEnvFile { <rest> } } }` on a text.
fn on(text: &str, rest: &str) -> String {
    let text = json!(text);
    format!(r#"{{ file(name: ".env", contents: {text}) {{ asEnvFile {{ {rest} }} }} }}"#)
}

fn pairs(variables: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let all = variables.as_array().unwrap().iter();
    all.map(|variable| (text(&variable["name"]), text(&variable["value"]))).collect()
}

#[test]
fn the_language_of_env_files() {
    let state = State::new();
    let session = Session::start(&state);
    let get = |name: &str| session.leaf(&on(FILE, &format!("get(name: \"{name}\")")));
    assert_eq!(get("message"), "hello, nice dog");
    assert_eq!(get("message2"), "hello, nice dog");
    assert_eq!(get("quoted"), "double (with \"), 'and single'");
    assert_eq!(get("single"), "no $animal");
    assert_eq!(get("default"), "none");
    assert_eq!(get("missing"), "");
    let raw = session.leaf(&on(FILE, r#"get(name: "message2", raw: true)"#));
    assert_eq!(raw, "\"hello, nice $animal\"");
    assert_eq!(session.leaf(&on(FILE, "asFile { name }")), ".env");
    assert_eq!(session.leaf(&on(FILE, "asFile { contents }")), FILE);
    assert_eq!(session.leaf(&on(FILE, r#"exists(name: "animal")"#)), true);
    assert_eq!(session.leaf(&on(FILE, r#"exists(name: "nimal")"#)), false);
    let plain = json!("A=$B");
    let plain = session.leaf(&format!(
        r#"{{ file(name: "x", contents: {plain}) {{ asEnvFile(expand: false) {{ get(name: "A") }} }} }}"#
    ));
    assert_eq!(plain, "$B");
    let said = session.error(&on("A=1\nwhat\n", "asFile { contents }"));
    assert!(said.contains("line 2 of the env file sets no variable"), "{said}");
    let said = session.error(&on("A=$B\nB=$A", r#"get(name: "A")"#));
    assert!(said.contains("in a circle"), "{said}");
}

#[test]
fn variables_are_set_removed_and_picked() {
    let state = State::new();
    let session = Session::start(&state);
    let data = session.query(
        r#"{ envFile { withVariable(name: "GREETING", value: "bonjour") {
            withVariable(name: "message", value: "$GREETING, $NAME # 1") {
            withVariable(name: "NAME", value: "monde") { get(name: "message") asFile { contents }
            replaced: withVariable(name: "GREETING", value: "salut") { variables { name value } }
            without: withoutVariable(name: "NAME") { get(name: "message", raw: true) exists(name: "NAME")
                variables(raw: true) { name value } }
        } } } } }"#,
    );
    let made = &data["envFile"]["withVariable"]["withVariable"]["withVariable"];
    assert_eq!(made["get"], "bonjour, monde # 1");
    let text = "GREETING=bonjour\nmessage=\"$GREETING, $NAME # 1\"\nNAME=monde\n";
    assert_eq!(made["asFile"]["contents"], text);
    assert_eq!(
        pairs(&made["replaced"]["variables"]),
        [("GREETING", "salut"), ("message", "salut, monde # 1"), ("NAME", "monde")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
    assert_eq!(made["without"]["get"], "$GREETING, $NAME # 1");
    assert_eq!(made["without"]["exists"], false);
    assert_eq!(pairs(&made["without"]["variables"]).len(), 2);
    let said = session.error(
        r#"{ envFile { withVariable(name: "A", value: "$NAME_NOBODY_HAS") { get(name: "A") } } }"#,
    );
    assert!(said.contains("`A` refers to `NAME_NOBODY_HAS`"), "{said}");
    let said = session
        .error(r#"{ envFile { withVariable(name: "A=B", value: "") { exists(name: "A") } } }"#);
    assert!(said.contains("`A=B` cannot be the name"), "{said}");

    let file = "my_app_token=x\nmyApp_name='a $b'\nMY_aPp_URL=http://$host\nhost=h\nmy_apple=no\n";
    for prefix in ["my-app", "my_app_", "MY_APP"] {
        let picked = session.query(&on(
            file,
            &format!(r#"namespace(prefix: "{prefix}") {{ variables {{ name value }} asFile {{ contents }} }}"#),
        ));
        let picked = &picked["file"]["asEnvFile"]["namespace"];
        let expected = [("token", "x"), ("name", "a $b"), ("URL", "http://h")];
        assert_eq!(
            pairs(&picked["variables"]),
            expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        let text = picked["asFile"]["contents"].as_str().unwrap();
        assert_eq!(session.leaf(&on(text, r#"get(name: "name")"#)), "a $b", "{text}");
    }
}

#[test]
fn variables_of_the_caller_are_seen_and_are_part_of_what_ran() {
    let state = State::new();
    state.file(".env", "NAME=${MYNAME}\nEMPTY=\n");
    let words = ["core", "host", "file", "--path=.env", "as-env-file", "get", "--name=NAME"];
    let said = state.cli(words).env("MYNAME", "user1").run();
    assert_eq!(said.ok().trim_end(), "user1");
    let said = state.cli(words).run();
    assert!(said.fails(1).contains("`NAME` refers to `MYNAME`"), "{said:#?}");

    let run = |name: &str| {
        let session = Session::start_in(&state, &[("MYNAME", name)]);
        let file = session.leaf(r#"{ host { file(path: ".env") { asEnvFile { id } } } }"#);
        session.container(&format!(
            r#"withEnvFileVariables(source: {file}) {{ withExec(args: ["sh", "-c",
                "echo $NAME${{EMPTY-unset}}; head -c 12 /dev/urandom | base64"]) {{ stdout }} }}"#
        ))
    };
    let (first, second) = (run("user1"), run("user2"));
    assert!(first.starts_with("user1\n") && second.starts_with("user2\n"), "{first}{second}");
    assert_eq!((run("user1"), run("user2")), (first, second), "each ran once");
}
