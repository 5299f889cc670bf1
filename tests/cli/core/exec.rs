//! `withExec` and what can be asked of a command that ran.

use serde_json::json;
use testkit::{Session, State};

#[test]
fn streams_and_exit_code_of_the_last_command() {
    let state = State::new();
    let session = Session::start(&state);
    let document = session.on_container(
        r#"withExec(args: ["sh", "-c", "echo out; echo err >&2; exit 4"], expect: ANY) { stdout stderr exitCode combinedOutput }"#,
    );
    let data = session.query(&document);
    let exec = &data["container"]["withRootfs"]["withExec"];
    assert_eq!((&exec["stdout"], &exec["stderr"]), (&json!("out\n"), &json!("err\n")));
    assert_eq!(exec["exitCode"], 4);
    let combined = exec["combinedOutput"].as_str().unwrap();
    assert!(combined.contains("out\n") && combined.contains("err\n"), "{combined}");
    for field in ["stdout", "stderr", "exitCode", "combinedOutput"] {
        let said = session.error(&format!("{{ container {{ {field} }} }}"));
        assert!(said.contains("no command has been set"), "{field}: {said}");
    }
}

#[test]
fn expected_codes() {
    let state = State::new();
    let session = Session::start(&state);
    let run = |code: u32, expect: &str| {
        session.on_container(&format!(
            r#"withExec(args: ["sh", "-c", "exit {code}"], expect: {expect}) {{ exitCode }}"#
        ))
    };
    for (code, expect) in [
        (0, "SUCCESS"),
        (1, "FAILURE"),
        (127, "FAILURE"),
        (254, "FAILURE"),
        (0, "ANY"),
        (200, "ANY"),
    ] {
        assert_eq!(session.leaf(&run(code, expect)), code, "{expect}");
    }
    for (code, expect) in [(1, "SUCCESS"), (0, "FAILURE"), (130, "ANY"), (150, "FAILURE")] {
        let error = session.exec_error(&run(code, expect));
        assert_eq!(error.code, i64::from(code));
        assert!(error.message.contains(&format!("exit code: {code}")), "{}", error.message);
    }
    let document = session.on_container(r#"withExec(args: ["sh", "-c", "kill -9 $$"]) { sync }"#);
    assert_eq!(session.exec_error(&document).code, 137);
}

#[test]
fn changes_are_kept_along_the_chain_and_branches_do_not_meet() {
    let state = State::new();
    let session = Session::start(&state);
    let document = session.on_container(
        r#"withExec(args: ["sh", "-c", "echo base > /f"]) {
            one: withExec(args: ["sh", "-c", "echo one >> /f"]) { file(path: "/f") { contents } }
            two: withExec(args: ["sh", "-c", "rm /f; ls / | wc -l"]) { stdout }
            file(path: "/f") { contents } }"#,
    );
    let data = session.query(&document);
    let base = &data["container"]["withRootfs"]["withExec"];
    assert_eq!(base["one"]["file"]["contents"], "base\none\n");
    assert_eq!(base["file"]["contents"], "base\n");
}

#[test]
fn input_and_redirection() {
    let state = State::new();
    let session = Session::start(&state);
    assert_eq!(session.container(r#"withExec(args: ["cat"], stdin: "given") { stdout }"#), "given");
    assert_eq!(session.container(r#"withExec(args: ["cat"]) { stdout }"#), "", "input is empty");
    let chain = r#"withNewFile(path: "/in", contents: "from a file") {
        withExec(args: ["cat"], redirectStdin: "/in", redirectStdout: "/o", redirectStderr: "/e") {"#;
    assert_eq!(session.container(&format!("{chain} stdout }} }}")), "from a file");
    assert_eq!(
        session.container(&format!("{chain} file(path: \"/o\") {{ contents }} }} }}")),
        "from a file"
    );
    assert_eq!(session.container(&format!("{chain} file(path: \"/e\") {{ contents }} }} }}")), "");
    let relative = r#"withWorkdir(path: "/tmp") { withExec(args: ["echo", "x"], redirectStdout: "o") {
        file(path: "/tmp/o") { contents } } }"#;
    assert_eq!(session.container(relative), "x\n");
}

#[test]
fn the_command_is_a_child_of_an_init_unless_told() {
    let state = State::new();
    let session = Session::start(&state);
    let script = "tr '\\\\0' ' ' < /proc/1/cmdline; echo; echo $$";
    let run = |options: &str| {
        session.container(&format!(
            r#"withExec(args: ["sh", "-c", "{script}"]{options}) {{ stdout }}"#
        ))
    };
    let with = run("");
    let first = with.lines().next().unwrap();
    assert!(first.contains(".init"), "{with}");
    let without = run(", noInit: true");
    assert!(without.lines().last() == Some("1"), "{without}");
}

#[test]
fn orphans_are_collected_and_ended_with_the_command() {
    let state = State::new();
    let session = Session::start(&state);
    let number = 1_000_000 + testkit::Random::new("orphans").below(1 << 30);
    let script = format!("(setsid sleep {number} >/dev/null 2>&1 &) ; echo done");
    assert_eq!(session.shell(&script), "done\n");
    let gone = || testkit::process::with_argument(&format!("sleep {number}")).is_empty();
    assert!(testkit::process::wait_until(state.remaining(), gone));
}

#[test]
fn capabilities_are_the_default_set_or_all() {
    let state = State::new();
    let session = Session::start(&state);
    let bits = |options: &str| {
        let text = session.container(&format!(
            r#"withExec(args: ["grep", "-E", "Cap(Eff|Bnd|Inh|Amb)", "/proc/self/status"]{options}) {{ stdout }}"#
        ));
        text.lines().map(|line| line.rsplit('\t').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let default = u64::from_str_radix(&bits("")[2 - 1], 16).unwrap();
    for (number, name) in [
        (12, "net_admin"),
        (16, "sys_module"),
        (17, "sys_rawio"),
        (19, "sys_ptrace"),
        (21, "sys_admin"),
        (22, "sys_boot"),
        (24, "sys_resource"),
    ] {
        assert_eq!(default & (1 << number), 0, "{name} is not for everybody");
    }
    assert_ne!(default & 1, 0, "chown is");
    let all = bits(", insecureRootCapabilities: true");
    assert!(
        all.iter().all(|set| u64::from_str_radix(set, 16).unwrap() & (1 << 21) != 0),
        "{all:?}"
    );
}

#[test]
fn a_command_that_changes_nothing_leaves_the_tree_as_it_was() {
    let state = State::new();
    let session = Session::start(&state);
    let before = session.leaf(&session.on_container("rootfs { entries }"));
    let exec = r#"withExec(args: ["true"])"#;
    let after = session.leaf(&session.on_container(&format!("{exec} {{ rootfs {{ entries }} }}")));
    assert_eq!(before, after, "no mount point, no resolver file, nothing of ours");
    let chain = format!(r#"{exec} {{ directory(path: "/etc") {{ entries }} }}"#);
    assert_eq!(session.leaf(&session.on_container(&chain)), json!(["group", "passwd"]));
}

#[test]
fn equal_work_is_done_once() {
    let state = State::new();
    let script = "cat /proc/sys/kernel/random/uuid";
    let first = Session::start(&state).shell(script);
    let second = Session::start(&state).shell(script);
    assert_eq!(first, second, "the second session found it done");
    state.stop();
    assert_eq!(Session::start(&state).shell(script), first, "and so does the next engine");
}

#[test]
fn a_failure_is_not_remembered() {
    let state = State::new();
    let session = Session::start(&state);
    let cache = session.leaf(r#"{ cacheVolume(key: "attempts") { id } }"#);
    let document = session.on_container(&format!(
        r#"withMountedCache(path: "/c", cache: {cache}) {{
            withExec(args: ["sh", "-c", "echo x >> /c/n; test $(wc -l < /c/n) -ge 2"]) {{ exitCode }} }}"#
    ));
    assert_eq!(session.exec_error(&document).code, 1);
    let other = Session::start(&state);
    let document = document.replace(&session.busybox(), &other.busybox());
    assert_eq!(other.leaf(&document), 0, "it ran again");
}

#[test]
fn equal_calls_in_flight_share_one_run() {
    let state = State::new();
    let session = Session::start(&state);
    let document = session.on_container(
        r#"withExec(args: ["sh", "-c", "usleep 200000; cat /proc/sys/kernel/random/uuid"]) { stdout }"#,
    );
    let answers: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| session.leaf(&document))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{answers:?}");
}

#[test]
fn variables_are_expanded_when_asked() {
    let state = State::new();
    let session = Session::start(&state);
    let run = |expand: &str| {
        session.container(&format!(
            r#"withEnvVariable(name: "WHO", value: "you") {{ withExec(args: ["echo", "hi $WHO ${{WHO}}"]{expand}) {{ stdout }} }}"#
        ))
    };
    assert_eq!(run(""), "hi $WHO ${WHO}\n");
    assert_eq!(run(", expand: true"), "hi you you\n");
}

#[test]
fn default_arguments_and_entrypoint() {
    let state = State::new();
    let session = Session::start(&state);
    let start = r#"withEntrypoint(args: ["echo", "entry"]) { withDefaultArgs(args: ["default"]) {"#;
    assert_eq!(
        session.container(&format!(
            "{start} withExec(args: [], useEntrypoint: true) {{ stdout }} }} }}"
        )),
        "entry default\n"
    );
    assert_eq!(
        session.container(&format!(
            "{start} withExec(args: [\"x\"], useEntrypoint: true) {{ stdout }} }} }}"
        )),
        "entry x\n"
    );
    let args = r#"withDefaultArgs(args: ["echo", "default"]) { withExec(args: []) { stdout } }"#;
    assert_eq!(session.container(args), "default\n");
    let said = session.error(&session.on_container("withExec(args: []) { stdout }"));
    assert!(said.contains("no command has been set"), "{said}");
}

#[test]
fn a_long_stream_is_an_error_that_names_the_way_out_and_not_a_failure() {
    let state = State::new();
    let session = Session::start(&state);
    let exec = r#"withExec(args: ["sh", "-c", "yes | head -c 140000000"])"#;
    assert_eq!(session.leaf(&session.on_container(&format!("{exec} {{ exitCode }}"))), 0);
    let said = session.error(&session.on_container(&format!("{exec} {{ stdout }}")));
    assert!(said.contains("redirectStdout"), "{said}");
    let just = r#"withExec(args: ["sh", "-c", "yes | head -c 1000000"]) { stdout }"#;
    assert_eq!(session.container(just).len(), 1_000_000);
}
