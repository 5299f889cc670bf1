//! [`State`]: a state folder of one's own, with an engine that is gone when the test is.

use crate::cli::Cli;
use crate::disk::Disk;
use crate::leftovers::{Holdings, engines, mounts_below};
use crate::process::Process;
use crate::surroundings::{binary, debian_cache, root};
use crate::ticket::Ticket;
use crate::user::{User, binary_for_all};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

/// How many layers an engine has folders for before there is a command.
const MOST_AHEAD: usize = 4;

/// How long an engine may take to end after it was asked to, containers included.
const STOP_TIME: Duration = Duration::from_secs(20);

/// A folder of one test: state, configuration, home and working directory.
pub struct State {
    folder: PathBuf,
    seen: Mutex<Holdings>,
    /// What the state folder is on, if it has a disk of its own.
    disk: Option<Disk>,
    /// Whom commands run as; root if it is nobody.
    user: Option<User>,
    ticket: Arc<Ticket>,
}

impl State {
    /// An empty state folder, once there is a ticket.
    pub fn new() -> Self {
        Self::with_config("")
    }

    /// An empty state folder whose engine reads these settings.
    pub fn with_config(config: &str) -> Self {
        Self::on_ticket(config, Arc::new(Ticket::take()))
    }

    /// Another empty state folder for the same test. It shares the ticket: a test that took a second
    /// one could wait for itself.
    pub fn another(&self) -> Self {
        Self::on_ticket("", self.ticket.clone())
    }

    fn on_ticket(config: &str, ticket: Arc<Ticket>) -> Self {
        static SWEEP: Once = Once::new();
        SWEEP.call_once(sweep);
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // A socket's path has room for about a hundred characters: the name is short.
        let folder = root().join(format!("t{}-{number}", std::process::id()));
        for part in ["state", "home", "work"] {
            std::fs::create_dir_all(folder.join(part)).expect("a folder for the test can be made");
        }
        let state = Self { folder, seen: Mutex::default(), disk: None, user: None, ticket };
        state.configure(config);
        state
    }

    /// An empty state folder of a user without root, whose engine reads these settings. Debian packages
    /// are kept in the state folder.
    pub fn of_user(user: User, config: &str) -> Self {
        Self::new().given_to(user, config)
    }

    /// Gives a folder that has nothing in it yet to a user without root, whose engine reads these settings.
    pub fn given_to(mut self, user: User, config: &str) -> Self {
        for part in ["", "state", "home", "work"] {
            user.own_one(&self.folder.join(part));
        }
        self.user = Some(user);
        self.configure(config);
        self
    }

    /// Gives a user without root the Debian packages that were downloaded for all tests.
    pub fn with_packages(self) -> Self {
        let user = self.user.as_ref().expect("root's engines have the packages anyway");
        let mut copy = Command::new("cp");
        copy.arg("-r").arg(debian_cache()).arg(self.packages());
        assert!(copy.status().is_ok_and(|status| status.success()), "cannot copy packages");
        user.own(&self.packages());
        let config = std::fs::read_to_string(self.engine_config()).expect("there are settings");
        self.configure(&config);
        self
    }

    /// Where a user without root has Debian packages.
    fn packages(&self) -> PathBuf {
        self.folder.join("packages")
    }

    /// Whom commands run as, if that is not root.
    pub fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }

    /// An empty state folder on a disk of its own of so many MiB, whose engine reads these settings.
    pub fn on_disk(mebibytes: u64, config: &str) -> Self {
        let mut state = Self::with_config(config);
        let image = state.folder.join("disk");
        state.disk = Some(Disk::mount(&image, &state.dir(), mebibytes));
        state
    }

    /// Another state folder for the same test, on the disk that an image holds, as it is.
    pub fn another_on(&self, image: &Path) -> Self {
        let mut state = self.another();
        state.disk = Some(Disk::mount_again(image, &state.dir()));
        state
    }

    /// The disk of a state folder that has one of its own.
    pub fn disk(&self) -> &Disk {
        self.disk.as_ref().expect("the state folder was made on a disk of its own")
    }

    /// A state folder that already has Debian images.
    pub fn debian() -> Self {
        Self::debian_with_config("")
    }

    /// A state folder that already has Debian images, whose engine reads these settings.
    pub fn debian_with_config(config: &str) -> Self {
        // Before the ticket: making the seed takes one of its own.
        crate::seed::make();
        let state = Self::with_config(config);
        crate::seed::copy_into(&state.dir());
        state
    }

    /// Replaces the engine's settings; an engine that runs does not see it.
    pub fn configure(&self, config: &str) {
        let cache = match self.user {
            Some(_) => Some(self.packages()).filter(|packages| packages.exists()),
            None => Some(debian_cache()),
        };
        let text = match cache {
            Some(cache) => format!("debian-cache = {:?}\n{config}\n", cache.display().to_string()),
            None => config.to_owned(),
        };
        std::fs::write(self.engine_config(), text).expect("the settings can be written");
    }

    /// The state folder itself.
    pub fn dir(&self) -> PathBuf {
        self.folder.join("state")
    }

    /// Where the engine keeps content.
    pub fn store(&self) -> PathBuf {
        self.dir().join("store")
    }

    /// Layers that commands are writing to, or left behind half made. A few folders that are made ahead, with
    /// nothing in them, are neither.
    pub fn half_made(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.store().join("work")).into_iter().flatten().flatten();
        let uppers = entries.map(|entry| entry.path().join("upper")).filter(|path| path.exists());
        let is_empty = |path: &PathBuf| {
            path.read_dir().is_ok_and(|mut entries| entries.next().is_none())
                && path.with_file_name("work").read_dir().is_ok_and(|mut it| it.next().is_none())
        };
        let (mut unused, mut used): (Vec<_>, Vec<_>) = uppers.partition(is_empty);
        if unused.len() > MOST_AHEAD {
            used.append(&mut unused);
        }
        used
    }

    /// Home folder of the commands.
    pub fn home(&self) -> PathBuf {
        self.folder.join("home")
    }

    /// Working directory of the commands.
    pub fn workdir(&self) -> PathBuf {
        self.folder.join("work")
    }

    /// The engine's settings file.
    pub fn engine_config(&self) -> PathBuf {
        self.folder.join("engine.toml")
    }

    /// Writes a file into the working directory and gives its path.
    pub fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.workdir().join(name);
        let folder = path.parent().expect("a file lies in a folder");
        std::fs::create_dir_all(folder).expect("a folder can be made");
        std::fs::write(&path, contents).expect("a file can be written");
        if let Some(user) = &self.user {
            user.own(&self.workdir());
        }
        path
    }

    /// A run of the program under test.
    pub fn cli<S: AsRef<str>>(&self, args: impl IntoIterator<Item = S>) -> Cli<'_> {
        Cli::new(self, &self.binary()).args(args)
    }

    /// A run of another program in the same surroundings.
    pub fn program(&self, path: &Path) -> Cli<'_> {
        Cli::new(self, path)
    }

    /// The program under test as a plain command, in the same surroundings.
    pub(crate) fn command(&self) -> Command {
        Cli::new(self, &self.binary()).into_command()
    }

    /// The program under test, where commands can run it.
    pub fn binary(&self) -> PathBuf {
        match self.user {
            Some(_) => binary_for_all(),
            None => binary(),
        }
    }

    /// Time left for the next step of the test.
    pub fn remaining(&self) -> Duration {
        self.ticket.remaining()
    }

    /// The engine that runs on this folder now.
    #[track_caller]
    pub fn engine(&self) -> Process {
        let engines = engines(&self.dir());
        assert_eq!(engines.len(), 1, "one engine on this folder, not {engines:?}\n{}", self.log());
        engines[0]
    }

    /// Remembers what the engine has now, so that the end of the test looks for it.
    pub fn look(&self) -> Holdings {
        let holdings = Holdings::of(&self.dir());
        self.seen.lock().expect("no holder panics").merge(holdings.clone());
        holdings
    }

    /// Kills the engine at once, without a word.
    pub fn kill_engine(&self) -> Holdings {
        let holdings = self.look();
        self.engine().kill();
        holdings
    }

    /// Stops the engine as a user would, and waits until everything of it is gone.
    #[track_caller]
    pub fn stop(&self) {
        let holdings = self.look();
        if !engines(&self.dir()).is_empty() {
            let output = self.cli(["engine", "stop", "--force"]).run();
            assert!(output.status.success(), "{output:#?}\n{}", self.log());
        }
        let left = holdings.remaining(STOP_TIME);
        assert!(left.is_empty(), "the engine has stopped and left: {left:#?}\n{}", self.log());
    }

    /// The end of the engine's log.
    pub fn log(&self) -> String {
        let mut text = String::new();
        for entry in std::fs::read_dir(self.dir()).into_iter().flatten().flatten() {
            if entry.path().extension().is_some_and(|end| end == "log") {
                text += &std::fs::read_to_string(entry.path()).unwrap_or_default();
            }
        }
        let lines: Vec<&str> = text.lines().collect();
        format!("engine log:\n{}", lines[lines.len().saturating_sub(40)..].join("\n"))
    }
}

impl Default for State {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for State {
    /// Stops the engine and looks for what is left. After a panic it only cleans up.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.log());
            kill(&self.folder);
            self.disk = None;
            clean(&self.folder);
            return;
        }
        self.stop();
        let seen = std::mem::take(&mut *self.seen.lock().expect("no holder panics"));
        let left = seen.remaining(STOP_TIME);
        self.disk = None;
        let mounts = mounts_below(&self.folder);
        clean(&self.folder);
        assert!(left.is_empty(), "left behind: {left:#?}");
        assert!(mounts.is_empty(), "mounts left behind: {mounts:#?}");
    }
}

/// Removes what dead runs left in the folder for tests.
fn sweep() {
    for entry in std::fs::read_dir(root()).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix('t').and_then(|rest| rest.split_once('-'));
        let Some(owner) = owner.and_then(|(pid, _)| pid.parse::<i32>().ok()) else { continue };
        if Process::of(owner).is_none() {
            eprintln!("sweeping {name}, left by a run that is gone");
            clean(&entry.path());
        }
    }
}

/// Kills what is left of the engine of a test's folder and removes the folder.
fn clean(folder: &Path) {
    kill(folder);
    let _ = std::fs::remove_dir_all(folder);
}

fn kill(folder: &Path) {
    let holdings = Holdings::of(&folder.join("state"));
    holdings.processes.iter().for_each(Process::kill);
    holdings.remaining(Duration::from_secs(5));
}
