//! What a shell on a terminal can do.

use super::{chain, shell, shell_by, types};
use std::time::{Duration, Instant};
use testkit::process::{Process, named, wait_until};
use testkit::{Random, State, Terminal};

/// After how long a key that had no effect is pressed again.
const AGAIN: Duration = Duration::from_secs(2);

#[test]
fn a_shell_has_a_prompt_and_an_echo_and_a_size_that_follows() {
    let state = State::new();
    let mut terminal = shell(&state);
    assert!(terminal.is_raw(), "keys go to the container one by one");
    terminal.send("echo half-");
    terminal.wait_for("/ # echo half-");
    types(&mut terminal, "whole", "\nhalf-whole");
    types(&mut terminal, "stty size; tty; echo $TERM", "24 80\n/dev/pts/0\nxterm-256color");
    terminal.resize(101, 31);
    // The size is on its way while the next line is typed, so it is asked for until it is there.
    types(&mut terminal, "until stty size | grep 101; do sleep 0.1; done", "\n31 101");
    types(&mut terminal, "test -t 0 && test -t 1 && test -t 2 && echo is-a-$((1+1))", "is-a-2");
    terminal.send("exit\r");
    let ended = terminal.wait();
    let text = ended.ok();
    assert!(text.contains("✔ container.terminal"), "the display is back: {text}");
    assert!(text.lines().last().unwrap().starts_with("Container@"), "{text}");
}

#[test]
fn ctrl_c_ends_the_program_and_not_the_shell() {
    let state = State::new();
    let mut terminal = shell(&state);
    let number = 1_000_000 + Random::new("terminal").below(1 << 30);
    terminal.send(&format!("sleep {number}\r"));
    assert!(wait_until(state.remaining(), || !named(&format!("sleep {number}")).is_empty()));
    terminal.send("\x03");
    types(&mut terminal, "echo code-$?", "code-130");
    assert!(named(&format!("sleep {number}")).is_empty());
    // At the prompt it gives a new line, and Ctrl-D leaves.
    terminal.send("half a line\x03");
    types(&mut terminal, "echo still-$((1+1))", "still-2");
    terminal.send("\x04");
    terminal.wait().ok();
}

#[test]
fn jobs_are_stopped_and_continued() {
    let state = State::new();
    let mut terminal = shell(&state);
    let number = 1_000_000 + Random::new("jobs").below(1 << 30);
    let name = format!("sleep {number}");
    types(&mut terminal, &format!("{name} & jobs"), "Running");
    assert!(wait_until(state.remaining(), || named(&name).len() == 1), "{}", terminal.screen());
    let job = named(&name)[0];
    terminal.send("clear; fg\r");
    press_until(&state, &terminal, "\x1a", &job, || job.is_stopped());
    types(&mut terminal, "clear; jobs", "Stopped");
    types(&mut terminal, "clear; bg; jobs | grep -c Running", "\n1");
    terminal.send("clear; fg\r");
    press_until(&state, &terminal, "\x03", &job, || !job.is_alive());
    types(&mut terminal, "echo left-$(jobs | wc -l)-jobs", "left-0-jobs");
    terminal.send("exit\r");
    terminal.wait().ok();
}

/// Presses a key once a job has the terminal, until that had its effect. Keys that reach the shell instead
/// would take with them what was typed and shown before. The shell hands the terminal over before it lets the
/// job go on, which undoes a stop: so it is pressed again where nothing came of it for long.
#[track_caller]
fn press_until(
    state: &State,
    terminal: &Terminal,
    key: &str,
    job: &Process,
    done: impl Fn() -> bool,
) {
    let mut pressed: Option<Instant> = None;
    let had_effect = wait_until(state.remaining(), || {
        if job.is_in_front() && pressed.is_none_or(|at| at.elapsed() > AGAIN) {
            terminal.send(key);
            pressed = Some(Instant::now());
        }
        done()
    });
    assert!(had_effect, "{}", terminal.screen());
}

#[test]
fn the_code_of_a_shell_fails_nothing() {
    let state = State::new();
    let words = ["terminal", "with-exec", "--args=echo,went-on", "stdout"];
    let terminal = shell_by(state.cli(chain(&words)));
    terminal.send("exit 7\r");
    let ended = terminal.wait();
    assert_eq!(ended.ok().lines().last(), Some("went-on"));
}

#[test]
fn what_is_done_on_a_terminal_is_not_kept() {
    let state = State::new();
    let words = ["terminal", "with-exec", "--args=sh,-c,ls /tmp | wc -l", "stdout"];
    let mut terminal = shell_by(state.cli(chain(&words)));
    types(&mut terminal, "mkdir -p /tmp; touch /tmp/x; ls /tmp", "\nx");
    terminal.send("exit\r");
    let ended = terminal.wait();
    assert_eq!(ended.ok().lines().last(), Some("0"));
}

#[test]
fn a_terminal_runs_what_it_is_told_to_as_who_it_is_told_to() {
    let state = State::new();
    let words = [
        "with-user",
        "--name=1000:1000",
        "with-workdir",
        "--path=/tmp",
        "with-env-variable",
        "--name=TERM",
        "--value=dumb",
        "with-default-terminal-cmd",
        "--args=sh,-c,id -u; pwd; echo $TERM; echo > /dev/tty; exec sh",
        "terminal",
    ];
    let mut terminal = Terminal::start(state.cli(chain(&words)), 80, 24);
    terminal.wait_for("1000\n/tmp\ndumb");
    terminal.send("exit\r");
    terminal.wait().ok();
    let words = ["terminal", "--cmd=cat,-,/dev/null"];
    let mut terminal = Terminal::start(state.cli(chain(&words)), 80, 24);
    // Keys that come before it has the terminal are for the display.
    assert!(wait_until(state.remaining(), || !named("cat - /dev/null").is_empty()));
    terminal.send("twice\r");
    terminal.wait_for("twice\ntwice");
    terminal.send("\x04");
    terminal.wait().ok();
}

#[test]
fn much_output_comes_whole_and_can_be_stopped() {
    let state = State::new();
    let mut terminal = shell(&state);
    types(&mut terminal, "seq 1 60000 | tail -n 50000; echo all-$((1+1))", "all-2");
    let bytes = String::from_utf8(terminal.bytes()).unwrap();
    let numbers = bytes.lines().filter_map(|line| line.trim().parse::<u32>().ok());
    assert!(numbers.filter(|number| *number > 10_000).eq(10_001..=60_000), "all, in order");
    terminal.send("yes\r");
    terminal.wait_until("a screen full of y", |screen| {
        screen.text().lines().filter(|line| *line == "y").count() > 20
    });
    terminal.send("\x03");
    types(&mut terminal, "echo again-$((1+1))", "again-2");
    terminal.send("exit\r");
    terminal.wait().ok();
}

#[test]
fn a_directory_has_a_terminal_beside_it() {
    let state = State::debian();
    state.file("things/one", "1");
    let words = ["core", "host", "directory", "--path=things", "terminal"];
    let mut terminal = Terminal::start(state.cli(words), 80, 24);
    terminal.wait_for("#");
    types(&mut terminal, "pwd; cat one; touch two; ls | wc -l", "/src\n12");
    terminal.send("exit\r");
    let ended = terminal.wait();
    assert!(ended.ok().lines().last().unwrap().starts_with("Directory@"), "{ended:#?}");
}
