//! Too much of anything is a clear error, and the engine stays healthy.

use testkit::process::{tree, wait_until, with_argument};
use testkit::{Random, Session, State};

/// Memory of the engine and of everything it started.
fn memory(state: &State) -> u64 {
    tree(state.engine().pid).iter().map(|process| process.proportional_memory()).sum()
}

#[test]
fn one_gigabyte_of_output() {
    let state = State::new();
    let session = Session::start(&state);
    session.shell("true");
    let before = memory(&state);
    let exec = r#"withExec(args: ["sh", "-c", "dd if=/dev/zero bs=1M count=1000"])"#;
    assert_eq!(session.leaf(&session.on_container(&format!("{exec} {{ exitCode }}"))), 0);
    let said = session.error(&session.on_container(&format!("{exec} {{ stdout }}")));
    assert!(said.contains("redirectStdout"), "{said}");
    let file = r#"withExec(args: ["sh", "-c", "dd if=/dev/zero bs=1M count=1000"], redirectStdout: "/big") { file(path: "/big") { size } }"#;
    assert_eq!(session.leaf(&session.on_container(file)), 1000u64 << 20);
    let after = memory(&state);
    assert!(after < before + (64 << 20), "memory is flat: {before} before, {after} after");
    assert_eq!(session.shell("echo healthy"), "healthy\n");
}

#[test]
fn a_fork_bomb_under_the_limit() {
    let state = State::with_config("pids-limit = 64\ngrace = \"2s\"");
    let session = Session::start(&state);
    let number = 1_000_000 + Random::new("bomb").below(1 << 30);
    let many = format!("for i in $(seq 200); do sleep {number} & done; wait");
    let document =
        session.on_container(&format!(r#"withExec(args: ["sh", "-c", "{many}"]) {{ stdout }}"#));
    let error = session.exec_error(&document);
    assert!(error.stderr.contains("fork"), "{error:?}");
    let gone = || with_argument(&format!("sleep {number}")).is_empty();
    assert!(wait_until(state.remaining(), gone), "the whole tree ended with the command");

    let bomb = r#"withExec(args: ["sh", "-c", "b() { b | b & }; b; usleep 500000; exit 9"], expect: ANY) { exitCode }"#;
    let reply = session.send(&session.on_container(bomb));
    assert_eq!(reply.status, 200);
    assert_eq!(session.shell("echo healthy"), "healthy\n");
}

#[test]
fn memory_over_the_limit_is_reported_with_figures() {
    let state = State::with_config("memory-limit = \"64MiB\"");
    let session = Session::start(&state);
    let document = session.on_container(
        r#"withExec(args: ["awk", "BEGIN { s = \"x\"; while (1) s = s s }"]) { stdout }"#,
    );
    let error = session.exec_error(&document);
    assert_eq!(error.code, 137, "{error:?}");
    let text = format!("{} {}", error.message, error.stderr).to_lowercase();
    assert!(text.contains("memory"), "{error:?}");
    assert!(
        text.contains("64") || text.contains("67108864") || text.contains("67.1"),
        "the limit is named: {error:?}"
    );
    assert_eq!(session.shell("echo healthy"), "healthy\n");
    let small = session.on_container(r#"withExec(args: ["dd", "if=/dev/zero", "of=/dev/null", "bs=4M", "count=1"]) { exitCode }"#);
    assert_eq!(session.leaf(&small), 0, "what stays below is not touched");
}

#[test]
fn many_variables_and_long_arguments() {
    let state = State::new();
    let session = Session::start(&state);
    let long = "a".repeat(100_000);
    let text = session.container(&format!(r#"withExec(args: ["echo", "{long}"]) {{ stdout }}"#));
    assert_eq!(text.len(), 100_001);
    let too_long = "a".repeat(200_000);
    let document =
        session.on_container(&format!(r#"withExec(args: ["echo", "{too_long}"]) {{ stdout }}"#));
    let reply = session.send(&document).json();
    let message = reply["errors"][0]["message"].as_str().unwrap_or_default().to_lowercase();
    assert!(
        message.contains("argument list")
            || message.contains("too long")
            || message.contains("exit code: 126"),
        "{reply}"
    );
    assert_eq!(session.shell("echo healthy"), "healthy\n");
}

#[test]
fn many_files_and_deep_folders() {
    let state = State::new();
    let session = Session::start(&state);
    let made = session.container(
        r#"withExec(args: ["sh", "-c", "mkdir /m; cd /m; for i in $(seq 5000); do : > $i; done; d=/d; for i in $(seq 400); do d=$d/d; done; mkdir -p $d; echo $d > /deep"]) {
            withExec(args: ["sh", "-c", "ls /m | wc -l; ls -d $(cat /deep) | wc -l"]) { stdout } }"#,
    );
    assert_eq!(made, "5000\n1\n");
    let entries = session.leaf(&session.on_container(
        r#"withExec(args: ["sh", "-c", "mkdir /m; cd /m; for i in $(seq 5000); do : > $i; done"]) { directory(path: "/m") { entries } }"#,
    ));
    assert_eq!(entries.as_array().unwrap().len(), 5000);
}

#[test]
fn a_command_that_closes_its_output_and_goes_on_is_waited_for() {
    let state = State::new();
    let session = Session::start(&state);
    let text = session.container(
        r#"withExec(args: ["sh", "-c", "exec >&- 2>&-; usleep 300000; : > /late"]) {
            withExec(args: ["ls", "/late"]) { stdout } }"#,
    );
    assert_eq!(text, "/late\n");
}
