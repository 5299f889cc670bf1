//! Secrets as variables and files of a command, and in the cache.

use super::{kept, secret, shell, with_variable};
use serde_json::{Value, json};
use testkit::{Session, State};

/// `withMountedSecret(path: "/s", ...) { <rest> }`.
fn with_file(secret: &Value, options: &str, rest: &str) -> String {
    format!(r#"withMountedSecret(path: "/s", source: {secret}{options}) {{ {rest} }}"#)
}

fn exec(script: &str) -> String {
    format!(r#"withExec(args: ["sh", "-c", {}]) {{ stdout }}"#, json!(script))
}

#[test]
fn the_last_variable_of_a_name_wins_and_none_stays() {
    let state = State::new();
    let session = Session::start(&state);
    let (one, two) = (secret(&session, "hunter-one"), secret(&session, "hunter-two"));
    let script = exec("echo ${S#hunter-}");
    let chain = with_variable(&one, &with_variable(&two, &script));
    assert_eq!(session.container(&chain), "two\n");
    let chain = format!(
        r#"withEnvVariable(name: "S", value: "plain") {{ {} }}"#,
        with_variable(&one, &script)
    );
    assert_eq!(session.container(&chain), "one\n", "a secret goes before a plain variable");
    let removed = format!(r#"withoutSecretVariable(name: "S") {{ {} }}"#, exec("echo [$S]"));
    let chain = format!(
        r#"withEnvVariable(name: "S", value: "plain") {{ {} }}"#,
        with_variable(&one, &removed)
    );
    assert_eq!(session.container(&chain), "[plain]\n", "which is there again afterwards");
    let listed = session.leaf(&session.on_container(&with_variable(&one, "envVariables { name }")));
    assert_eq!(listed, json!([]), "a secret is no part of the configuration");
    let asked = with_variable(&one, r#"envVariable(name: "S")"#);
    assert_eq!(session.leaf(&session.on_container(&asked)), Value::Null);
}

#[test]
fn a_file_has_its_mode_and_owner_and_is_in_memory() {
    let state = State::new();
    let session = Session::start(&state);
    let secret = secret(&session, "hunter2");
    let stat = exec("stat -c '%a %u:%g %s' /s; df /s | tail -1 | cut -d ' ' -f 1");
    for (options, expect) in [
        ("", "400 0:0 7\ntmpfs\n"),
        (", mode: 288, owner: \"guest\"", "440 1000:1000 7\ntmpfs\n"),
        (", mode: 511, owner: \"7:8\"", "777 7:8 7\ntmpfs\n"),
    ] {
        assert_eq!(session.container(&with_file(&secret, options, &stat)), expect, "{options}");
    }
    let chain = format!(
        r#"withUser(name: "guest") {{ {} }}"#,
        with_file(&secret, ", inheritOwner: true", &exec("wc -c < /s; echo x > /s || echo kept"))
    );
    assert_eq!(session.container(&chain), "7\nkept\n");
    let chain = format!(
        r#"withUser(name: "guest") {{ {} }}"#,
        with_file(&secret, "", &exec("cat /s || echo no"))
    );
    assert_eq!(session.container(&chain), "no\n", "it is the owner's alone");
    let input =
        with_file(&secret, "", r#"withExec(args: ["wc", "-c"], redirectStdin: "/s") { stdout }"#);
    assert_eq!(session.container(&input), "7\n");
}

#[test]
fn a_file_is_seen_by_commands_only() {
    let state = State::new();
    let session = Session::start(&state);
    let secret = secret(&session, "hunter2");
    let said = session.error(&session.on_container(&with_file(
        &secret,
        "",
        r#"file(path: "/s") { contents }"#,
    )));
    assert!(said.contains("/s: no such file or directory"), "{said}");
    // Nothing of it stays, not even its place, also below a mounted directory.
    let chain = format!(
        r#"withMountedDirectory(path: "/m", source: {}) {{
            withMountedSecret(path: "/m/deep/s", source: {secret}) {{
                withExec(args: ["sh", "-c", "wc -c < /m/deep/s > /m/size"]) {{
                    rootfs {{ entries }} directory(path: "/m") {{ entries }} }} }} }}"#,
        session.leaf("{ directory { id } }")
    );
    let data = session.query(&session.on_container(&chain));
    let exec =
        &data["container"]["withRootfs"]["withMountedDirectory"]["withMountedSecret"]["withExec"];
    assert_eq!(exec["directory"]["entries"], json!(["size"]));
    assert!(!exec["rootfs"]["entries"].to_string().contains("\"m"), "{exec}");
    // A file that is mounted at the same path: commands see the secret, others the file.
    let file = session.leaf(r#"{ file(name: "f", contents: "plain") { id } }"#);
    let chain = with_file(
        &secret,
        "",
        &format!(
            r#"withMountedFile(path: "/s", source: {file}) {{
                withExec(args: ["wc", "-c", "/s"]) {{ stdout file(path: "/s") {{ contents }} }} }}"#
        ),
    );
    let data = session.query(&session.on_container(&chain));
    let exec = &data["container"]["withRootfs"]["withMountedSecret"]["withMountedFile"]["withExec"];
    assert_eq!((&exec["stdout"], &exec["file"]["contents"]), (&json!("7 /s\n"), &json!("plain")));
    let gone = format!(r#"withoutMount(path: "/s") {{ {} }}"#, exec_missing());
    assert_eq!(session.container(&with_file(&secret, "", &gone)), "gone\n");
}

fn exec_missing() -> String {
    exec("test -e /s || echo gone")
}

#[test]
fn equal_secrets_share_results_and_others_do_not() {
    let state = State::new();
    let random = "head -c 9 /dev/urandom | base64";
    let session = Session::start(&state);
    let first = shell(&session, &secret(&session, "hunter2"), random);
    assert_eq!(first, shell(&session, &secret(&session, "hunter2"), random));
    assert_ne!(first, shell(&session, &secret(&session, "hunter3"), random));
    drop(session);
    // Another session that can present it reaches the same result, wherever it has it from.
    state.file("key", "hunter2");
    let session = Session::start(&state);
    assert_eq!(first, shell(&session, &secret(&session, "hunter2"), random));
    assert_eq!(first, shell(&session, &kept(&session, "file://key"), random));
    let file = |options: &str| {
        session.container(&with_file(&secret(&session, "hunter2"), options, &exec(random)))
    };
    assert_eq!(file(""), file(""));
    assert_ne!(file(""), file(", mode: 292"));
    // An engine with another key knows nothing of it.
    let other = state.another();
    let session = Session::start(&other);
    assert_ne!(first, shell(&session, &secret(&session, "hunter2"), random));
}

#[test]
fn a_cache_key_stands_for_the_secret() {
    let state = State::new();
    let random = "head -c 9 /dev/urandom | base64";
    let session = Session::start(&state);
    let count = state.workdir().join("count");
    let run = |session: &Session, text: &str, key: &str| {
        let uri = json!(format!("cmd://printf x >> count; printf {text}"));
        let document = format!("{{ secret(uri: {uri}, cacheKey: {key:?}) {{ id }} }}");
        shell(session, &session.leaf(&document), random)
    };
    let first = run(&session, "hunter2", "release");
    assert_eq!(first, run(&session, "hunter3", "release"));
    assert_ne!(first, run(&session, "hunter2", "nightly"));
    let read = std::fs::read_to_string(&count).unwrap().len();
    let session = Session::start(&state);
    assert_eq!(first, run(&session, "hunter4", "release"));
    let again = std::fs::read_to_string(&count).unwrap().len();
    assert_eq!(read, again, "a result that is known needs no secret");
    let in_uri = kept(&session, "cmd://printf hunter5?cacheKey=release");
    assert_eq!(first, shell(&session, &in_uri, random));
}

#[test]
fn a_secret_variable_is_not_expanded() {
    let state = State::new();
    let session = Session::start(&state);
    let secret = secret(&session, "hunter2");
    for field in [
        r#"withExec(args: ["echo", "$S"], expand: true) { stdout }"#,
        r#"withEnvVariable(name: "A", value: "${S}", expand: true) { id }"#,
        r#"withWorkdir(path: "/$S", expand: true) { workdir }"#,
        r#"withNewFile(path: "/$S", contents: "", expand: true) { sync }"#,
    ] {
        let document =
            session.on_container(&with_variable(&secret, &field.replace("{ id }", "{ sync }")));
        let said = session.error(&document);
        assert!(said.contains("expand cannot be used with secret env variable \"S\""), "{said}");
    }
    let chain =
        with_variable(&secret, r#"withExec(args: ["echo", "$PWD."], expand: true) { stdout }"#);
    assert_eq!(session.container(&chain), ".\n");
}

#[test]
fn an_image_has_no_secrets() {
    let state = State::new();
    let session = Session::start(&state);
    let secret = secret(&session, "hunter2-hunter2");
    let chain = format!(
        r#"withSecretVariable(name: "NAME_OF_IT", secret: {secret}) {{
            withMountedSecret(path: "/name-of-it", source: {secret}) {{
                asTarball(forcedCompression: Uncompressed) {{ export(path: "image.tar") }} }} }}"#
    );
    session.container(&chain);
    let image = std::fs::read(state.workdir().join("image.tar")).unwrap();
    for text in [&b"hunter2-hunter2"[..], b"NAME_OF_IT", b"name-of-it"] {
        let held = image.windows(text.len()).any(|window| window == text);
        assert!(!held, "{}", String::from_utf8_lossy(text));
    }
}
