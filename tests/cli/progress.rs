//! What is shown while work runs: on standard error, never in the result.

use testkit::registry::Registry;
use testkit::{State, busybox};

fn chain(rootfs: &str, script: &str) -> [String; 7] {
    let args = format!("--args=sh,-c,{script}");
    ["core", "container", "with-rootfs", rootfs, "with-exec", &args, "stdout"].map(str::to_owned)
}

#[test]
fn plain_progress_shows_steps_logs_and_verdicts() {
    let state = State::new();
    let rootfs = format!("--directory={}", busybox().display());
    let chain = chain(&rootfs, "echo to-out; echo to-err >&2");
    let first = state.cli(["--progress", "plain"]).args(&chain).run();
    assert_eq!(first.ok(), "to-out\n");
    for text in ["withExec", "DONE", "| to-out", "| to-err"] {
        assert!(first.stderr.contains(text), "no `{text}` in {}", first.stderr);
    }
    let second = state.cli(["--progress", "plain"]).args(&chain).run();
    assert_eq!(second.ok(), "to-out\n");
    assert!(second.stderr.contains("CACHED"), "{}", second.stderr);
}

#[test]
fn a_failed_step_is_shown_with_its_reason() {
    let state = State::new();
    let rootfs = format!("--directory={}", busybox().display());
    let output = state.cli(["--progress=plain"]).args(chain(&rootfs, "echo why; exit 5")).run();
    let said = output.fails(5);
    for text in ["ERROR", "exit code: 5", "why"] {
        assert!(said.contains(text), "no `{text}` in {said}");
    }
}

#[test]
fn without_a_terminal_auto_is_a_report_and_the_variables_choose() {
    let state = State::new();
    let rootfs = format!("--directory={}", busybox().display());
    let auto = |script: &str| state.cli(chain(&rootfs, script)).env("CITOOL_PROGRESS", "auto");
    let output = auto("echo one").run();
    assert_eq!(output.ok(), "one\n");
    assert!(output.stderr.contains("✔ container.withExec"), "{}", output.stderr);
    assert!(!output.stderr.contains("DONE"), "{}", output.stderr);
    let output = auto("echo why; exit 5").run();
    let said = output.fails(5);
    assert!(said.contains("exit code: 5") && said.contains("why"), "{said}");
    let output = auto("echo four").env("CITOOL_COMMAND_SET", "legacy").run();
    output.ok();
    assert!(output.stderr.contains("DONE"), "{}", output.stderr);
    let output = state.cli(chain(&rootfs, "echo two")).env("CITOOL_PROGRESS", "loud").run();
    assert!(output.fails(1).contains("loud"), "{output:#?}");
    let output = state.cli(["--progress=tty"]).args(chain(&rootfs, "echo three")).run();
    assert!(!output.fails(1).is_empty(), "there is no terminal: {output:#?}");
}

#[test]
fn colours_are_left_out_when_asked() {
    let state = State::new();
    let rootfs = format!("--directory={}", busybox().display());
    let output = state.cli(chain(&rootfs, "echo plain")).run();
    assert!(!output.stderr.contains('\u{1b}'), "{:?}", output.stderr);
}

#[test]
fn silence_shows_no_progress() {
    let state = State::new();
    let rootfs = format!("--directory={}", busybox().display());
    let output = state.cli(["-s"]).args(chain(&rootfs, "echo out; echo err >&2")).run();
    assert_eq!(output.ok(), "out\n");
    assert_eq!(output.stderr, "");
    let output = state.cli(chain(&rootfs, "echo out2")).env("CITOOL_SILENT", "true").run();
    assert_eq!((output.ok(), output.stderr.as_str()), ("out2\n", ""));
}

#[test]
fn every_format_leaves_the_result_alone_and_tells_a_failure_once() {
    let state = State::new();
    let rootfs = format!("--directory={}", busybox().display());
    for format in ["plain", "dots", "logs", "report"] {
        let flag = format!("--progress={format}");
        let good = state.cli([&flag]).args(chain(&rootfs, &format!("echo {format}"))).run();
        assert_eq!(good.ok(), format!("{format}\n"));
        let bad = state.cli([&flag]).args(chain(&rootfs, "echo said; exit 6")).run();
        let said = bad.fails(6);
        assert_eq!(said.matches("exit code: 6").count(), 1, "{format}: {said}");
    }
}

#[test]
fn a_report_gives_signs_of_life_as_often_as_asked() {
    let state = State::new();
    let rootfs = format!("--directory={}", busybox().display());
    let mut running = state
        .cli(["--progress=report"])
        .args(chain(&rootfs, "sleep 1000"))
        .env("CITOOL_REPORT_HEARTBEAT", "50ms")
        .spawn();
    running.wait_for("1 step running: container.withExec");
    running.signal_group(rustix::process::Signal::INT);
    running.wait().fails(2);
}

/// The line that tells the end of a step, which must have counted bytes.
#[track_caller]
fn moved(output: &testkit::Output, step: &str) {
    output.ok();
    let ended = |line: &&str| line.contains(step) && line.contains(" DONE [");
    let line = output.stderr.lines().find(ended);
    let line = line.unwrap_or_else(|| panic!("`{step}` did not end in {}", output.stderr));
    let (_, figures) = line.split_once("] ").unwrap_or_else(|| panic!("no figures in {line}"));
    assert!(figures.contains("B"), "{line}");
}

#[test]
fn what_is_pushed_pulled_and_exported_is_counted_in_bytes() {
    let state = State::new();
    let registry = Registry::start();
    let rootfs = format!("--directory={}", busybox().display());
    let address = format!("--address={}/progress:1", registry.address());
    let plain = |state: &State, words: &[&str]| state.cli(["--progress=plain"]).args(words).run();
    let pushed = plain(&state, &["core", "container", "with-rootfs", &rootfs, "publish", &address]);
    moved(&pushed, "push ");
    let other = state.another();
    let pulled = plain(&other, &["core", "container", "from", &address, "rootfs", "entries"]);
    moved(&pulled, "pull ");
    state.file("tree/large", vec![7; 3 << 20]);
    let exported =
        plain(&state, &["core", "host", "directory", "--path=tree", "export", "--path=copy"]);
    moved(&exported, "export ");
    assert_eq!(std::fs::metadata(state.workdir().join("copy/large")).unwrap().len(), 3 << 20);
}
