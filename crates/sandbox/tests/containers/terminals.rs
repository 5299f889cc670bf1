//! Commands on a terminal.

use crate::fixture::{Fixture, run};
use crate::{Case, cases};
use sandbox::{Exit, Spec, Terminal, TerminalInput, TerminalSize, User};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

pub(crate) fn cases() -> Vec<Case> {
    cases![
        a_command_leads_a_session_on_a_terminal_of_its_own,
        keys_and_sizes_reach_the_command,
        who_leaves_the_terminal_hangs_up,
        a_slow_reader_gets_everything,
        nothing_begins_where_there_is_no_program,
    ]
}

/// How long a command may take to do what it is told.
const LIMIT: Duration = Duration::from_secs(30);

/// Somebody at the terminal of a command.
struct Desk {
    keys: mpsc::Sender<TerminalInput>,
    shown: mpsc::Receiver<Vec<u8>>,
    text: String,
}

impl Desk {
    /// A terminal and who sits at it.
    fn new() -> (Desk, Terminal) {
        let (keys, input) = mpsc::channel(4);
        let (output, shown) = mpsc::channel(4);
        let size = TerminalSize { columns: 80, rows: 24 };
        (Desk { keys, shown, text: String::new() }, Terminal { size, input, output })
    }

    async fn press(&self, keys: &str) {
        self.keys.send(TerminalInput::Keys(keys.into())).await.unwrap();
    }

    /// Waits until something was shown.
    async fn sees(&mut self, text: &str) {
        let look = async {
            while !self.text.contains(text) {
                match self.shown.recv().await {
                    Some(piece) => self.text.push_str(&String::from_utf8_lossy(&piece)),
                    None => panic!("no `{text}` in {}", self.text),
                }
            }
        };
        tokio::time::timeout(LIMIT, look).await.expect("it is shown");
    }

    /// All that is shown until the end.
    async fn rest(mut self) -> String {
        while let Some(piece) = self.shown.recv().await {
            self.text.push_str(&String::from_utf8_lossy(&piece));
        }
        self.text
    }
}

/// Runs a command on a terminal beside what somebody does there.
async fn at(
    fixture: &Fixture,
    spec: Spec,
    work: impl AsyncFnOnce(Desk) -> String,
) -> (Exit, String) {
    let (desk, terminal) = Desk::new();
    let spec = Spec { terminal: Some(terminal), ..spec };
    let (outcome, text) = tokio::join!(run(&fixture.plain, spec), work(desk));
    (outcome.unwrap().exit, text)
}

async fn a_command_leads_a_session_on_a_terminal_of_its_own(fixture: Arc<Fixture>) {
    for init in [true, false] {
        let line =
            "tty; stty size; test -t 0 -a -t 1 -a -t 2 && echo all; echo > /dev/tty && exit 7";
        let spec = Spec { init, ..fixture.spec(&["sh", "-c", line]) };
        let (exit, text) = at(&fixture, spec, Desk::rest).await;
        assert_eq!((exit.code, text.as_str()), (7, "/dev/pts/0\r\n24 80\r\nall\r\n\r\n"), "{init}");
    }
    let user = User { uid: 1000, gid: 1000, groups: vec![] };
    let spec = Spec { user, ..fixture.spec(&["sh", "-c", "echo mine > $(tty)"]) };
    let (exit, text) = at(&fixture, spec, Desk::rest).await;
    assert_eq!((exit.code, text.as_str()), (0, "mine\r\n"), "a user can open it by its name");
}

async fn keys_and_sizes_reach_the_command(fixture: Arc<Fixture>) {
    let spec = fixture.spec(&[
        "sh",
        "-c",
        "read line; echo got $line; trap 'stty size' WINCH; \
        echo ready; while :; do sleep 0.1; done",
    ]);
    let (exit, text) = at(&fixture, spec, async |mut desk: Desk| {
        desk.press("hello\r").await;
        desk.sees("got hello").await;
        desk.sees("ready").await;
        let size = TerminalSize { columns: 100, rows: 30 };
        desk.keys.send(TerminalInput::Size(size)).await.unwrap();
        desk.sees("30 100").await;
        desk.press("\x03").await;
        desk.rest().await
    })
    .await;
    assert_eq!(exit.code, 130, "{text}");
    assert!(text.starts_with("hello\r\n"), "what is typed is echoed: {text}");
}

async fn who_leaves_the_terminal_hangs_up(fixture: Arc<Fixture>) {
    let spec = fixture.spec(&["sh", "-c", "echo here; exec sleep 1000"]);
    let (exit, _) = at(&fixture, spec, async |mut desk: Desk| {
        desk.sees("here").await;
        desk.text
    })
    .await;
    assert_eq!(exit.code, 129);
}

async fn a_slow_reader_gets_everything(fixture: Arc<Fixture>) {
    let spec = fixture.spec(&["sh", "-c", "seq 1 20000"]);
    let (exit, text) = at(&fixture, spec, Desk::rest).await;
    assert_eq!(exit.code, 0);
    let numbers = text.lines().map(|line| line.parse::<u32>().unwrap());
    assert!(numbers.eq(1..=20_000));
}

async fn nothing_begins_where_there_is_no_program(fixture: Arc<Fixture>) {
    let (desk, terminal) = Desk::new();
    let spec = Spec { terminal: Some(terminal), ..fixture.spec(&["no-such-program"]) };
    let (outcome, text) = tokio::join!(run(&fixture.plain, spec), desk.rest());
    assert!(matches!(outcome, Err(sandbox::Error::Program { code: 127, .. })), "{outcome:?}");
    assert_eq!(text, "");
}
