//! [`Terminal`]: a program on a terminal of its own, and what a user sees on it.
//!
//! The terminal is a real one of the kernel: it is the controlling terminal of the program, so
//! Ctrl-C typed into it is a signal, and modes that the program sets can be looked at. What the
//! program writes goes through a [`Screen`].

use crate::cli::Cli;
use crate::process::wait_until;
use crate::surroundings::deadline;
use rustix::fd::OwnedFd;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use screen::Screen;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Instant;

/// Rows that have scrolled off and are still known.
const HISTORY: usize = 5_000;

/// A program that runs on a terminal.
pub struct Terminal {
    line: String,
    child: Child,
    controller: OwnedFd,
    seen: Arc<Mutex<Seen>>,
    reader: JoinHandle<()>,
    until: Instant,
}

/// What came out so far.
struct Seen {
    screen: Screen,
    bytes: Vec<u8>,
}

/// How the program and the terminal ended.
#[derive(Debug)]
pub struct Ended {
    /// The command line.
    pub line: String,
    /// How the program ended.
    pub status: ExitStatus,
    /// The screen, without empty rows at its end.
    pub screen: String,
    /// The screen with all that has scrolled off it.
    pub everything: String,
    /// All that was written, as it was.
    pub bytes: Vec<u8>,
    /// Whether the terminal is as it was before: echo, line by line, with a cursor.
    pub is_restored: bool,
}

impl Terminal {
    /// Starts a command on a terminal of this size.
    pub fn start(cli: Cli<'_>, columns: u16, rows: u16) -> Self {
        let until = Instant::now() + cli.remaining();
        let user = cli.user().map(|user| (user.uid, user.gid));
        let original = cli.into_command();
        let line = format!("{original:?}");
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
            .expect("a terminal can be made");
        grantpt(&controller).expect("the terminal can be used");
        unlockpt(&controller).expect("the terminal can be opened");
        set_size(&controller, columns, rows);
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let end = || ioctl_tiocgptpeer(&controller, flags).expect("the terminal can be opened");
        // `setsid` makes the terminal the program's own and becomes the program.
        let mut command = Command::new("setsid");
        command.arg("--ctty").arg(original.get_program()).args(original.get_args());
        command.env_clear().env("TERM", "xterm-256color");
        for (name, value) in original.get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        if let Some(folder) = original.get_current_dir() {
            command.current_dir(folder);
        }
        if let Some((uid, gid)) = user {
            command.uid(uid).gid(gid);
        }
        command.stdin(end()).stdout(end()).stderr(end());
        let child = command.spawn().unwrap_or_else(|e| panic!("cannot start {line}: {e}"));
        // The command holds the program's end open; the reader must see the end of it.
        drop(command);
        let screen = Screen::new(columns.into(), rows.into(), HISTORY);
        let seen = Arc::new(Mutex::new(Seen { screen, bytes: vec![] }));
        let reader = read(&controller, seen.clone());
        Self { line, child, controller, seen, reader, until }
    }

    /// Process number of the program.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Types, as a user does. Ctrl-C is `\x03`, the arrow keys are `\x1b[A` and so on.
    pub fn send(&self, keys: &str) {
        let mut rest = keys.as_bytes();
        while !rest.is_empty() {
            let written = rustix::io::write(&self.controller, rest).expect("the terminal is there");
            rest = &rest[written..];
        }
    }

    /// Gives the terminal another size; the program is told by a signal.
    pub fn resize(&self, columns: u16, rows: u16) {
        self.seen().screen.resize(columns.into(), rows.into());
        set_size(&self.controller, columns, rows);
    }

    /// What the screen shows now.
    pub fn screen(&self) -> String {
        self.seen().screen.text()
    }

    /// All that was written so far, as it was.
    pub fn bytes(&self) -> Vec<u8> {
        self.seen().bytes.clone()
    }

    /// Waits until the screen shows a text.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) {
        self.wait_until(text, |screen| screen.text().contains(text));
    }

    /// Waits until the screen is as it should be; `what` says how in words.
    #[track_caller]
    pub fn wait_until(&mut self, what: &str, is_so: impl Fn(&Screen) -> bool) {
        let left = self.until.saturating_duration_since(Instant::now());
        let seen = self.seen.clone();
        let holds = || is_so(&lock(&seen).screen);
        // What a program wrote just before its end may still be on its way, until the terminal is closed.
        wait_until(left, || {
            let ended = self.child.try_wait().is_ok_and(|status| status.is_some());
            let whole = ended && self.reader.is_finished();
            holds() || whole
        });
        assert!(holds(), "{}: no `{what}` on the screen:\n{}", self.line, self.screen());
    }

    /// Whether keys reach the program one by one and are not echoed.
    pub fn is_raw(&self) -> bool {
        let modes = tcgetattr(&self.controller).expect("the terminal is there").local_modes;
        !modes.intersects(LocalModes::ICANON | LocalModes::ECHO)
    }

    /// Waits for the end of the program; past the deadline it is killed and the test fails.
    pub fn wait(mut self) -> Ended {
        let left = self.until.saturating_duration_since(Instant::now());
        let ended = wait_until(left, || self.child.try_wait().is_ok_and(|status| status.is_some()));
        if !ended {
            let _ = self.child.kill();
            let _ = self.child.wait();
            panic!("{} did not end in time:\n{}", self.line, self.screen());
        }
        let status = self.child.wait().expect("an ended child can be waited for");
        let closed = wait_until(deadline(), || self.reader.is_finished());
        assert!(closed, "{} has ended, yet somebody holds its terminal open", self.line);
        let modes = tcgetattr(&self.controller).expect("the terminal is there").local_modes;
        let cooked = LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        let seen = self.seen();
        let is_restored = modes.contains(cooked) && seen.screen.shows_cursor();
        Ended {
            line: self.line.clone(),
            status,
            screen: seen.screen.text(),
            everything: seen.screen.everything(),
            bytes: seen.bytes.clone(),
            is_restored,
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        lock(&self.seen)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl Ended {
    /// Exit code, or 128 + n after signal n.
    pub fn code(&self) -> i32 {
        let status = self.status;
        status.code().or_else(|| status.signal().map(|n| 128 + n)).expect("one of the two")
    }

    /// Checks that the program succeeded and left the terminal as it was.
    #[track_caller]
    pub fn ok(&self) -> &str {
        self.ends_with(0)
    }

    /// Checks the exit code and that the terminal is as it was, and gives all that stays on it.
    #[track_caller]
    pub fn ends_with(&self, code: i32) -> &str {
        let text = &self.everything;
        assert_eq!(self.code(), code, "{}:\n{text}", self.line);
        assert!(self.is_restored, "the terminal is not as it was after {}:\n{text}", self.line);
        text
    }
}

fn set_size(controller: &OwnedFd, columns: u16, rows: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(controller, size).expect("a terminal has a size");
}

/// Reads until nobody has the program's end of the terminal open any more.
fn read(controller: &OwnedFd, seen: Arc<Mutex<Seen>>) -> JoinHandle<()> {
    let controller = controller.try_clone().expect("a descriptor can be copied");
    std::thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        loop {
            match rustix::io::read(&controller, &mut buffer) {
                Ok(count @ 1..) => {
                    let mut seen = lock(&seen);
                    seen.screen.feed(&buffer[..count]);
                    seen.bytes.extend_from_slice(&buffer[..count]);
                }
                Err(rustix::io::Errno::INTR) => {}
                _ => return,
            }
        }
    })
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().expect("no reader panics")
}
