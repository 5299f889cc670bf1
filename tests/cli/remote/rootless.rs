//! An engine without root on another machine: what the client lends goes all the way.

use super::Remote;
use crate::terminal::{chain, types};
use testkit::{State, Terminal, User};

#[test]
fn secrets_sockets_files_and_a_terminal_of_the_client_work_together() {
    let remote = Remote::on(State::of_user(User::with_ids(), ""));
    std::fs::write(remote.file("key"), "file-secret-31337").unwrap();
    std::fs::write(remote.client.workdir().join("note"), "from here").unwrap();
    let key = format!("--source=file://{}", remote.file("key").display());
    let words = [
        "with-secret-variable",
        "--name=T",
        "--secret=env://TOKEN",
        "with-mounted-secret",
        "--path=/run/key",
        &key,
        "with-mounted-file",
        "--path=/note",
        "--source=note",
    ];
    let exec = ["with-exec", "--args=sh,-c,echo $T; cat /run/key; echo; cat /note", "stdout"];
    let with = |rest: &[&str]| {
        let words = chain(&[&words[..], rest].concat());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        remote.cli(&words).env("TOKEN", "variable-secret-31337")
    };
    let output = with(&exec).run();
    assert_eq!(output.ok(), "***\n***\nfrom here");
    let mut terminal = Terminal::start(with(&["terminal"]), 80, 24);
    terminal.wait_for("/ #");
    types(&mut terminal, "echo ${#T}-$(wc -c < /run/key)-$(cat /note)", "\n21-17-from here");
    terminal.send("exit\r");
    terminal.wait().ok();
}
