//! Fifty secrets, used in every way there is: none of them is found in the state folder, in the engine's
//! log at its most talkative, or in anything that was said.

use serde_json::{Value, json};
use std::path::Path;
use testkit::registry::{Registry, USER};
use testkit::{Random, Session, State};

const MANY: usize = 50;

/// Files at or below a path that hold any of the lines of a file.
fn holders(state: &State, path: &Path, words: &Path) -> String {
    let grep = state.program(Path::new("grep"));
    let args = ["-r", "-l", "-a", "-F", "-f"].map(str::to_owned);
    grep.args(args.iter().cloned().chain([words.display().to_string(), path.display().to_string()]))
        .run()
        .stdout
}

/// What is asked of a secret, by the number of the use. What it says may hold no secret.
fn use_one(session: &Session, number: usize, id: &Value, registry: &Registry) -> String {
    let exec = |script: &str| {
        format!(
            r#"withExec(args: ["sh", "-c", {}]) {{ stdout stderr combinedOutput }}"#,
            json!(script)
        )
    };
    let variable =
        |rest: &str| format!(r#"withSecretVariable(name: "S", secret: {id}) {{ {rest} }}"#);
    let file = |rest: &str| {
        format!(r#"withMountedSecret(path: "/s", source: {id}, mode: 292) {{ {rest} }}"#)
    };
    let chain = match number % 8 {
        0 => variable(&exec("echo $S; echo $S >&2; env")),
        1 => file(&exec("cat /s; cat /s >&2; wc -c /s")),
        2 => variable(&exec("echo $S; echo no >&2; exit 7")),
        3 => file(
            r#"withExec(args: ["cat"], redirectStdin: "/s", redirectStdout: "/o", redirectStderr: "/e") { stdout }"#,
        ),
        4 => variable(&file(&exec("yes \"$S $(cat /s)\" | head -n 20000"))),
        5 => format!(
            r#"withRegistryAuth(address: {}, username: "{USER}", secret: {id}) {{ from(address: {}) {{ sync }} }}"#,
            json!(registry.address()),
            json!(format!("{}/none:1", registry.address()))
        ),
        6 => variable(r#"withExec(args: ["no-such-program"]) { stdout }"#),
        _ => variable(&file(
            r#"withExec(args: ["sh", "-c", "echo $S | tr -d x; kill -9 $$"]) { stdout }"#,
        )),
    };
    session.send(&session.on_container(&chain)).json().to_string()
}

#[test]
fn fifty_secrets_leave_no_trace() {
    let state = State::with_config("log-level = \"trace\"");
    let registry = Registry::with_password();
    let mut random = Random::new("fifty secrets");
    let texts: Vec<String> =
        (0..MANY).map(|number| format!("s3cr-{number}-{}", random.word())).collect();
    let session = Session::start(&state);
    let mut said = vec![];
    for (number, word) in texts.iter().enumerate() {
        state.file(&format!("keys/{number}"), word);
        let id = match number % 3 {
            0 => super::secret(&session, word),
            1 => super::kept(&session, &format!("file://keys/{number}")),
            _ => super::kept(&session, &format!("cmd://cat keys/{number}")),
        };
        said.push(id.to_string());
        said.push(use_one(&session, number, &id, &registry));
        // Ids of what is made with it, and what is found again.
        let made = session.on_container(&super::with_variable(&id, "id"));
        said.push(session.query(&made).to_string());
        said.push(use_one(&session, number, &id, &registry));
    }
    for (number, word) in texts.iter().enumerate().take(8) {
        let args = format!("sh,-c,env; env >&2; exit {}", number % 2);
        let chain =
            ["-vv".to_owned()].into_iter().chain(super::words("--secret=env://TOKEN", &args));
        let output = state.cli(chain).env("TOKEN", word).run();
        said.push(output.stdout);
        said.push(output.stderr);
    }
    let listed =
        state.cli(["core", "engine", "local-cache", "entry-set", "entries", "description"]).run();
    said.push(format!("{}{}", listed.stdout, listed.stderr));
    let spoken = said.join("\n");
    assert!(spoken.contains("***"));
    // Not in the state folder, which is searched.
    let (words, heard) = (state.home().join("words"), state.home().join("heard"));
    std::fs::write(&words, texts.join("\n")).unwrap();
    std::fs::write(&heard, spoken).unwrap();
    assert_eq!(holders(&state, &heard, &words), "");
    // While the session is open and everything of it is in memory, and after the engine has gone.
    assert_eq!(holders(&state, &state.dir(), &words), "");
    drop(session);
    state.stop();
    assert_eq!(holders(&state, &state.dir(), &words), "");
    let log = std::fs::read_to_string(state.dir().join("engine.log")).unwrap();
    assert!(log.contains("TRACE"), "the log is at its most talkative");
    let key = std::fs::metadata(state.dir().join("key")).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::mode(&key) & 0o777, 0o600);
}
