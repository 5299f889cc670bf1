//! `env://`, `file://` and `cmd://`: read on the machine where the user types, when first needed.

use super::{kept, shell, words};
use serde_json::json;
use testkit::{Session, State, busybox};

#[test]
fn each_provider_by_its_flag() {
    let state = State::new();
    state.file("in-work", "from-a-file\n");
    std::fs::write(state.home().join("in-home"), "from-the-home").unwrap();
    for (flag, expect) in [
        ("--secret=env://TOKEN", "hunter2"),
        ("--secret=env:TOKEN", "hunter2"),
        ("--secret=file://in-work", "from-a-file\n"),
        ("--secret=file://~/in-home", "from-the-home"),
        ("--secret=cmd://printf 'a %s' command", "a command"),
    ] {
        let length = expect.len();
        let output = state.cli(words(flag, "sh,-c,echo ${#T}; env")).env("TOKEN", "hunter2").run();
        let text = output.ok();
        assert!(text.starts_with(&format!("{length}\n")) && text.contains("T=***"), "{text}");
        assert!(!text.contains(expect.trim()) && !output.stderr.contains(expect.trim()));
    }
    // The form without a scheme is old, and said to be.
    let output = state.cli(words("--secret=TOKEN", "env")).env("TOKEN", "hunter2").run();
    assert!(output.ok().contains("T=***"), "{output:#?}");
    assert!(output.stderr.contains("env://TOKEN"), "{output:#?}");
}

#[test]
fn what_is_not_there_is_named_without_being_shown() {
    let state = State::new();
    for (flag, expect, never) in [
        ("--secret=env://MISSING_NAME", "secret env var not found: \"MIS...\"", "\0"),
        ("--secret=hunter2", "secret env var not found: \"hun...\"", "found: \"hunter2"),
        ("--secret=file://none", "none: no such file or directory", "\0"),
        ("--secret=cmd://echo a-secret-word; exit 3", "failed to run secret command", "***"),
        ("--secret=vault://a.b", "unsupported secret provider: \"vault\"", "\0"),
    ] {
        let output = state.cli(words(flag, "true")).run();
        let said = output.fails(1);
        assert!(said.contains(expect), "{flag}: {said}");
        assert!(!said.contains(never), "{flag}: {said}");
    }
    let session = Session::start(&state);
    // Already naming one is refused.
    let said = session.error(r#"{ secret(uri: "vault://a.b") { id } }"#);
    assert!(said.contains("unsupported secret provider: \"vault\""), "{said}");
    let said = session.error(r#"{ secret(uri: "no-scheme-at-all") { id } }"#);
    assert!(said.contains("malformed id"), "{said}");
}

#[test]
fn old_programs_find_secrets_by_name() {
    let state = State::new();
    let session = Session::start(&state);
    session.leaf(r#"{ setSecret(name: "token", plaintext: "hunter2") { id } }"#);
    let found = r#"{ loadSecretFromName(name: "token") { plaintext } }"#;
    assert_eq!(session.leaf(found), "hunter2");
    let other = Session::start(&state);
    let said = other.error(found);
    assert!(said.contains("this session has set no secret `token`"), "{said}");
    session.leaf(r#"{ setSecret(name: "token", plaintext: "hunter3") { id } }"#);
    let said =
        session.error(r#"{ loadSecretFromName(name: "token", accessor: "x") { plaintext } }"#);
    assert!(said.contains("several secrets `token`"), "{said}");
    let file = state.file("key", "from-a-file\n");
    let path = json!(file.display().to_string());
    let kept = session.leaf(&format!(
        r#"{{ host {{ setSecretFile(name: "k", path: {path}) {{ plaintext }} }} }}"#
    ));
    assert_eq!(kept, "from-a-file\n");
    let said = session.error(r#"{ builtinContainer(digest: "sha256:0") { sync } }"#);
    assert!(said.contains("no built-in container"), "{said}");
}

#[test]
fn a_secret_is_read_when_it_is_first_needed_and_once() {
    let state = State::new();
    let session = Session::start(&state);
    let count = state.workdir().join("count");
    let read = || std::fs::read_to_string(&count).unwrap_or_default().len();
    let uri = "cmd://printf x >> count; printf hunter2";
    let secret = kept(&session, uri);
    let uses = super::with_variable(&secret, r#"withExec(args: ["true"]) { id }"#);
    session.query(&session.on_container(&uses));
    assert_eq!(read(), 0, "making ids reads nothing");
    for script in ["echo 1 $S", "echo 2 $S"] {
        assert_eq!(shell(&session, &secret, script), format!("{} ***\n", &script[5..6]));
    }
    assert_eq!(read(), 1, "it is read once in a session");
    let session = Session::start(&state);
    assert_eq!(shell(&session, &kept(&session, uri), "echo 3 $S"), "3 ***\n");
    assert_eq!(read(), 2, "and again in the next");
    // One that may only be used for a moment is read again.
    let brief = kept(&session, &format!("{uri}?ttl=1ms"));
    for number in 4..6 {
        shell(&session, &brief, &format!("echo {number} $S"));
    }
    assert!(read() >= 4, "{}", read());
}

#[test]
fn names_and_addresses_can_be_asked_for() {
    let state = State::new();
    let session = Session::start(&state);
    state.file("key", "a line\n");
    let data = session.query(
        r#"{ kept: secret(uri: "file://key?cacheKey=k&ttl=5m") { name uri plaintext }
             given: setSecret(name: "g", plaintext: "given") { name uri plaintext }
             host { setSecretFile(name: "f", path: "key") { name uri plaintext } }
             address(value: "file://key") { value secret { plaintext } } }"#,
    );
    assert_eq!(
        data["kept"],
        json!({ "name": "file://key", "uri": "file://key", "plaintext": "a line\n" })
    );
    assert_eq!(data["given"], json!({ "name": "g", "uri": "", "plaintext": "given" }));
    assert_eq!(data["host"]["setSecretFile"]["plaintext"], "a line\n");
    assert_eq!(data["host"]["setSecretFile"]["name"], "f");
    assert_eq!(data["address"]["secret"]["plaintext"], "a line\n");
    let said = session.error(r#"{ secret(uri: "file://key?ttl=soon") { plaintext } }"#);
    assert!(said.contains("is no time"), "{said}");
    state.file("bytes", [0xff, 0xfe]);
    let said = session.error(r#"{ secret(uri: "file://bytes") { plaintext } }"#);
    assert!(said.contains("is not text"), "{said}");
}

#[test]
fn a_secret_belongs_to_its_session() {
    let state = State::new();
    state.file("key", "text");
    let (one, two) = (Session::start(&state), Session::start(&state));
    for id in [super::secret(&one, "hunter2"), kept(&one, "file://key")] {
        let said = two.error(&format!("{{ loadSecretFromID(id: {id}) {{ plaintext }} }}"));
        assert!(said.contains("belongs to another session"), "{said}");
        let uses = super::with_variable(&id, r#"withExec(args: ["env"]) { stdout }"#);
        let said = two.error(&two.on_container(&uses));
        assert!(said.contains("belongs to another session"), "{said}");
    }
}

#[test]
fn a_login_may_come_from_a_provider() {
    use testkit::registry::{PASSWORD, Registry, USER};
    let registry = Registry::with_password();
    let state = State::new();
    let address = format!("{}/app:1", registry.address());
    let rootfs = format!("--directory={}", busybox().display());
    let login = [
        "core".to_owned(),
        "container".into(),
        "with-rootfs".into(),
        rootfs,
        "with-registry-auth".into(),
        format!("--address={}", registry.address()),
        format!("--username={USER}"),
        "--secret=env://PASSWORD".into(),
        "publish".into(),
        format!("--address={address}"),
    ];
    let output = state.cli(&login).env("PASSWORD", PASSWORD).run();
    assert!(output.ok().contains("sha256:"), "{output:#?}");
    let output = state.cli(&login).env("PASSWORD", "quite-wrong").run();
    assert!(!output.status.success() && !output.stderr.contains("quite-wrong"), "{output:#?}");
}
