//! [`Ours`]: the program under test on a state folder of its own, and [`Connection`]: a session with it.

use crate::document::{Document, quoted};
use crate::measure::time;
use crate::wire::Wire;
use anyhow::{Context as _, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use testkit::process::tree;
use testkit::{Machine, Session, State, Terminal, User};

// The program is measured from outside, so its variables have the names that users know them by.
const STATE_DIR: &str = "CITOOL_STATE_DIR";
const ENGINE_CONFIG: &str = "CITOOL_ENGINE_CONFIG";

/// The settings of an engine whose commands have no network.
const ALONE: &str = "network = \"none\"";

/// A state folder whose engine is gone when this is. One at a time: each holds a ticket to run.
pub(crate) struct Ours {
    state: State,
}

impl Ours {
    /// An empty state folder.
    pub(crate) fn new() -> Self {
        Self { state: State::new() }
    }

    /// An empty state folder whose commands have no network.
    pub(crate) fn alone() -> Self {
        Self { state: State::with_config(ALONE) }
    }

    /// Another one of a user without root, on the same ticket.
    pub(crate) fn of_user(&self) -> Self {
        Self { state: self.state.another().given_to(User::with_ids(), ALONE) }
    }

    /// Starts the engine in a machine of its own.
    pub(crate) fn start_in(&self, machine: &Machine) {
        machine.start_engine(&self.state);
    }

    /// A run of the program. By hand, because waiting for it must not be rounded up to any tick.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(testkit::binary());
        command.args(args).env_clear().current_dir(self.state.workdir());
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
        command.env("HOME", self.state.home()).env("NO_COLOR", "1");
        command.env(STATE_DIR, self.state.dir());
        command.env(ENGINE_CONFIG, self.state.engine_config());
        command
    }

    /// A run of `query` with a document.
    pub(crate) fn query(&self, document: &str) -> Command {
        let file = self.file(document);
        self.command(&["query", "--doc", &file.to_string_lossy()])
    }

    /// A document as a file.
    pub(crate) fn file(&self, document: &str) -> PathBuf {
        self.state.file(&format!("{}.graphql", fresh()), document)
    }

    /// A run of the program on a terminal.
    pub(crate) fn on_terminal(&self, args: &[&str], columns: u16, rows: u16) -> Terminal {
        Terminal::start(self.state.cli(args), columns, rows)
    }

    /// A session on this state folder, with a container on a root file system.
    pub(crate) fn connect(&self, root: &Path) -> Result<Connection> {
        Connection::open(&self.state, root)
    }

    /// A session on this state folder that lives as long as its first part, and a connection to it.
    pub(crate) fn session(&self) -> Result<(Session, Wire)> {
        let session = Session::start(&self.state);
        let wire = Wire::connect(&session.endpoint)?;
        Ok((session, wire))
    }

    /// Where the engine keeps content.
    pub(crate) fn store(&self) -> PathBuf {
        self.state.store()
    }

    /// Memory of the engine and of everything it started, shared pages counted by part.
    pub(crate) fn memory(&self) -> u64 {
        tree(self.state.engine().pid).iter().map(|process| process.proportional_memory()).sum()
    }

    /// Stops the engine and waits until it is gone.
    pub(crate) fn stop(&self) {
        self.state.stop();
    }
}

/// A session over one connection that stays open.
pub(crate) struct Connection {
    wire: Wire,
    /// The container that everything starts from.
    pub(crate) container: String,
    /// Ends the session when dropped.
    session: Session,
}

impl Connection {
    fn open(state: &State, root: &Path) -> Result<Self> {
        let session = Session::start(state);
        let mut wire = Wire::connect(&session.endpoint)?;
        let directory = wire.import(root)?;
        let container = format!(
            "{{ container {{ withRootfs(directory: {}) {{ sync }} }} }}",
            quoted(&directory)
        );
        let container = wire.ask_text(&container, "sync").context("cannot use the root")?;
        Ok(Self { wire, container, session })
    }

    /// Another connection to the same session.
    pub(crate) fn another(&self) -> Result<Wire> {
        Wire::connect(&self.session.endpoint)
    }

    /// A pipeline that starts from the container.
    pub(crate) fn document(&self) -> Document {
        Document::load(&self.container)
    }

    /// Runs a document that ends in an exit code, and says how long that took.
    pub(crate) fn time_exit(&mut self, document: Document) -> Result<Duration> {
        let text = document.ask("exitCode");
        let (time, code) = time(|| self.wire.ask(&text, "exitCode"))?;
        ensure!(code == 0, "the last command ended with {code}");
        Ok(time)
    }

    /// Runs a document and gives the id of what it made, with the time that took.
    pub(crate) fn time_sync(&mut self, document: Document) -> Result<(Duration, String)> {
        let text = document.ask("sync");
        time(|| self.wire.ask_text(&text, "sync"))
    }
}

/// A word that was not used before in this state of the machine, so that nothing is cached for it.
pub(crate) fn fresh() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}
