//! Containers that an installed program makes, by the setting `runtime`.

use crate::nested;
use crate::terminal::{self, chain, types};
use rustix::process::Signal;
use testkit::process::{named, wait_until};
use testkit::{Random, Session, State};

const CRUN: &str = "runtime = \"crun\"\n";
/// All that can be named there.
const PROGRAMS: [&str; 2] = ["crun", "runc"];

fn shell(state: &State, words: &[&str], script: &str) -> testkit::Output {
    let exec = format!("--args=sh,-c,{script}");
    state.cli(["-s"]).args(chain(words)).args(["with-exec", &exec, "stdout"]).run()
}

#[test]
fn commands_run_through_crun_as_through_us() {
    let state = State::with_config(CRUN);
    assert_eq!(shell(&state, &[], "echo hello > /file; cat /file").ok(), "hello\n");
    assert!(shell(&state, &[], "echo said >&2; exit 3").fails(3).contains("said"));
    assert!(shell(&state, &[], "nothing-like-it").fails(127).contains("not found"));
    let missing = state.cli(chain(&["with-exec", "--args=no-such-program", "stdout"])).run();
    assert!(missing.fails(127).contains("cannot run `no-such-program`"), "{missing:#?}");
    let words = [
        "with-exec",
        "--args=sh,-c,echo kept > /kept",
        "with-user",
        "--name=1000",
        "with-mounted-temp",
        "--path=/t",
        "with-mounted-cache",
        "--path=/cache",
        "--cache=runtime",
        "with-env-variable",
        "--name=A",
        "--value=b c",
    ];
    let seen =
        shell(&state, &words, "cat /kept; id -u; echo $A; touch /t/x && ls /t; ls -d /cache");
    assert_eq!(seen.ok(), "kept\n1000\nb c\nx\n/cache\n");
    // Another engine on the same folder takes what was made this way.
    state.stop();
    state.configure("");
    let again = state.cli(chain(&["with-exec", "--args=sh,-c,echo hello > /file; cat /file"]));
    let again = again.args(["stdout", "--progress=plain"]).run();
    assert_eq!(again.ok(), "hello\n");
    assert!(again.stderr.contains("CACHED"), "{again:#?}");
}

#[test]
fn the_network_and_secrets_are_the_same() {
    let state = State::with_config(CRUN);
    let names =
        shell(&state, &[], "ls /sys/class/net | tr '\\n' ' '; grep -c nameserver /etc/resolv.conf");
    assert_eq!(names.ok(), "eth0 lo 1\n");
    let secret = ["with-secret-variable", "--name=TOKEN", "--secret=env://TOKEN"];
    let cli = state.cli(["-s"]).env("TOKEN", "hunter2-and-more").args(chain(&secret));
    let output =
        cli.args(["with-exec", "--args=sh,-c,echo $TOKEN; echo ${#TOKEN}", "stdout"]).run();
    assert_eq!(output.ok(), "***\n16\n");
    state.stop();
    state.configure(&format!("{CRUN}network = \"none\""));
    assert_eq!(shell(&state, &[], "ls /sys/class/net").ok(), "lo\n");
}

#[test]
fn what_crun_runs_is_cancelled_and_leaves_nothing() {
    let state = State::with_config(&format!("{CRUN}grace = \"1s\""));
    for killed in [false, true] {
        let number = 1_000_000 + Random::new("crun").below(1 << 30);
        let script = format!("--args=sh,-c,sleep {number}");
        let running = state.cli(chain(&["with-exec", &script, "stdout"])).spawn();
        let name = format!("sleep {number}");
        assert!(wait_until(state.remaining(), || !named(&name).is_empty()), "{}", state.log());
        let processes = named(&name);
        match killed {
            true => drop(state.kill_engine()),
            false => running.signal(Signal::INT),
        }
        assert!(!running.wait().status.success());
        for process in processes {
            assert!(process.wait_gone(), "{}", process.arguments());
        }
    }
}

#[test]
fn limits_hold_through_crun() {
    let state = State::with_config(&format!("{CRUN}memory-limit = \"64MiB\""));
    let eaten = shell(&state, &[], "x=$(head -c 200000000 /dev/zero | tr '\\0' x); exit 9");
    assert!(eaten.stderr.contains("out of memory"), "{eaten:#?}");
    assert_eq!(shell(&state, &[], "echo fine").ok(), "fine\n");
}

#[test]
fn terminals_are_real_ones() {
    for program in PROGRAMS {
        let state = State::with_config(&format!("runtime = \"{program}\""));
        let mut terminal = terminal::shell(&state);
        types(&mut terminal, "tty; stty size", "/dev/pts/0");
        terminal.wait_for("24 80");
        types(&mut terminal, "echo u''p; sleep 1000", "up");
        terminal.send("\x03");
        types(&mut terminal, "echo code $?", "code 130");
        terminal.send("exit\r");
        terminal.wait().ends_with(0);
    }
}

#[test]
fn streams_are_redirected() {
    for program in PROGRAMS {
        let state = State::with_config(&format!("runtime = \"{program}\""));
        let words = [
            "with-new-file",
            "--path=/in",
            "--contents=from a file",
            "with-exec",
            "--args=sh,-c,cat; echo wrong >&2",
            "--redirect-stdin=/in",
            "--redirect-stdout=/out",
            "--redirect-stderr=/err",
        ];
        let cat = ["with-exec", "--args=cat,/out,/err", "stdout"];
        let output = state.cli(["-s"]).args(chain(&words)).args(cat).run();
        assert_eq!(output.ok(), "from a filewrong\n", "{program}");
        let words = ["with-exec", "--args=true", "--redirect-stdout=/no/such/place", "stdout"];
        let output = state.cli(chain(&words)).run();
        assert!(output.fails(1).contains("/no/such/place"), "{output:#?}");
    }
}

#[test]
fn sessions_inside_and_health_checks_work() {
    for program in PROGRAMS {
        let state = State::with_config(&format!("runtime = \"{program}\""));
        let session = Session::start(&state);
        let version = nested::answer(&session, "{ version }");
        assert!(version["data"]["version"].is_string(), "{program}: {version}");
        let files = r#"{ host { directory(path: "/etc") { entries } } }"#;
        let seen = nested::answer(&session, files).to_string();
        assert!(seen.contains("hosts"), "{program}: {seen}");
        let service = |check: &str, line: &str, retries: u32| {
            session.on_container(&format!(
                r#"withDockerHealthcheck(args: ["{check}"], shell: true, interval: "100ms", retries: {retries}, timeout: "60s") {{
                    asService(args: ["sh", "-c", "{line}; exec sleep 1000"]) {{ start }} }}"#
            ))
        };
        session.query(&service("test -e /ready", "touch /ready", 1000));
        let said = session.error(&service("echo not yet; exit 7", "true", 5));
        assert!(said.contains("health check errored: exit code: 7: not yet"), "{program}: {said}");
    }
}

#[test]
fn a_runtime_that_cannot_be_used_is_told_when_the_engine_starts() {
    for (setting, expected) in [
        ("runtime = \"no-such-runtime\"", "there is no program `no-such-runtime`"),
        ("runtime = \"/no/such/runtime\"", "there is no program `/no/such/runtime`"),
    ] {
        let state = State::with_config(setting);
        let output = state.cli(["core", "version"]).run();
        let text = output.fails(1);
        assert!(text.contains(expected), "{setting}: {text}");
        assert!(text.contains("hint: "), "{setting}: {text}");
    }
}
