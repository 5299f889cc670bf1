//! Commands with a session of their own: `experimentalPrivilegedNesting`.

use crate::remote::Remote;
use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::process::{named, wait_until};
use testkit::{Random, Session, State, User, busybox, client_program};

/// Shell functions that ask the session inside: `ask <document>`, with everything of the answer printed.
const ASK: &str = r#"
q() { sed 's/\\/\\\\/g; s/"/\\"/g'; }
ask_as() { wget -q -O - --header "Authorization: Basic $(printf %s: "$1" | base64 -w 0)" \
  --header "Content-Type: application/json" --post-data "{\"query\":\"$(printf %s "$2" | q)\"}" \
  "http://127.0.0.1:$CITOOL_SESSION_PORT/query"; }
ask() { ask_as "$CITOOL_SESSION_TOKEN" "$1"; }
"#;

/// A shell function that gives the id of the container's own root.
const ROOT: &str = r#"
root() { ask '{ host { directory(path: "/") { id } } }' | sed 's/.*"id":"\([^"]*\)".*/\1/'; }
"#;

/// A document for a shell's double quotes: a command in a container with the same root.
fn in_container(args: &str) -> String {
    let exec = format!("withExec(args: {args}) {{ stdout }}");
    format!(r#"{{ container {{ withRootfs(directory: \"$(root)\") {{ {exec} }} }} }}"#)
}

/// `withExec(sh -c <script with ask>) { stdout }` with nesting.
fn nested(script: &str) -> String {
    let script = json!(format!("{ASK}{script}"));
    format!(
        r#"withExec(args: ["sh", "-c", {script}], experimentalPrivilegedNesting: true) {{ stdout }}"#
    )
}

/// The answer to one document that a command asks inside.
pub(crate) fn answer(session: &Session, document: &str) -> Value {
    let text = session.container(&nested(&format!("ask '{document}'")));
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("no answer: {text}"))
}

/// The message of an answer that is an error.
#[track_caller]
fn refusal(session: &Session, document: &str) -> String {
    let answer = answer(session, document);
    answer["errors"][0]["message"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[test]
fn a_command_finds_a_session_that_answers_it_and_nobody_else() {
    let state = State::new();
    let session = Session::start(&state);
    let version = answer(&session, "{ version }");
    assert!(version["data"]["version"].is_string(), "{version}");
    let script = "test $DAGGER_SESSION_PORT = $CITOOL_SESSION_PORT && \
                  test $DAGGER_SESSION_TOKEN = $CITOOL_SESSION_TOKEN && echo same; \
                  ask_as wrong '{ version }' || echo refused; \
                  ask_as '' '{ version }' || echo refused; env | grep TOKEN";
    let said = session.container(&nested(script));
    let hidden = "CITOOL_SESSION_TOKEN=***\nDAGGER_SESSION_TOKEN=***\n";
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines[..2], hidden.lines().collect::<Vec<_>>()[..], "{said}");
    assert_eq!(lines[2..], ["refused", "refused", "same"], "{said}");
    let plain = r#"withExec(args: ["sh", "-c", "env | grep -c SESSION || true"]) { stdout }"#;
    assert_eq!(session.container(plain), "0\n", "nobody else has one");
    let path =
        nested("wget -q -O - http://127.0.0.1:$CITOOL_SESSION_PORT/session/close || echo no");
    assert_eq!(session.container(&path), "no\n");
}

#[test]
fn it_runs_containers_and_shares_what_is_remembered() {
    let state = State::new();
    let session = Session::start(&state);
    let marker = Random::new("nested").below(1 << 40);
    let run = format!("echo {marker}; cat /proc/sys/kernel/random/uuid");
    let inner = in_container(&format!(r#"[\"sh\", \"-c\", \"{run}\"]"#));
    // Two commands that differ, so that both run, and ask for the same.
    let ask =
        |note: &str| session.container(&nested(&format!(": {note}; {ROOT}\nask \"{inner}\"")));
    let said = ask("first");
    assert!(said.contains(&format!("\"stdout\":\"{marker}\\n")), "{said}");
    assert_eq!(ask("second"), said, "the same work is done once");
}

#[test]
fn its_host_is_the_container() {
    let state = State::new();
    std::fs::write(state.workdir().join("only-outside"), "x").unwrap();
    let session = Session::start(&state);
    let script = "mkdir -p /w/sub; cd /w; echo inside > sub/file; \
                  ask '{ host { directory(path: \"/w\") { entries } file(path: \"/w/sub/file\") { contents } } }'";
    let said: Value = serde_json::from_str(&session.container(&nested(script))).unwrap();
    assert_eq!(said["data"]["host"]["directory"]["entries"], json!(["sub/"]), "{said}");
    assert_eq!(said["data"]["host"]["file"]["contents"], "inside\n", "{said}");
    let outside = state.workdir().join("only-outside");
    let document = format!(r#"{{ host {{ file(path: "{}") {{ size }} }} }}"#, outside.display());
    assert!(refusal(&session, &document).contains("no such file or directory"));
    let mounted = session.leaf(r#"{ setSecret(name: "s", plaintext: "hunter-two") { id } }"#);
    let document = r#"{ host { directory(path: "/") { entries } } }"#;
    let script = format!(
        "ln -s /s /link; ask '{document}'; ask '{{ host {{ file(path: \"/link\") {{ contents }} }} }}'"
    );
    let chain =
        format!(r#"withMountedSecret(path: "/s", source: {mounted}) {{ {} }}"#, nested(&script));
    let said = session.container(&chain);
    assert!(!said.contains("hunter-two") && !said.contains("***"), "{said}");
    assert!(said.contains("not for reading") && said.contains("bin/"), "{said}");
    assert!(!said.contains("\"proc/\"") && !said.contains("\"s\""), "{said}");
}

#[test]
fn what_is_the_callers_is_refused() {
    let state = State::new();
    let session = Session::start(&state);
    for (document, words) in [
        (r#"{ secret(uri: "env://HOME") { plaintext } }"#, "env://HOME"),
        (r#"{ secret(uri: "file:///etc/passwd") { plaintext } }"#, "file:///etc/passwd"),
        (r#"{ secret(uri: "cmd://id") { plaintext } }"#, "cmd://id"),
        (
            r#"{ directory { withNewFile(path: "a", contents: "b") { export(path: "/out") } } }"#,
            "/out",
        ),
    ] {
        let said = refusal(&session, document);
        assert!(said.contains(words) && said.contains("nested session"), "{document}: {said}");
    }
    let outer = session.leaf(r#"{ setSecret(name: "s", plaintext: "hunter-two") { id } }"#);
    let document = format!("{{ loadSecretFromID(id: {outer}) {{ plaintext }} }}");
    assert!(refusal(&session, &document).contains("belongs to another session"));
    let own = answer(&session, r#"{ setSecret(name: "s", plaintext: "mine") { name } }"#);
    assert_eq!(own["data"]["setSecret"]["name"], "s", "{own}");
}

#[test]
fn a_command_that_starts_itself_ends_at_a_depth() {
    let state = State::new();
    let session = Session::start(&state);
    // Each level asks for a container with the same root and the same command, which is in a file of it.
    let again = in_container(r#"[\"sh\", \"/again\"], experimentalPrivilegedNesting: true"#);
    let script = json!(format!("{ASK}{ROOT}ask \"{again}\""));
    let chain = format!(
        r#"withNewFile(path: "/again", contents: {script}) {{ withExec(args: ["sh", "/again"], experimentalPrivilegedNesting: true) {{ stdout }} }}"#
    );
    let said = session.container(&chain);
    assert!(said.contains("no more than 8 sessions can be inside each other"), "{said}");
}

#[test]
fn it_is_cached_like_any_command_and_apart_from_one_without_a_session() {
    let state = State::new();
    let session = Session::start(&state);
    let number = Random::new("cached").below(1 << 40);
    let script = format!("echo {number}; cat /proc/sys/kernel/random/uuid");
    let first = session.container(&nested(&script));
    let second = Session::start(&state);
    assert_eq!(second.container(&nested(&script)), first, "another session finds it");
    let plain = json!(format!("{ASK}{script}"));
    let plain = format!(r#"withExec(args: ["sh", "-c", {plain}]) {{ stdout }}"#);
    assert_ne!(session.container(&plain), first);
}

/// The words that run a script in a container, which has a session of its own there.
pub(crate) fn script_in_container(state: &State, script: &str) -> Vec<String> {
    std::fs::write(state.workdir().join("script"), script).unwrap();
    let rootfs = format!("--directory={}", busybox().display());
    let words = [
        "core",
        "container",
        "with-rootfs",
        &rootfs,
        "with-file",
        "--path=/script",
        "--source=script",
        "with-exec",
        "--args=sh,/script",
        "--experimental-privileged-nesting",
        "stdout",
    ];
    words.map(str::to_owned).into()
}

#[test]
fn an_interrupt_ends_what_was_started_inside() {
    let state = State::new();
    let number = 1_000_000 + Random::new("sleeper").below(1 << 30);
    let inner = in_container(&format!(r#"[\"sleep\", \"{number}\"]"#));
    let script = format!("{ASK}{ROOT}ask \"{inner}\"");
    let running = state.cli(script_in_container(&state, &script)).spawn();
    let name = format!("sleep {number}");
    assert!(wait_until(state.remaining(), || !named(&name).is_empty()), "{}", state.log());
    let processes = named(&name);
    running.signal_group(Signal::INT);
    running.wait().fails(2);
    for process in processes {
        assert!(process.wait_gone(), "{}", process.arguments());
    }
}

#[test]
fn progress_of_what_is_inside_shows_under_the_command() {
    let state = State::new();
    let script = format!(
        "{ASK}\nask '{{ directory {{ withNewFile(path: \"a\", contents: \"b\") {{ entries }} }} }}'"
    );
    let output = state.cli(["--progress=plain"]).args(script_in_container(&state, &script)).run();
    assert!(output.ok().contains(r#"["a"]"#), "{output:#?}");
    assert!(output.stderr.contains("directory.entries"), "{}", output.stderr);
}

#[test]
fn a_user_without_root_and_without_a_network_has_it_too() {
    let state = State::of_user(User::with_ids(), "network = \"none\"\n");
    let session = Session::start(&state);
    let said = answer(&session, r#"{ host { file(path: "/etc/passwd") { contents } } }"#);
    let contents = said["data"]["host"]["file"]["contents"].as_str();
    assert!(contents.is_some_and(|text| text.contains("root")), "{said}");
}

#[test]
fn a_published_library_works_inside() {
    let state = State::debian();
    let session = Session::start(&state);
    // The first word of the script is the interpreter of the folder that the library is installed in.
    let script = std::fs::read_to_string(client_program("python-newest")).unwrap();
    let interpreter = script.split('\'').nth(1).expect("a quoted path");
    let lib = std::path::Path::new(interpreter).ancestors().nth(2).unwrap().join("lib");
    let lib = lib.canonicalize().unwrap();
    let lib = session.leaf(&format!("{{ host {{ directory(path: {:?}) {{ id }} }} }}", lib));
    let program = json!(
        "import asyncio, dagger\n\
         from dagger import dag\n\
         async def main():\n\
         \x20   async with dagger.connection():\n\
         \x20       inner = dag.container().from_('deb://bookworm').with_exec(['echo', 'inner'])\n\
         \x20       print(await inner.stdout(), await dag.host().directory('/lib').entries() != [])\n\
         asyncio.run(main())\n"
    );
    let run = "cd /site/python3*/site-packages && PYTHONPATH=$PWD exec python3 /program.py";
    let document = format!(
        r#"{{ container {{ from(address: "deb://bookworm+python3") {{
            withMountedDirectory(path: "/site", source: {lib}) {{
            withNewFile(path: "/program.py", contents: {program}) {{
            withExec(args: ["sh", "-c", "{run}"], experimentalPrivilegedNesting: true) {{ stdout }}
        }} }} }} }} }}"#
    );
    assert_eq!(session.leaf(&document), "inner\n True\n");
}

#[test]
fn it_works_on_an_engine_elsewhere_and_reaches_no_machine_of_anybody() {
    let remote = Remote::new();
    let outside = remote.client.workdir().join("only-outside");
    std::fs::write(&outside, "x").unwrap();
    let engine_side = remote.engine.workdir().join("only-there");
    std::fs::write(&engine_side, "x").unwrap();
    let inner = in_container(r#"[\"echo\", \"inner\"]"#);
    let file = |path: &std::path::Path| {
        format!("ask '{{ host {{ file(path: \"{}\") {{ size }} }} }}'", path.display())
    };
    let script = [
        format!("{ASK}{ROOT}ask \"{inner}\""),
        file(std::path::Path::new("/script")),
        file(&outside),
        file(&engine_side),
        "ask '{ secret(uri: \"env://TOKEN\") { plaintext } }'".to_owned(),
    ];
    let words = script_in_container(&remote.client, &script.join("; echo; "));
    let output = remote.cli(&[]).args(words).env("TOKEN", "of-the-client").run();
    let answers: Vec<&str> = output.ok().lines().collect();
    assert_eq!(answers.len(), 5, "{answers:#?}");
    assert!(answers[0].contains(r#""stdout":"inner\n""#), "{}", answers[0]);
    assert!(answers[1].contains(r#""size":"#), "{}", answers[1]);
    for answer in &answers[2..4] {
        assert!(answer.contains("no such file or directory"), "{answer}");
    }
    assert!(answers[4].contains("nested session"), "{}", answers[4]);
}
