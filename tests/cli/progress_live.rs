//! The live display, seen by a user: on a real terminal, with real keys.

use rustix::process::Signal;
use std::fs::File;
use testkit::process::{Process, named, signal, wait_until};
use testkit::{Random, State, Terminal, busybox, rounds};

/// The chain of a command in a container, as words.
fn chain(script: &str) -> [String; 7] {
    let rootfs = format!("--directory={}", busybox().display());
    let args = format!("--args=sh,-c,{script}");
    ["core", "container", "with-rootfs", &rootfs, "with-exec", &args, "stdout"].map(str::to_owned)
}

fn start(state: &State, words: &[&str]) -> Terminal {
    Terminal::start(state.cli(words), 80, 24)
}

/// A command on a terminal that prints and then sleeps, once that is seen, and who sleeps.
fn sleeper(state: &State, flags: &[&str], script: &str) -> (Terminal, Vec<Process>) {
    let number = 1_000_000 + Random::new("live").below(1 << 30);
    let script = script.replace("NUMBER", &number.to_string());
    let chain = chain(&format!("echo it-began; {script}"));
    let mut terminal = Terminal::start(state.cli(flags).args(&chain), 80, 24);
    terminal.wait_for("┃ it-began");
    let name = format!("sleep {number}");
    assert!(wait_until(state.remaining(), || !named(&name).is_empty()), "{}", state.log());
    (terminal, named(&name))
}

fn are_gone(processes: Vec<Process>) {
    for process in processes {
        assert!(process.wait_gone(), "{}", process.arguments());
    }
}

#[test]
fn progress_comes_first_and_the_result_last() {
    let state = State::new();
    let chain = chain("echo on-a-terminal");
    let words: Vec<&str> = chain.iter().map(String::as_str).collect();
    let ended = start(&state, &words).wait();
    let text = ended.ok();
    assert_eq!(text.lines().last(), Some("on-a-terminal"), "{text}");
    assert!(text.contains("✔ container.withExec"), "{text}");
    let again = start(&state, &words).wait();
    let text = again.ok();
    assert!(text.contains("$ container.withExec") && text.contains("CACHED"), "{text}");
    let quiet = start(&state, &[&["-q"], &words[..]].concat()).wait();
    assert!(!quiet.ok().contains("container.withExec"), "cleaned up at the end: {quiet:#?}");
}

#[test]
fn what_runs_is_shown_with_its_output_and_ctrl_c_ends_it() {
    let state = State::new();
    let (mut terminal, processes) = sleeper(&state, &[], "printf 50%%; sleep NUMBER");
    terminal.wait_for("◐ container.withExec");
    terminal.wait_for("┃ 50%");
    terminal.wait_for("1 running");
    assert!(terminal.is_raw());
    terminal.send("\x03");
    let ended = terminal.wait();
    let text = ended.ends_with(2);
    assert_eq!(text.matches("Interrupted: ").count(), 1, "{text}");
    assert!(!text.contains("running"), "nothing of the display stays: {text}");
    are_gone(processes);
}

#[test]
fn ctrl_c_while_the_engine_starts_is_one_line() {
    let state = State::new();
    // Somebody else is about to start the engine, and takes his time.
    let lock = File::create(state.dir().join("start.lock")).unwrap();
    lock.lock().unwrap();
    let terminal = start(&state, &["core", "version"]);
    let pid = terminal.pid();
    assert!(wait_until(state.remaining(), || catches_interrupts(pid)), "{}", terminal.screen());
    terminal.send("\x03");
    let ended = terminal.wait();
    let text = ended.ends_with(2);
    assert_eq!(text.matches("Interrupted: ").count(), 1, "{text}");
    drop(lock);
    state.cli(["core", "version"]).run().ok();
}

#[test]
fn ctrl_c_at_any_moment_is_one_line() {
    let state = State::new();
    let mut random = Random::new("moment");
    for round in 0..rounds() {
        let chain = chain(&format!("echo {round}; while :; do echo more; usleep 20000; done"));
        let terminal = Terminal::start(state.cli(&chain), 80, 24);
        let pid = terminal.pid();
        // As far as a random amount of what it draws; the first of it comes late.
        let moment = random.below(1_200) as usize;
        let come = || catches_interrupts(pid) && terminal.bytes().len() >= moment;
        assert!(wait_until(state.remaining(), come), "{}", terminal.screen());
        terminal.send("\x03");
        let ended = terminal.wait();
        let text = ended.ends_with(2);
        assert_eq!(text.matches("Interrupted: ").count(), 1, "round {round}, {moment}: {text}");
    }
}

/// Whether a process has said that it takes SIGINT itself.
fn catches_interrupts(pid: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_some_and(|mask| mask & (1 << (Signal::INT.as_raw() - 1)) != 0)
}

#[test]
fn a_second_ctrl_c_ends_at_once() {
    let state = State::with_config("grace = \"50s\"");
    let (mut terminal, processes) =
        sleeper(&state, &[], "trap '' TERM INT; while :; do sleep NUMBER; done");
    terminal.send("\x03");
    terminal.wait_for("Interrupted: ");
    terminal.send("\x03");
    let ended = terminal.wait();
    ended.ends_with(2);
    // Nobody waited for the command, which has its whole grace.
    assert!(processes.iter().all(Process::is_alive), "{}", ended.everything);
    state.stop();
    are_gone(processes);
}

#[test]
fn an_error_is_shown_once_with_its_output() {
    let state = State::new();
    for flags in [&["--progress=tty"][..], &["--progress=tty", "-q"], &["--progress=plain"]] {
        let chain = chain("echo what-it-said; exit 5");
        let ended = Terminal::start(state.cli(flags).args(&chain), 160, 24).wait();
        let text = ended.ends_with(5);
        assert_eq!(text.matches("exit code: 5").count(), 1, "{flags:?}: {text}");
        assert_eq!(text.matches("what-it-said").count(), 3, "name, reason, output: {text}");
    }
}

#[test]
fn keys_go_through_the_steps() {
    let state = State::new();
    let (mut terminal, processes) = sleeper(&state, &[], "sleep NUMBER");
    terminal.send("\x1b[A");
    terminal.wait_for("▸ ◐ container.withExec");
    terminal.send("\x1b[H");
    terminal.wait_for("▸ ✔ host");
    terminal.send("/withexec\r");
    terminal.wait_for("▸ ◐ container.withExec");
    terminal.send("o");
    terminal.wait_for("1-1 of 1");
    terminal.send("\x1b");
    terminal.wait_for("▸ ◐ container.withExec");
    terminal.send("\r");
    terminal.wait_until("only the step", |screen| !screen.text().contains("host"));
    terminal.send("\x1b");
    terminal.wait_for("✔ host");
    terminal.send("?");
    terminal.wait_for("next failure");
    terminal.send("q\x03");
    terminal.wait().ends_with(2);
    are_gone(processes);
}

#[test]
fn a_display_stays_until_the_user_leaves_it() {
    let state = State::new();
    let mut terminal = Terminal::start(state.cli(["-E"]).args(chain("echo result")), 80, 24);
    terminal.wait_for("q leave");
    assert!(terminal.is_raw());
    terminal.send("q");
    let ended = terminal.wait();
    assert_eq!(ended.ok().lines().last(), Some("result"));
    let mut terminal = Terminal::start(state.cli(["-E"]).args(chain("exit 7")), 80, 24);
    terminal.wait_for("q leave");
    terminal.send("\x03");
    let ended = terminal.wait();
    assert!(ended.ends_with(7).contains("exit code: 7"), "{}", ended.everything);
}

#[test]
fn the_display_follows_the_size_of_the_terminal() {
    let state = State::new();
    let (mut terminal, processes) = sleeper(&state, &[], "sleep NUMBER");
    for (columns, rows) in [(30, 10), (100, 30), (12, 5)] {
        terminal.resize(columns, rows);
        terminal.wait_until("one frame", |screen| {
            let text = screen.text();
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            widest < usize::from(columns) && text.matches("◐ con").count() == 1
        });
    }
    terminal.send("\x03");
    terminal.wait().ends_with(2);
    are_gone(processes);
}

#[test]
fn ctrl_z_gives_the_terminal_back_until_the_program_goes_on() {
    let state = State::new();
    let (mut terminal, processes) = sleeper(&state, &[], "sleep NUMBER");
    let pid = terminal.pid();
    let is_stopped = || Process::of(pid).is_some_and(|process| process.is_stopped());
    terminal.send("\x1a");
    assert!(wait_until(state.remaining(), is_stopped), "{}", terminal.screen());
    terminal.wait_until("an empty screen", |screen| {
        screen.shows_cursor() && !screen.text().contains("running")
    });
    assert!(!terminal.is_raw());
    signal(pid, Signal::CONT);
    terminal.wait_for("1 running");
    assert!(wait_until(state.remaining(), || terminal.is_raw()));
    terminal.send("\x03");
    terminal.wait().ends_with(2);
    are_gone(processes);
}

#[test]
fn keys_are_for_the_command_that_run_runs() {
    let state = State::new();
    let script = "echo ready; read line; echo got $line";
    let mut terminal = start(&state, &["run", "--", "sh", "-c", script]);
    terminal.wait_for("ready");
    assert!(!terminal.is_raw());
    terminal.send("hello\n");
    assert!(terminal.wait().ok().contains("got hello"));
}

#[test]
fn every_frame_is_one_update() {
    let state = State::new();
    let (terminal, processes) = sleeper(&state, &[], "sleep NUMBER");
    let written = || String::from_utf8_lossy(&terminal.bytes()).into_owned();
    let begins = |text: &str| text.matches("\x1b[?2026h").count();
    assert!(wait_until(state.remaining(), || begins(&written()) > 5), "{}", terminal.screen());
    let text = written();
    let ends = text.matches("\x1b[?2026l").count();
    assert!(begins(&text).abs_diff(ends) <= 1, "{} begins, {ends} ends", begins(&text));
    assert!(!text.contains("\x1b[2J"), "the screen is never cleared");
    terminal.send("\x03");
    terminal.wait().ends_with(2);
    are_gone(processes);
}

#[test]
fn signals_leave_the_terminal_as_it_was() {
    let state = State::new();
    for number in [Signal::TERM, Signal::HUP, Signal::QUIT] {
        let (terminal, processes) = sleeper(&state, &[], "sleep NUMBER");
        signal(terminal.pid(), number);
        terminal.wait().ends_with(2);
        are_gone(processes);
    }
}

#[test]
fn a_terminal_that_cannot_be_drawn_on_gets_lines() {
    let state = State::new();
    let cli = state.cli(chain("echo plainly")).env("TERM", "dumb");
    let ended = Terminal::start(cli, 80, 24).wait();
    assert!(ended.ok().contains("| plainly"), "{}", ended.everything);
    assert!(!ended.bytes.contains(&0x1b), "{}", ended.everything);
}
