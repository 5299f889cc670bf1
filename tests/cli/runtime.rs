//! Containers that an installed program makes, by the setting `runtime`.

use crate::terminal::chain;
use rustix::process::Signal;
use std::time::Duration;
use testkit::process::{named, wait_until};
use testkit::{Random, State, Terminal};

const CRUN: &str = "runtime = \"crun\"\n";

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
            assert!(process.wait_gone(Duration::from_secs(15)), "{}", process.arguments());
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
fn what_crun_cannot_do_is_one_clear_error() {
    let state = State::with_config(CRUN);
    let ended = Terminal::start(state.cli(chain(&["terminal"])), 100, 24).wait();
    assert!(ended.ends_with(1).contains("a terminal needs the engine's own runtime"));
    let words = ["with-exec", "--args=true", "--redirect-stdout=/out", "stdout"];
    let output = state.cli(chain(&words)).run();
    assert!(output.fails(1).contains("redirected streams need the engine's own runtime"));
}

#[test]
fn a_runtime_that_cannot_be_used_is_told_when_the_engine_starts() {
    for (setting, expected) in [
        ("runtime = \"no-such-runtime\"", "there is no program `no-such-runtime`"),
        ("runtime = \"/no/such/runtime\"", "there is no program `/no/such/runtime`"),
        ("runtime = \"runc\"", "takes control groups of its own"),
    ] {
        let state = State::with_config(setting);
        let output = state.cli(["core", "version"]).run();
        let text = output.fails(1);
        assert!(text.contains(expected), "{setting}: {text}");
        assert!(text.contains("hint: "), "{setting}: {text}");
    }
}
