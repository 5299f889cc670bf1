//! However a terminal ends, the user's is as it was and the container is gone.

use super::{chain, shell, shell_by, types};
use crate::remote::Remote;
use rustix::process::Signal;
use testkit::process::{Process, named, signal, wait_until};
use testkit::{Random, State, Terminal};

/// A shell in which something sleeps under a number that nobody else uses.
fn sleeping(state: &State, mut terminal: Terminal) -> (Terminal, Vec<Process>) {
    let number = 1_000_000 + Random::new("terminal").below(1 << 30);
    types(&mut terminal, "printf '\\033[?25l'; echo before-$((1+1))", "before-2");
    terminal.send(&format!("sleep {number}\r"));
    let name = format!("sleep {number}");
    assert!(wait_until(state.remaining(), || !named(&name).is_empty()), "{}", terminal.screen());
    (terminal, named(&name))
}

#[track_caller]
fn are_gone(processes: Vec<Process>) {
    for process in processes {
        assert!(process.wait_gone(), "{}", process.arguments());
    }
}

#[test]
fn signals_end_a_terminal_cleanly() {
    let state = State::new();
    for number in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        let (terminal, processes) = sleeping(&state, shell(&state));
        signal(terminal.pid(), number);
        let ended = terminal.wait();
        let text = ended.ends_with(2);
        assert_eq!(text.matches("Interrupted: ").count(), 1, "{number:?}: {text}");
        are_gone(processes);
    }
}

#[test]
fn an_engine_that_is_killed_gives_the_terminal_back() {
    let state = State::new();
    let (terminal, processes) = sleeping(&state, shell(&state));
    state.kill_engine();
    let ended = terminal.wait();
    assert_ne!(ended.code(), 0, "{ended:#?}");
    assert!(ended.is_restored, "{ended:#?}");
    are_gone(processes);
    state.cli(["core", "version"]).run().ok();
}

#[test]
fn a_client_that_is_killed_ends_the_shell() {
    let state = State::with_config("grace = \"1s\"");
    let (terminal, processes) = sleeping(&state, shell(&state));
    signal(terminal.pid(), Signal::KILL);
    drop(terminal);
    are_gone(processes);
}

#[test]
fn a_shell_that_ignores_everything_is_killed_after_the_grace() {
    let state = State::with_config("grace = \"1s\"");
    let mut terminal = shell(&state);
    types(&mut terminal, "trap '' HUP TERM INT; echo deaf-$((1+1))", "deaf-2");
    let (terminal, processes) = sleeping(&state, terminal);
    signal(terminal.pid(), Signal::TERM);
    terminal.wait().ends_with(2);
    are_gone(processes);
}

#[test]
fn processes_that_a_shell_leaves_go_with_it() {
    let state = State::new();
    let mut terminal = shell(&state);
    let number = 1_000_000 + Random::new("left").below(1 << 30);
    types(&mut terminal, &format!("setsid sleep {number} & sleep 0; echo on-$((1+1))"), "on-2");
    assert!(wait_until(state.remaining(), || !named(&format!("sleep {number}")).is_empty()));
    let processes = named(&format!("sleep {number}"));
    terminal.send("exit\r");
    terminal.wait().ok();
    are_gone(processes);
}

#[test]
fn two_terminals_of_one_chain_come_one_after_the_other() {
    let state = State::new();
    let words = ["terminal", "--cmd=sh,-c,echo first; read line", "terminal", "--cmd=sh"];
    let mut terminal = Terminal::start(state.cli(chain(&words)), 80, 24);
    terminal.wait_for("first");
    terminal.send("\r");
    terminal.wait_for("/ #");
    terminal.send("exit\r");
    let ended = terminal.wait();
    assert_eq!(ended.ok().matches("✔ container.terminal").count(), 2, "{ended:#?}");
}

#[test]
fn an_engine_that_was_started_apart_lends_its_containers_too() {
    let engine = State::new();
    engine.cli(["core", "version"]).run().ok();
    let client = engine.another();
    let socket = format!("unix://{}", engine.dir().join("engine.sock").display());
    let cli = client.cli(chain(&["terminal"])).env("CITOOL_ENGINE", socket);
    let mut terminal = shell_by(cli);
    types(&mut terminal, "stty size", "24 80");
    terminal.send("exit\r");
    terminal.wait().ok();
}

#[test]
fn an_engine_on_another_machine_gives_the_terminal_back_when_it_vanishes() {
    let remote = Remote::new();
    let mut terminal = shell_by(remote.cli(&[]).args(chain(&["terminal"])));
    types(&mut terminal, "stty size", "24 80");
    let (terminal, processes) = sleeping(&remote.engine, terminal);
    remote.engine.kill_engine();
    let ended = terminal.wait();
    assert_ne!(ended.code(), 0, "{ended:#?}");
    assert!(ended.is_restored, "{ended:#?}");
    are_gone(processes);
}
