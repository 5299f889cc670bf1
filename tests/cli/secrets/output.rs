//! What commands print: secrets are taken out of it, however it is cut.

use super::{kept, secret, shell, with_variable, words};
use serde_json::json;
use testkit::{Random, Session, State, busybox, rounds};

#[test]
fn both_streams_and_errors_lose_the_secret() {
    let state = State::new();
    let session = Session::start(&state);
    let secret = secret(&session, "hunter2");
    let script = "echo out $S; echo err $S >&2";
    let exec = format!(
        r#"withExec(args: ["sh", "-c", {}]) {{ stdout stderr combinedOutput }}"#,
        json!(script)
    );
    let data = session.query(&session.on_container(&with_variable(&secret, &exec)));
    let exec = &data["container"]["withRootfs"]["withSecretVariable"]["withExec"];
    assert_eq!((&exec["stdout"], &exec["stderr"]), (&json!("out ***\n"), &json!("err ***\n")));
    let combined = exec["combinedOutput"].as_str().unwrap();
    assert!(combined.contains("out ***\n") && combined.contains("err ***\n"), "{combined}");
    // In an error also what is made of it, and what the user typed.
    let script = "echo $S; printf %s $S | base64 >&2; exit 3 # hunter2";
    let exec = format!(r#"withExec(args: ["sh", "-c", {}]) {{ stdout }}"#, json!(script));
    let document = session.on_container(&with_variable(&secret, &exec));
    let error = session.exec_error(&document);
    assert_eq!((error.stdout.as_str(), error.stderr.as_str(), error.code), ("***", "***", 3));
    let whole = session.send(&document).json().to_string();
    assert!(!whole.contains("hunter2") && !whole.contains("aHVudGVyMg"), "{whole}");
}

#[test]
fn white_space_around_it_and_great_length_do_not_matter() {
    let state = State::new();
    let session = Session::start(&state);
    let padded = secret(&session, "  hunter2 \n");
    assert_eq!(shell(&session, &padded, "echo \"[$S]\"; echo [${S}]"), "[  *** \n]\n[ *** ]\n");
    let long: String = (0..100_000).map(|number| format!("{number:05}")).collect();
    let long = format!("{long}{}", "x".repeat(12_000));
    let long_secret = secret(&session, &long);
    let chain = format!(
        r#"withMountedSecret(path: "/s", source: {long_secret}) {{
            withExec(args: ["sh", "-c", "cat /s; echo; head -c 500000 /s; echo; cat /s /s"]) {{ stdout }} }}"#
    );
    let text = session.container(&chain);
    assert_eq!(text, format!("***\n{}\n******", &long[..500_000]));
    // What the kernel takes as a variable is less than a secret may have.
    let most = secret(&session, &"x".repeat(512_000));
    let said = session.error(
        &session.on_container(&with_variable(&most, r#"withExec(args: ["true"]) { stdout }"#)),
    );
    assert!(said.contains("is too long for a variable") && said.len() < 200, "{said}");
    let more = json!("x".repeat(512_001));
    let said =
        session.error(&format!(r#"{{ setSecret(name: "s", plaintext: {more}) {{ plaintext }} }}"#));
    assert!(said.contains("longer than 512000 bytes") && said.len() < 200, "{said}");
}

#[test]
fn a_secret_that_is_written_in_pieces_is_found() {
    let state = State::new();
    let session = Session::start(&state);
    let mut random = Random::new("pieces");
    for _ in 0..rounds() {
        let word = format!("{}{}", random.word(), random.word());
        let secret = secret(&session, &word);
        // Each write is its own piece, and some of them are short.
        let mut script = String::from("printf 'a ';");
        let mut rest = word.as_str();
        while !rest.is_empty() {
            let length = (1 + random.below(5) as usize).min(rest.len());
            script += &format!(" printf %s {}; ", &rest[..length]);
            rest = &rest[length..];
        }
        script += "printf ' b\\n'; echo >&2";
        assert_eq!(shell(&session, &secret, &script), "a *** b\n", "{word}");
    }
}

#[test]
fn files_of_streams_lose_it_and_other_files_do_not() {
    let state = State::new();
    let session = Session::start(&state);
    let secret = secret(&session, "hunter2");
    let exec = r#"withExec(args: ["sh", "-c", "echo $S; echo $S >&2; echo $S > /own"],
        redirectStdout: "/out", redirectStderr: "/err") {
        out: file(path: "/out") { contents } err: file(path: "/err") { contents }
        own: file(path: "/own") { contents } }"#;
    let data = session.query(&session.on_container(&with_variable(&secret, exec)));
    let exec = &data["container"]["withRootfs"]["withSecretVariable"]["withExec"];
    assert_eq!(exec["out"]["contents"], "***\n");
    assert_eq!(exec["err"]["contents"], "***\n");
    assert_eq!(exec["own"]["contents"], "hunter2\n");
}

#[test]
fn values_keep_what_is_made_of_a_secret_and_people_do_not_see_it() {
    let state = State::new();
    let word = "correct horse \"battery\"/staple";
    let script = "printf %s \"$T\" | base64; printf %s \"x$T\" | base64; printf %s \"$T\" | od -An -tx1 -v | tr -d ' \\n'; echo; printf %s \"$T\" | sed 's/\"/\\\\\"/g'; echo; printf 'a%sb\\n' \"$T\" | sed 's/ /%20/g; s/\"/%22/g; s,/,%2F,g'";
    let args = format!("sh,-c,\"{}\"", script.replace('"', "\"\""));
    let output = state.cli(words("--secret=env://TOKEN", &args)).env("TOKEN", word).run();
    let text = output.ok();
    let made = [
        "Y29ycmVjdCBob3JzZSAiYmF0dGVyeSIvc3RhcGxl",
        "636f727265637420686f727365",
        "correct%20horse",
        "correct horse \\\"battery\\\"",
    ];
    for form in made {
        assert!(text.contains(form), "{form} in the value: {text}");
        assert!(!output.stderr.contains(form), "{form} in what people see: {}", output.stderr);
    }
    assert!(output.stderr.contains("***"), "{}", output.stderr);
}

#[test]
fn short_secrets_are_told_of_and_not_hidden() {
    let state = State::new();
    let run = |value: &str| {
        let words = words("--secret=env://TOKEN", "sh,-c,echo [$T]");
        state.cli(words).env("TOKEN", value).run()
    };
    let output = run("abc");
    assert_eq!(output.ok(), "[abc]\n");
    let said = &output.stderr;
    assert!(said.contains("secret `env://TOKEN` is shorter than 4 bytes"), "{said}");
    let output = run("");
    assert_eq!(output.ok(), "[]\n");
    assert!(!output.stderr.contains("shorter"), "{}", output.stderr);
    assert_eq!(run("abcd").ok(), "[***]\n");
}

#[test]
fn lines_of_a_longer_secret_are_hidden_from_people() {
    let state = State::new();
    state.file("key", "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA\nshort\n-----END KEY-----\n");
    let rootfs = format!("--directory={}", busybox().display());
    let output = state
        .cli([
            "core",
            "container",
            "with-rootfs",
            &rootfs,
            "with-mounted-secret",
            "--path=/key",
            "--source=file://key",
            "with-exec",
            "--args=sh,-c,sed -n 2p /key; cat /key",
            "stdout",
        ])
        .run();
    assert_eq!(output.ok(), "MIIEpAIBAAKCAQEA\n***\n");
    assert!(!output.stderr.contains("MIIEpAIBAAKCAQEA"), "{}", output.stderr);
    let session = Session::start(&state);
    let secret = kept(&session, "file://key");
    let said = session.error(&session.on_container(&with_variable(
        &secret,
        r#"withExec(args: ["sh", "-c", "echo \"$S\" | sed -n 2p; exit 1"]) { stdout }"#,
    )));
    assert!(!said.contains("MIIEpAIBAAKCAQEA"), "{said}");
}
